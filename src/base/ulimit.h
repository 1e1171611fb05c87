/* Resource limits that a request names, as setrlimit(2) knows them: "cpu=100", "stack=8388608:unlimited". */
#pragma once
#include <stdint.h>

#define ULIMIT_COUNT 16
#define ULIMIT_UNLIMITED UINT64_MAX

struct ulimits {
	uint32_t given;                 /* 1 << number */
	struct ulimit {
		uint64_t soft, hard;
	} limits[ULIMIT_COUNT];         /* by number: the kernel's on Linux */
};

/* Adds one, in place of one of the same name. What is wrong with it, or NULL. */
const char *ulimit_add(struct ulimits *ulimits, const char *text);
/* The name of a number below ULIMIT_COUNT. */
const char *ulimit_name(unsigned number);
