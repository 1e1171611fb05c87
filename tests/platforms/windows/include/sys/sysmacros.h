#pragma once
#define makedev(major, minor) 0
