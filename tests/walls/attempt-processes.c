/* Attempts on processes: seeing, signalling and reading others, making more than allowed, staying when it is over. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

static pid_t number(const char *text)
{
	return (pid_t)atol(text);
}

/* NAME TEXT: the variable has this value. */
enum answer try_variable(char **arguments)
{
	const char *value = getenv(arguments[0]);
	if (!value)
		note("not set");
	return value && !strcmp(value, arguments[1]) ? ESCAPED : CONTAINED;
}

/* TEXT: some other process has it in its environment. */
enum answer try_environments(char **arguments)
{
	DIR *directory = opendir("/proc");
	if (!directory)
		return broken("/proc");
	for (struct dirent *entry; (entry = readdir(directory));) {
		char path[300];
		snprintf(path, sizeof(path), "/proc/%s/environ", entry->d_name);
		int fd = number(entry->d_name) > 0 && number(entry->d_name) != getpid() ? open(path, O_RDONLY) : -1;
		if (fd < 0)
			continue;
		bool there = fd_contains(fd, arguments[0]);
		close(fd);
		if (there) {
			note("%s", path);
			return ESCAPED;
		}
	}
	return CONTAINED;
}

enum answer try_see(char **arguments)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%s/stat", arguments[0]);
	return escaped_if_fd(open(path, O_RDONLY));
}

enum answer try_signal(char **arguments)
{
	return escaped_if(kill(number(arguments[0]), 0) == 0);
}

enum answer try_pidfd_signal(char **arguments)
{
	int fd = (int)syscall(SYS_pidfd_open, number(arguments[0]), 0);
	return escaped_if(fd >= 0 && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0);
}

static enum answer trace(pid_t pid)
{
	bool seized = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
	return escaped_if(seized); /* our end detaches */
}

enum answer try_trace(char **arguments)
{
	return trace(number(arguments[0]));
}

/* PID ADDRESS TEXT: from its memory, by /proc. */
enum answer try_memory(char **arguments)
{
	char path[64], bytes[256] = "";
	snprintf(path, sizeof(path), "/proc/%s/mem", arguments[0]);
	int fd = open(path, O_RDONLY);
	ssize_t length = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes) - 1, (off_t)strtoull(arguments[1], NULL, 16));
	return escaped_if(length > 0 && strstr(bytes, arguments[2]));
}

/* The same by process_vm_readv. */
enum answer try_vm_read(char **arguments)
{
	char bytes[256] = "";
	struct iovec here = { bytes, sizeof(bytes) - 1 };
	struct iovec there = { (void *)strtoull(arguments[1], NULL, 16), sizeof(bytes) - 1 };
	ssize_t length = process_vm_readv(number(arguments[0]), &here, 1, &there, 1, 0);
	return escaped_if(length > 0 && strstr(bytes, arguments[2]));
}

/* PID FD TEXT: a descriptor of its becomes ours. */
enum answer try_take_fd(char **arguments)
{
	int pidfd = (int)syscall(SYS_pidfd_open, number(arguments[0]), 0);
	int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, atoi(arguments[1]), 0);
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return escaped_if(fd >= 0 && fd_contains(fd, arguments[2]));
}

enum answer try_renice(char **arguments)
{
	return escaped_if(setpriority(PRIO_PROCESS, (id_t)number(arguments[0]), 1) == 0);
}

enum answer try_limits_of(char **arguments)
{
	struct rlimit limit;
	return escaped_if(prlimit(number(arguments[0]), RLIMIT_CPU, NULL, &limit) == 0);
}

/* ---- cordon's own init ------------------------------------------------------------------------------------------- */

/* From the first moment, when init is not yet what it is going to be, and for a while. */
#define FOR_A_WHILE for (int i = 0; i < 200; i++, usleep(1000))

enum answer try_init_trace(char **arguments)
{
	(void)arguments;
	FOR_A_WHILE
		if (ptrace(PTRACE_SEIZE, init_pid, NULL, NULL) == 0)
			return ESCAPED;
	return escaped_if(false);
}

/* NAME: of its directory in /proc. */
enum answer try_init_open(char **arguments)
{
	char path[300];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)init_pid, arguments[0]);
	FOR_A_WHILE
		if (open(path, O_RDONLY) >= 0)
			return ESCAPED;
	return escaped_if(false);
}

/* NAME: of a link there, whose text only those who may trace it can read. */
enum answer try_init_link(char **arguments)
{
	char path[300], text[300];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)init_pid, arguments[0]);
	FOR_A_WHILE
		if (readlink(path, text, sizeof(text)) > 0)
			return ESCAPED;
	return escaped_if(false);
}

/* KIND: whoever must end us later is put behind us. */
enum answer try_init_schedule(char **arguments)
{
	const struct sched_param none = { 0 };
	bool policy = !strcmp(arguments[0], "policy"), processors = !strcmp(arguments[0], "processors");
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	FOR_A_WHILE
	if ((policy       ? sched_setscheduler(init_pid, SCHED_IDLE, &none)
	     : processors ? sched_setaffinity(init_pid, sizeof(one), &one)
	                  : setpriority(PRIO_PROCESS, (id_t)init_pid, 1)) == 0)
		return ESCAPED;
	return escaped_if(false);
}

/* PATH: made if init is gone. To be tried --inline: then so may be who waits for the answer. */
enum answer try_init_kill(char **arguments)
{
	kill(init_pid, SIGKILL);
	for (int i = 0; i < 100 && getppid() == init_pid; i++)
		usleep(2000);
	if (getppid() == init_pid)
		return CONTAINED;
	return escaped_if_fd(open(arguments[0], O_WRONLY | O_CREAT, 0644));
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

/* TEXT: in a file that was open from the start. */
enum answer try_descriptors(char **arguments)
{
	for (int fd = 3; fd < 1024; fd++) {
		char bytes[256] = "";
		if (pread(fd, bytes, sizeof(bytes) - 1, 0) > 0 && strstr(bytes, arguments[0])) {
			note("descriptor %d", fd);
			return ESCAPED;
		}
	}
	return CONTAINED;
}

/* FD: a standard descriptor is a file of the caller's, which can be changed through it. */
enum answer try_stdio(char **arguments)
{
	struct stat info;
	char path[64];
	int fd = atoi(arguments[0]);
	if (fstat(fd, &info) < 0)
		return broken("fstat");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return escaped_if(S_ISREG(info.st_mode) && chmod(path, 0604) == 0);
}

/* ---- staying ----------------------------------------------------------------------------------------------------- */

static void stay(const char *kind, const char *mark)
{
	bool keep_pipes = !strcmp(kind, "pipes");
	if (!keep_pipes) {
		int null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
	}
	if (strcmp(kind, "child"))
		setsid();
	if (!strcmp(kind, "daemon") && fork() > 0)
		_exit(0);
	if (!strcmp(kind, "deaf"))
		for (int signal_number = 1; signal_number < 32; signal_number++)
			signal(signal_number, SIG_IGN);
	execl(self_path, mark, "pause", (char *)NULL);
	_exit(1);
}

/* MARK KIND…: processes that carry the mark as their name stay behind, one of each kind. */
enum answer try_leave(char **arguments)
{
	const char *mark = arguments[0];
	for (char **kind = arguments + 1; *kind; kind++) {
		char *name;
		if (asprintf(&name, "%s-%s", mark, *kind) < 0)
			return broken("memory");
		pid_t pid = fork_quietly();
		if (pid < 0)
			return broken("fork");
		if (pid == 0)
			stay(*kind, name);
		bool stopped = !strcmp(*kind, "stopped");
		usleep(stopped ? 200000 : 20000); /* it has its name by then, or would never get it */
		if (stopped)
			kill(pid, SIGSTOP);
	}
	return ESCAPED; /* the host looks for them afterwards */
}

/* SECONDS PATH: still there then, and able to write to the file. */
enum answer try_outlast(char **arguments)
{
	usleep((useconds_t)(atof(arguments[0]) * 1e6));
	return escaped_if_fd(open(arguments[1], O_WRONLY | O_CREAT, 0644));
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

enum answer try_fork_many(char **arguments)
{
	int wanted = atoi(arguments[0]), made = 0;
	pid_t *children = calloc((size_t)wanted, sizeof(*children));
	for (; children && made < wanted; made++) {
		children[made] = fork_quietly();
		if (children[made] < 0)
			break;
		if (children[made] == 0) {
			pause();
			_exit(0);
		}
	}
	enum answer answer = escaped_if(made == wanted);
	note(" (%d processes)", made);
	for (int i = 0; i < made; i++)
		kill(children[i], SIGKILL);
	for (int i = 0; i < made; i++)
		waitpid(children[i], NULL, 0);
	return answer;
}

static int use_memory(void *argument)
{
	size_t size = *(size_t *)argument;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < size; i += 4096)
		memory[i] = 1;
	/* Where no control group counts it, memory is looked at now and then. */
	sleep(3);
	return 0;
}

/* BYTES PATH: really had, for three seconds, by a process that may be ended for it; then there is a file at PATH. */
enum answer try_use_memory(char **arguments)
{
	size_t size = (size_t)atoll(arguments[0]);
	enum answer answer = run_child(use_memory, &size);
	return answer == ESCAPED ? escaped_if_fd(open(arguments[1], O_WRONLY | O_CREAT, 0644)) : answer;
}

enum answer try_open_many(char **arguments)
{
	struct rlimit limit;
	int wanted = atoi(arguments[0]), made = 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	while (made < wanted && dup(2) >= 0)
		made++;
	return escaped_if(made == wanted);
}

/* A dump of any size; one byte is what also keeps the kernel from piping one to a program. */
enum answer try_core(char **arguments)
{
	(void)arguments;
	struct rlimit limit;
	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return broken("getrlimit");
	return limit.rlim_max > 1 ? ESCAPED : CONTAINED;
}

/* None at all, by which the kernel means: none but to that program. */
enum answer try_core_piped(char **arguments)
{
	(void)arguments;
	struct rlimit limit = { 0, 0 };
	setrlimit(RLIMIT_CORE, &limit);
	syscall(SYS_setrlimit, RLIMIT_CORE, &limit);
	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return broken("getrlimit");
	return limit.rlim_cur == 0 ? ESCAPED : CONTAINED;
}

/* PATH, which is made: whoever opens it waits for us. */
enum answer try_lease(char **arguments)
{
	int fd = open(arguments[0], O_RDONLY | O_CREAT, 0644);
	return fd < 0 ? broken(arguments[0]) : escaped_if(fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
}

/* ---- making processes, without making one to try it -------------------------------------------------------------- */

enum answer try_fork(char **arguments)
{
	(void)arguments;
	return escaped_if_made(
		syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)); /* what fork() of every C library is */
}

enum answer try_vfork(char **arguments)
{
	(void)arguments;
#ifdef SYS_vfork
	long pid = syscall(SYS_fork);
	if (pid < 0 && errno == ENOSYS)
		return broken("fork");
	if (escaped_if_made(pid) == ESCAPED)
		return ESCAPED;
#endif
	pid_t child = vfork();
	if (child == 0)
		_exit(0);
	return escaped_if_made(child);
}

static int nothing(void *argument)
{
	(void)argument;
	return 0;
}

/* Sharing all that a thread shares, but a process of its own. */
enum answer try_clone(char **arguments)
{
	(void)arguments;
	static char stack[65536] __attribute__((aligned(16)));
	return escaped_if_made(clone(nothing, stack + sizeof(stack),
	                             CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD, NULL));
}

enum answer try_clone3(char **arguments)
{
	(void)arguments;
	struct clone_args how = { .exit_signal = SIGCHLD };
	return escaped_if_made(syscall(SYS_clone3, &how, sizeof(how)));
}

enum answer try_posix_spawn(char **arguments)
{
	pid_t pid;
	char *words[] = { arguments[0], "hello", NULL }, *environment[] = { NULL };
	errno = posix_spawn(&pid, arguments[0], NULL, NULL, words, environment);
	return escaped_if_made(errno == 0 ? pid : -1);
}

static void *mark_done(void *argument)
{
	*(bool *)argument = true;
	return NULL;
}

/* Not an attempt to get out: threads must work. "contained" is the good answer here as well. */
enum answer try_thread(char **arguments)
{
	(void)arguments;
	pthread_t thread;
	bool done = false;
	errno = pthread_create(&thread, NULL, mark_done, &done);
	if (errno)
		return broken("pthread_create");
	pthread_join(thread, NULL);
	return done ? CONTAINED : BROKEN;
}
