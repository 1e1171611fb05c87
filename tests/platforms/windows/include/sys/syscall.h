/* For tests that have a function of their own in the place of one of these: what that would have done. See calls.c. */
#pragma once
enum {
	SYS_write,
	SYS_writev,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fdatasync,
	SYS_nanosleep,
	SYS_clock_gettime,
	SYS_unlinkat,
	SYS_renameat2,
};
long syscall(long number, ...);
