/* Signals: of those that Windows has not, the numbers of Linux, so that a request can name them. Nothing blocks one. */
#pragma once
#include_next <signal.h>

#define SIGHUP 1
#define SIGQUIT 3
#define SIGKILL 9
#define SIGUSR1 10
#define SIGUSR2 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 27
#define SIGWINCH 28

#define SIG_BLOCK 0
#define SIG_SETMASK 2
typedef unsigned long long sigset_t;
static inline int sigemptyset(sigset_t *set)
{
	*set = 0;
	return 0;
}
static inline int sigfillset(sigset_t *set)
{
	*set = ~0ull;
	return 0;
}
static inline int sigprocmask(int how, const sigset_t *set, sigset_t *ret_before)
{
	(void)how;
	(void)set;
	if (ret_before)
		*ret_before = 0;
	return 0;
}
#undef pthread_sigmask
#define pthread_sigmask sigprocmask

/* Of a signal that there is not, nothing is changed. */
typedef void (*system_handler)(int);
system_handler system_signal(int number, system_handler handler);
#define signal system_signal
/* Only jobs are ended here, never a process by its number. */
static inline int kill(int pid, int number)
{
	(void)pid;
	(void)number;
	return -1;
}
const char *sigabbrev_np(int number);
