#pragma once
#define SECCOMP_MODE_FILTER 2
