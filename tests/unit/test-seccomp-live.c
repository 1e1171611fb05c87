/* The system-call filter, installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profile/seccomp.h"
#include "seccomp-vectors.h"
#include "skip.h"

static int refused(long result, int error)
{
	return result == -1 && errno == error ? 0 : 1;
}

static int live_basics(void)
{
	struct rlimit limit;
	int failed = getpid() <= 0 || unshare(CLONE_FS) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0;
	failed |= refused(mount("none", "/", NULL, MS_REMOUNT, NULL), EPERM);
	failed |= refused(unshare(CLONE_NEWUSER), EPERM);
	failed |= refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD | 1ul << 40, 0, 0, 0, 0), EPERM);
	failed |= refused(syscall(SYS_clone3, NULL, 0), ENOSYS);
	failed |= refused(syscall(425 /* io_uring_setup */, 1, NULL), ENOSYS);
	failed |= refused(syscall(999), ENOSYS);
	failed |= refused(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT);
	failed |= refused(socket(AF_INET, SOCK_PACKET, 0), EPERM);
	failed |= refused(socket(AF_NETLINK, SOCK_RAW, 9), EPROTONOSUPPORT);
	return failed | (socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0) | (socket(AF_UNIX, SOCK_DGRAM, 0) < 0);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Zero if no process was made; the child, if there is one, ends here. */
static int childless(long pid)
{
	int error = errno;
	if (pid == 0)
		_exit(7);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	errno = error;
	return refused(pid, EPERM);
}

static int live_threads_only(void)
{
	pthread_t thread;
	int failed = childless(fork()) | childless(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	pid_t child = vfork();
	if (child == 0)
		_exit(7);
	failed |= child != -1;
	return failed | (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0);
}

static int live_spawn(void)
{
	int status;
	pid_t child = fork();
	if (child == 0)
		_exit(7);
	return child < 0 || waitpid(child, &status, 0) != child || status != 7 << 8 || live_threads_only() == 0;
}

static int live_no_network(void)
{
	return refused(socket(AF_INET, SOCK_DGRAM, 0), EPERM) | refused(socket(AF_INET6, SOCK_STREAM, 0), EPERM) |
	       refused(socket(AF_NETLINK, SOCK_RAW, 0), EPERM) | (socket(AF_UNIX, SOCK_STREAM, 0) < 0);
}

/* Bound by the parent before the filter: what a command must not be able to send to. */
static struct sockaddr_un outside;
static socklen_t outside_length;

static int live_datagram_pair_reaches_outside(void)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
		return 1;
	return sendto(pair[0], "x", 1, 0, (struct sockaddr *)&outside, outside_length) != 1;
}

static int live_no_unix(void)
{
	int pair[2];
	int failed = refused(socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
	failed |= refused(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), EPERM);
	failed |= refused(socketpair(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0, pair), EPERM);
	if (failed || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 1;
	/* Neither while connected nor after the other half is gone may the kernel let it connect anew. */
	for (int i = 0; i < 2; i++) {
		failed |= connect(pair[0], (struct sockaddr *)&outside, outside_length) == 0;
		failed |= sendto(pair[0], "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&outside, outside_length) == 1;
		close(pair[1]);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return 1;
	close(pair[1]);
	return failed | (connect(pair[0], (struct sockaddr *)&outside, outside_length) == 0);
}

static int live_no_memfd(void)
{
	return refused(memfd_create("x", 0), EPERM);
}

/* What is asked for is what there is: without the filter nobody is to be the slower for it. By a thread's number, as
 * libraries do it, is not told from another's. */
static int live_among_others(void)
{
	pid_t parent = getppid();
	int priority = getpriority(PRIO_PROCESS, 0);
	cpu_set_t processors;
	sched_getaffinity(0, sizeof(processors), &processors);
	int failed = refused(shmget(IPC_PRIVATE, 4096, 0600), EPERM);
	failed |= refused(sched_setaffinity(parent, sizeof(processors), &processors), EPERM);
	failed |= refused(setpriority(PRIO_PROCESS, (id_t)parent, priority), EPERM) |
	          refused(setpriority(PRIO_PGRP, 0, priority), EPERM);
	failed |= refused(syscall(SYS_ioprio_set, 1, parent, 0), EPERM) | (syscall(SYS_ioprio_set, 1, 0, 0) != 0);
	return failed | (sched_setaffinity(0, sizeof(processors), &processors) != 0) |
	       (setpriority(PRIO_PROCESS, 0, priority) != 0);
}

static int live_own_limits(void)
{
	struct rlimit limit, core = { 0, 0 };
	int failed =
		refused(prlimit(0, RLIMIT_CORE, &core, &limit), EPERM) | (prlimit(0, RLIMIT_CORE, &core, NULL) != 0);
	return failed | refused(prlimit(getppid(), RLIMIT_CPU, NULL, &limit), EPERM) |
	       (prlimit(0, RLIMIT_CPU, NULL, &limit) != 0);
}

/* Where the attempts on files are made; removed by the parent. */
static char room[] = "/tmp/test-seccomp-XXXXXX";
static int room_fd = -1;

static mode_t mode_of(const char *name)
{
	struct stat info;
	return fstatat(room_fd, name, &info, 0) == 0 ? info.st_mode & 07777 : 0177777;
}

static int live_no_set_id_by_chmod(int file)
{
	int failed = refused(fchmod(file, 04755), EPERM) | refused(fchmod(file, 02755), EPERM);
	failed |= refused(fchmodat(room_fd, "file", 04755, 0), EPERM);
	failed |= refused(syscall(SYS_fchmodat, room_fd, "file", 04755), EPERM);
	failed |= refused(syscall(SYS_fchmodat, room_fd, "file", 0104755 | 1ul << 40), EPERM);
	failed |= refused(syscall(452 /* fchmodat2 */, room_fd, "file", 02755, 0), EPERM);
#ifdef SYS_chmod
	failed |= refused(chmod("file", 04755), EPERM) | refused(syscall(SYS_chmod, "file", 06000), EPERM);
#endif
	failed |= fchmod(file, 0755) != 0 || fchmodat(room_fd, "file", 01755, 0) != 0;
	return failed | (mode_of("file") != 01755);
}

static int live_no_set_id_by_making(void)
{
	int failed = refused(openat(room_fd, "made", O_CREAT | O_WRONLY, 04755), EPERM);
	failed |= refused(openat(room_fd, "file", O_CREAT | O_WRONLY, 02755), EPERM);
	failed |= refused(openat(room_fd, ".", O_TMPFILE | O_WRONLY, 04755), EPERM);
	failed |= refused(mknodat(room_fd, "made", S_IFREG | 04755, 0), EPERM);
#ifdef SYS_open
	failed |= refused(syscall(SYS_open, "made", O_CREAT | O_WRONLY, 04755), EPERM);
	failed |= refused(syscall(SYS_open, ".", O_TMPFILE | O_WRONLY, 02755), EPERM);
	failed |= refused(syscall(SYS_creat, "made", 06755), EPERM);
	failed |= refused(syscall(SYS_mknod, "made", S_IFREG | 04755, 0), EPERM);
	failed |= syscall(SYS_open, "file", O_RDONLY, ~0ul) < 0;
#endif
	/* struct open_how: flags, mode, resolve. */
	const uint64_t how[] = { O_CREAT | O_WRONLY, 04755, 0 };
	failed |= refused(syscall(437 /* openat2 */, room_fd, "made", how, sizeof(how)), ENOSYS);
	return failed | (mode_of("made") != 0177777);
}

static int live_no_set_id(void)
{
	umask(0);
	int file = openat(room_fd, "file", O_CREAT | O_WRONLY, 01644);
	int failed = file < 0 || fchdir(room_fd) != 0 || live_no_set_id_by_chmod(file) | live_no_set_id_by_making();
	/* Without O_CREAT the mode is whatever was in the register. */
	failed |= syscall(SYS_openat, room_fd, "file", O_RDONLY, ~0ul) < 0;
	failed |= syscall(SYS_openat, room_fd, ".", O_RDONLY | O_DIRECTORY, ~0ul) < 0;
	failed |= openat(room_fd, ".", O_TMPFILE | O_WRONLY, 0755) < 0 && errno != EOPNOTSUPP;
	failed |= mknodat(room_fd, "fifo", S_IFIFO | 0644, 0) != 0;
	/* Let through, since the kernel drops it: the day it does not, this must be refused as well. */
	return failed | (mkdirat(room_fd, "directory", 06755) != 0 || mode_of("directory") != 0755);
}

static int live_no_attributes(void)
{
	static const struct timespec times[2];
	int file = openat(room_fd, "other", O_CREAT | O_RDWR, 0644);
	int failed =
		file < 0 || refused(fchmod(file, 0600), EPERM) | refused(fchmodat(room_fd, "other", 0600, 0), EPERM);
	failed |= refused(fchown(file, getuid(), getgid()), EPERM);
	failed |= refused(fchownat(room_fd, "other", getuid(), getgid(), AT_SYMLINK_NOFOLLOW), EPERM);
	failed |= refused(futimens(file, times), EPERM) | refused(utimensat(room_fd, "other", times, 0), EPERM);
	failed |= refused(fsetxattr(file, "user.x", "x", 1, 0), EPERM) | refused(fremovexattr(file, "user.x"), EPERM);
	failed |= refused(openat(room_fd, "made", O_CREAT | O_WRONLY, 04755), EPERM);
	return failed | (mode_of("other") != 0644);
}

/* By a descriptor that is none: the kernel says EBADF to whatever request reaches it. */
static int live_ioctl(void)
{
	int failed = 0, terminal = posix_openpt(O_RDWR | O_NOCTTY), count;
	static const uint32_t refused_requests[] = { TIOCSTI, TIOCLINUX, TIOCSETD, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR,
	                                             IOCTL_ENABLE_VERITY, IOCTL_SNAP_CREATE_V2 };
	for (size_t i = 0; i < ARRAY_SIZE(refused_requests); i++) {
		failed |= refused(syscall(SYS_ioctl, -1, refused_requests[i], 0), ENOTTY);
		failed |= refused(syscall(SYS_ioctl, -1, refused_requests[i] | 1ul << 32, 0), ENOTTY);
		failed |= refused(syscall(SYS_ioctl, -1, refused_requests[i] | ~LOW, 0), ENOTTY);
	}
	/* Called with a sign-extended int, as C libraries do whose ioctl() takes one. */
	failed |= refused(syscall(SYS_ioctl, -1, (long)(int32_t)TIOCGPTN, &count), EBADF);
	failed |= syscall(SYS_ioctl, terminal, (long)(int32_t)TIOCGPTN, &count) != 0 || !isatty(terminal);
	return failed | (ioctl(room_fd, FIONREAD, &count) != 0 && errno == EPERM);
}

static int install(unsigned options)
{
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	size_t length = seccomp_emit(seccomp_native_arch, options, filter, SECCOMP_FILTER_MAX);
	struct sock_fprog program = { (unsigned short)length, filter };
	return length == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	       syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 0, &program) != 0;
}

#define UNFILTERED (~0u)

/* The wait status of a child that runs `attempt` behind the filter. */
static int behind_filter(unsigned options, int (*attempt)(void))
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* cmocka's handlers would carry the child on into the next test. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		_exit(options != UNFILTERED && install(options) ? 99 : attempt());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void filter_holds(void **state)
{
	static const struct {
		const char *name;
		unsigned options;
		int (*attempt)(void);
	} rows[] = {
		{ "basics", 0, live_basics },
		{ "spawn", 0, live_spawn },
		{ "no_spawn", SECCOMP_NO_SPAWN, live_threads_only },
		{ "no_network", SECCOMP_NO_NETWORK, live_no_network },
		{ "unix", 0, live_datagram_pair_reaches_outside },
		{ "no_unix", SECCOMP_NO_UNIX, live_no_unix },
		{ "no_memfd", SECCOMP_NO_MEMFD, live_no_memfd },
		{ "among_others", SECCOMP_AMONG_OTHERS | SECCOMP_OWN_LIMITS, live_among_others },
		{ "own_limits", SECCOMP_OWN_LIMITS, live_own_limits },
		{ "no_set_id", SECCOMP_OWN_LIMITS, live_no_set_id },
		{ "no_attributes", SECCOMP_NO_ATTRIBUTES, live_no_attributes },
		{ "ioctl", SECCOMP_OWN_LIMITS, live_ioctl },
	};
	(void)state;
	if (seccomp_native_arch == 0)
		skip_cannot("x86_64", "no filter for this architecture");
	auto_close int receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	outside.sun_family = AF_UNIX;
	outside_length = sizeof(outside);
	assert_int_equal(bind(receiver, (struct sockaddr *)&outside, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(receiver, (struct sockaddr *)&outside, &outside_length), 0);
	assert_non_null(mkdtemp(room));
	room_fd = open(room, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(room_fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int status = behind_filter(rows[i].options, rows[i].attempt);
		if (status != 0)
			fail_msg("%s: wait status %x", rows[i].name, (unsigned)status);
		/* Without the filter each must fail, or it shows nothing. */
		if (rows[i].options && behind_filter(UNFILTERED, rows[i].attempt) == 0)
			fail_msg("%s: holds without the filter as well", rows[i].name);
	}
	static const char *const left[] = { "file", "other", "made", "fifo" };
	for (size_t i = 0; i < ARRAY_SIZE(left); i++)
		unlinkat(room_fd, left[i], 0);
	unlinkat(room_fd, "directory", AT_REMOVEDIR);
	close(room_fd);
	assert_int_equal(rmdir(room), 0);
}

#ifdef __x86_64__
static int entry_32bit(void)
{
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L /* getpid */) : "memory", "r8", "r9", "r10", "r11");
	return (int)result > 0 ? 0 : (int)result == -ENOSYS ? 1 : 2;
}

static int entry_x32(void)
{
	long result = syscall(0x40000000 + SYS_getpid);
	return result > 0 ? 0 : errno == ENOSYS ? 1 : 2;
}

static void other_entries_are_closed(void **state)
{
	(void)state;
	int open = behind_filter(UNFILTERED, entry_32bit), closed = behind_filter(0, entry_32bit);
	if (open == 0)
		assert_int_equal(closed, 1 << 8);
	else
		print_message("# this kernel has no 32-bit entry (wait status %x)\n", (unsigned)open);
	assert_int_not_equal(closed, 0);
	assert_int_equal(behind_filter(0, entry_x32), 1 << 8);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filter_holds),
#ifdef __x86_64__
		cmocka_unit_test(other_entries_are_closed),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
