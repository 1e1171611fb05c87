/* There is none; nothing here is changed. */
#pragma once
struct termios;
