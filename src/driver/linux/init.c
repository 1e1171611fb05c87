/* init: the parent of a command inside its walls. A freestanding program of a few pages, embedded in the library and
 * started from memory. It reaps every process, passes signals on, and when the command has ended kills what is left of
 * it before it reports, so that a report means: nothing is left.
 *
 * It holds the control socket, perhaps the lock of the layers, and no capability. The supervisor's end of that socket
 * is its lifeline: end of file means that the supervisor is gone, and everything goes with it. It is not dumpable, so
 * that no command of the same user can trace it or read its memory.
 *
 * The supervisor keeps the command's time. Init has a deadline a little later, for a supervisor that does not come to
 * it.
 *
 * States: WAIT (the command runs) → CLEAN (killing the rest) → REPORT → exit. */
#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "driver/linux/control.h"
#include "driver/linux/starter.h"
#include "driver/linux/sys.h"
#include "driver/linux/user.h"

/* The compiler may call these for struct copies. */
void *memcpy(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);

void *memcpy(void *to, const void *from, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

void *memset(void *to, int byte, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((volatile char *)to)[i] = (char)byte;
	return to;
}

/* What ru_inblock and ru_oublock count in, whatever the filesystem. */
#define BLOCK_BYTES 512

#define STOPS_MAX 1000                  /* of who is let go on: far more than anybody means to have */
#define REST_US 1000000                 /* for a reaper to end what its command has left */
#define ROUNDS 64                       /* of reaping, before it is heard what else there is */

static int events;                      /* a signalfd: children have ended */
static bool has_lock;                   /* of the layers */
static uint64_t deadline_us;            /* CLOCK_MONOTONIC; 0: there is none */
static bool is_reaper; /* others in the sandbox may kill and stop this process; the supervisor ends what it cannot */

static long number(const char *text)
{
	long value = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (*text - '0');
	return value;
}

static uint64_t now_us(void)
{
	struct timespec time;
	sys_2(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* All of them: one that is dead, and stays because somebody traces it, hides nobody behind it. */
static void kill_children(void)
{
	char list[1024];
	long pid = 0, length;
	int fd = (int)sys_4(SYS_openat, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	while ((length = sys_3(SYS_read, fd, list, sizeof(list))) > 0)
		for (long i = 0; i < length; i++) {
			bool within = list[i] >= '0' && list[i] <= '9';
			if (!within && pid > 1)
				sys_2(SYS_kill, pid, SIGKILL);
			pid = within ? pid * 10 + (list[i] - '0') : 0;
		}
	sys_1(SYS_close, fd);
}

#ifdef CORDON_UNWALL
static bool careless;
#else
enum { careless = false };
#endif

/* Reaps what has ended, of which there may be more at any moment: whoever keeps us at it does not keep us from all
 * else. In a pid namespace whoever lives is our child or a descendant of one: where there is none, nobody is left. */
static bool is_alone(void)
{
	long pid = 1;
	for (int round = 0; pid > 0 && round < ROUNDS; round++)
		pid = sys_4(SYS_wait4, -1, NULL, WNOHANG | __WALL, NULL);
	return pid == -ECHILD;
}

/* Waits for the end of a child. */
static void await_deaths(struct timespec *most)
{
	char drained[128];
	struct pollfd ready = { .fd = events, .events = POLLIN };
	sys_5(SYS_ppoll, &ready, 1, most, NULL, 0);
	if (ready.revents)
		sys_3(SYS_read, events, drained, sizeof(drained));
}

/* Whom a signal to everybody reaches is ours: nobody else is in the pid namespace, or in the domain. */
static bool everybody_is_ours;

static bool is_everybody_ours(const char *mode)
{
	/* A mistake here would cost a person everything that runs: we must be the first in the namespace, or the
	 * supervisor, of the same user, out of reach. */
	if (*mode != *INIT_SCOPED)
		return *mode == *INIT_PID_NAMESPACE && sys_0(SYS_getpid) == 1;
	return sys_2(SYS_kill, sys_0(SYS_getppid), 0) == -EPERM;
}

/* Of those who were killed, and make nobody any more. */
static void await_all_deaths(void)
{
	long pid;
	while ((pid = sys_4(SYS_wait4, -1, NULL, WNOHANG | __WALL, NULL)) != -ECHILD)
		if (pid == 0)
			await_deaths(NULL);
}

/* To kill everybody the kernel looks at each process of the machine, of which there may be thousands: so not without
 * need. False: a reaper gave up. */
static bool kill_rest(void)
{
	uint64_t begun_us = is_reaper ? now_us() : 0;
	while (!careless && !is_alone()) {
		if (is_reaper && now_us() - begun_us > REST_US)
			return false;
		if (everybody_is_ours) {
			sys_2(SYS_kill, -1, SIGKILL);
			await_all_deaths();
			return true;
		}
		/* Those of them then become ours, until none is left. */
		kill_children();
		struct timespec pause = { .tv_nsec = 1000000 };
		if (!is_alone())
			await_deaths(&pause);
	}
	return true;
}

/* execve() counts the memory that a process leaves as its own: the caller's, with its peak. Ours was that, too, a
 * moment before or after; but the caller's may grow meanwhile, and the kernel counts in lots. */
static uint64_t known_rss_kb(uint64_t peak_kb)
{
	struct rusage usage;
	memset(&usage, 0, sizeof(usage));
	sys_2(SYS_getrusage, RUSAGE_SELF, &usage);
	uint64_t inherited_kb = (uint64_t)usage.ru_maxrss;
	inherited_kb += inherited_kb / 8 + 1024;
	return peak_kb > inherited_kb ? peak_kb : 0;
}

static __attribute__((noreturn)) void report(int status, uint64_t end_us, bool late)
{
	struct rusage usage;
	bool rest = !kill_rest();
	/* Whoever gets the report may have the next sandbox on the same layers. */
	if (has_lock)
		sys_1(SYS_close, LAYERS_FD);
	memset(&usage, 0, sizeof(usage));
	sys_2(SYS_getrusage, RUSAGE_CHILDREN, &usage);
	struct control_message message = {
		.kind = CONTROL_REPORT, .value = status, .end_us = end_us, .late = late, .rest = rest
	};
	message.cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	                 (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	message.max_rss_kb = known_rss_kb((uint64_t)usage.ru_maxrss);
	message.read_bytes = (uint64_t)usage.ru_inblock * BLOCK_BYTES;
	message.written_bytes = (uint64_t)usage.ru_oublock * BLOCK_BYTES;
	sys6(SYS_sendto, CONTROL_FD, (long)&message, sizeof(message), MSG_NOSIGNAL, 0, 0);
	sys_exit(0);
}

/* A message from the supervisor, or its end. */
static void obey(bool pid_namespace, long command)
{
	struct control_message message = { .kind = 0 };
	long length = sys6(SYS_recvfrom, CONTROL_FD, (long)&message, sizeof(message), MSG_DONTWAIT, 0, 0);
	if (length == 0 || (length < 0 && length != -EAGAIN && length != -EINTR)) {
		/* With its pid 1 the kernel ends a pid namespace by itself; but after the lock is gone. */
		if (!pid_namespace || has_lock)
			kill_rest();
		sys_exit(1);
	}
	if (length != sizeof(message))
		return;
	if (message.kind == CONTROL_SIGNAL && message.value > 0 && message.value <= 64)
		sys_2(SYS_kill, -command, message.value);
	else if (message.kind == CONTROL_KILL)
		report(SIGKILL, now_us(), false);
	else if (message.kind == CONTROL_DEADLINE)
		deadline_us = message.end_us;
}

/* How long may be waited for something to happen: NULL is for ever. Ends the command when its time is over. */
static struct timespec *time_left(struct timespec *left)
{
	if (!deadline_us)
		return NULL;
	uint64_t now = now_us();
	if (now >= deadline_us)
		report(SIGKILL, now, true);
	left->tv_sec = (time_t)((deadline_us - now) / 1000000);
	left->tv_nsec = (long)((deadline_us - now) % 1000000) * 1000;
	return left;
}

/* Whoever asks to be traced by its parent, which traces nobody, is let go on: it has not ended. But nobody has us do
 * that for ever. */
static void let_go(long pid, int signal)
{
	static unsigned stops;
	if (stops++ < STOPS_MAX)
		sys_4(SYS_ptrace, PTRACE_DETACH, pid, 0, signal == SIGTRAP ? 0 : signal);
	else
		sys_2(SYS_kill, pid, SIGKILL);
}

/* Whether there may be more to reap. */
static bool reap(long command)
{
	int status;
	long pid = 1;
	for (int round = 0; pid > 0 && round < ROUNDS; round++) {
		pid = sys_4(SYS_wait4, -1, &status, WNOHANG | __WALL, NULL);
		if (pid > 0 && WIFSTOPPED(status))
			let_go(pid, WSTOPSIG(status));
		else if (pid == command)
			report(status, now_us(), false);
	}
	return pid > 0;
}

void init_serve(const char *mode, long command)
{
	const unsigned long default_action[4] = { (unsigned long)SIG_DFL };
	bool pid_namespace = *mode == *INIT_PID_NAMESPACE;
	everybody_is_ours = is_everybody_ours(mode);
	is_reaper = *mode == *INIT_REAPER;
#ifdef CORDON_UNWALL
	careless = mode[1] == *INIT_CARELESS;
#endif
	sys_5(SYS_prctl, PR_SET_DUMPABLE, careless, 0, 0, 0);
	if (!is_reaper)
		sys_5(SYS_prctl, PR_SET_NAME, "cordon-init", 0, 0, 0);
	/* Also of those that stop. */
	sys_4(SYS_rt_sigaction, SIGCHLD, default_action, NULL, sizeof(uint64_t));
	uint64_t all = ~0ULL, child = 1ULL << (SIGCHLD - 1);
	sys_4(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof(all));
	has_lock = pid_namespace && sys_3(SYS_fcntl, LAYERS_FD, F_GETFD, 0) >= 0;
	events = (int)sys_4(SYS_signalfd4, -1, &child, sizeof(child), O_CLOEXEC | O_NONBLOCK);
	if (events < 0)
		sys_exit(2);
	struct control_message started = { .kind = CONTROL_STARTED };
	sys6(SYS_sendto, CONTROL_FD, (long)&started, sizeof(started), MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
	for (;;) {
		struct timespec none = { 0 }, left, *most = time_left(&left);
		if (reap(command))
			most = &none;
		struct pollfd ready[2] = { { .fd = CONTROL_FD, .events = POLLIN }, { .fd = events, .events = POLLIN } };
		sys_5(SYS_ppoll, ready, 2, most, NULL, 0);
		if (ready[0].revents)
			obey(pid_namespace, command);
		if (ready[1].revents) {
			char drained[128];
			reap(command); /* mostly that is all */
			sys_3(SYS_read, events, drained, sizeof(drained));
		}
	}
}

static __attribute__((noreturn, used)) void init_main(const long *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);
	if (stack[0] < 3)
		sys_exit(2);
	if (*argv[1] == *INIT_USER)
		user_serve();
	if (*argv[1] == *INIT_STARTER)
		starter_serve((char *)stack[1]);
	init_serve(argv[1], number(argv[2]));
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txorl %ebp, %ebp\n\tmovq %rsp, %rdi\n\tandq $-16, %rsp\n\tcall init_main\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, xzr\n\tmov x0, sp\n\tbl init_main\n");
#endif
