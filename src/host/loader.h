/* What a system starts to run a program that is no script. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"

/* The interpreter that an executable of this machine's width names, given its first `length` bytes; "" if none.
 * `ret_path` has PATH_MAX bytes. */
void loader_of(int fd, const unsigned char *head, size_t length, char *ret_path);
