/* How programs that the library carries as bytes come to be files that can be executed. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"

/* A file in memory that cannot be changed or read: a process that executes it cannot be traced. A descriptor, or a
 * negative errno. */
int blob_open(const char *name, const unsigned char *bytes, size_t size) must_check;
