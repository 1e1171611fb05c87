/* Given to clang-tidy before every file but base/error.c: the analyzer looks at one file at a time, so it must be told
 * that these always return -1. */
#include "base/error.h"
#define fail(...) (fail(__VA_ARGS__), -1)
#define fail_oom(err) (fail_oom(err), -1)
#define fail_remedy(...) (fail_remedy(__VA_ARGS__), -1)
#define fail_boundary(...) (fail_boundary(__VA_ARGS__), -1)
