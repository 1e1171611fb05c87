/* The numbers of Linux, which base/ulimit.c has everywhere. */
#pragma once
#include_next <sys/resource.h>
enum {
	RLIMIT_CPU,
	RLIMIT_DATA = 2,
	RLIMIT_STACK,
	RLIMIT_CORE,
	RLIMIT_RSS,
	RLIMIT_NPROC,
	RLIMIT_MEMLOCK = 8,
	RLIMIT_AS,
	RLIMIT_LOCKS,
	RLIMIT_SIGPENDING,
	RLIMIT_MSGQUEUE,
	RLIMIT_NICE,
	RLIMIT_RTPRIO,
	RLIMIT_RTTIME,
};
