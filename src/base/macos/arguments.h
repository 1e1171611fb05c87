/* What sysctl() tells about a process by KERN_PROCARGS2, as bytes: the number of its arguments, the path of its program
 * and NULs, its arguments, its variables, what the loader was told. Of a program that the system restricts the
 * variables and all that follows are left out. */
#pragma once
#include <stddef.h>

/* Where its variables begin, each ended by NUL. NULL: there are none, or it is none of this form. */
const char *arguments_environment(const char *bytes, size_t length, size_t *ret_length);
