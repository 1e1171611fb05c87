/* There are no such limits: every one is infinite. */
#pragma once
#define RLIM_INFINITY (~0ull)
#define RLIMIT_FSIZE 1
#define RLIMIT_NOFILE 7
typedef unsigned long long rlim_t;
struct rlimit {
	rlim_t rlim_cur, rlim_max;
};
static inline int getrlimit(int resource, struct rlimit *ret_limit)
{
	(void)resource;
	*ret_limit = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	return 0;
}
static inline int system_prlimit(int pid, int resource, const struct rlimit *limit, struct rlimit *ret_before)
{
	(void)pid;
	(void)limit;
	return ret_before ? getrlimit(resource, ret_before) : 0;
}
#define prlimit system_prlimit
