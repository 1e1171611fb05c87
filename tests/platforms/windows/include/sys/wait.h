/* There is no fork(): the case that calls it fails. */
#pragma once
#define WNOHANG 1
#define WUNTRACED 2
#define WIFEXITED(status) (((status) & 0x7f) == 0)
#define WEXITSTATUS(status) ((status) >> 8 & 0xff)
#define WIFSIGNALED(status) (((status) & 0x7f) != 0)
#define WTERMSIG(status) ((status) & 0x7f)
int fork(void);
int waitpid(int pid, int *ret_status, int flags);
#define wait4(pid, ret_status, flags, ret_usage) waitpid(pid, ret_status, flags)
#define wait(ret_status) waitpid(-1, ret_status, 0)
static inline int pause(void)
{
	return -1;
}
