/* A path that was resolved once: what it is called, what it really is, and what it was at that moment. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct place {
	const char *path;       /* canonical: no symbolic link, absolute */
	const char *alias;      /* as it was named, where that differs from `path`; else NULL */
	uint64_t device, inode; /* checked again when it is mounted: a place that was swapped is refused */
	bool is_directory;
};
