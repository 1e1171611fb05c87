/* There is no openat2(): each caller has another way, component by component. */
#pragma once
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

struct open_how {
	uint64_t flags, mode, resolve;
};
#define RESOLVE_NO_XDEV 0x01
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS 0x04
#define RESOLVE_BENEATH 0x08
