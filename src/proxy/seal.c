/* The seal: see seal.h. Limits, privileges, Landlock, seccomp, in this order: each would refuse what comes before
 * it. */
#include "proxy/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compat.h"

#define SANDBOX_ID 65530        /* as launch.h */

void seal_prepare(int socket_fd)
{
	close_range((unsigned)socket_fd + 1, ~0U, 0);
	prctl(PR_SET_NAME, "cordon-proxy");
	setsid();
}

int seal_enter_network(int fd, bool is_in_user)
{
	return setns(fd, is_in_user ? CLONE_NEWNET : CLONE_NEWUSER);
}

const char *seal_drop_root(void)
{
	if (geteuid() != 0)
		return NULL;
	/* EINVAL: a user namespace in which there is no such user. What root may do there goes with the
	 * capabilities. */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return "cannot leave root's groups";
	if ((setresgid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID) < 0 || setresuid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID) < 0) &&
	    errno != EINVAL)
		return "cannot become another user than root";
	return NULL;
}

/* ---- limits and privileges -------------------------------------------------------------------------------------- */

static const char *limit(uint64_t *descriptors)
{
	static const int none[] = { RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE };
	struct rlimit files;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (setrlimit((__rlimit_resource_t)none[i], &(struct rlimit){ 0, 0 }) < 0)
			return "cannot limit resources";
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return "cannot limit descriptors";
	if (files.rlim_max > *descriptors)
		files.rlim_max = *descriptors;
	files.rlim_cur = *descriptors = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? "cannot limit descriptors" : NULL;
}

static const char *drop_privileges(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return "cannot drop privileges";
#if !SEAL_IS_SANITIZED
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return "cannot become untraceable";
#endif
	return NULL;
}

/* Without a single rule: nothing can be reached by a path. */
static const char *restrict_files(void)
{
	struct landlock_ruleset attributes = { .handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1 };
	size_t size = sizeof(attributes.handled_access_fs);
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi <= 0)
		return NULL; /* this kernel has none; the filter refuses every path by itself */
	if (abi >= 2)
		attributes.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		attributes.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		attributes.handled_access_fs |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	if (abi >= 4) {
		attributes.handled_access_net = LANDLOCK_ACCESS_NET_BIND_TCP;
		size += sizeof(attributes.handled_access_net);
	}
	if (abi >= 6) {
		attributes.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;
		size = sizeof(attributes);
	}
	auto_close int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
	if (ruleset < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return "cannot enforce Landlock";
	return NULL;
}

/* ---- system calls ----------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "this architecture has no filter yet"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The lower half: the kernel reads no more of an int. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARG(n) LOAD(args[n])
#endif
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
/* Jumps over so many instructions. */
#define IF_SKIP(value, over) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), over, 0)
#define UNLESS_SKIP(value, over) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, over)
#define MASK(bits) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)(bits))

#define CALL(name) UNLESS_SKIP(SYS_##name, 1), ALLOW
/* With this value of one argument. */
#define CALL_WITH(name, n, value) UNLESS_SKIP(SYS_##name, 4), ARG(n), IF_SKIP(value, 1), KILL, ALLOW
/* Without these bits in an argument. */
#define CALL_WITHOUT(name, n, bits) UNLESS_SKIP(SYS_##name, 5), ARG(n), MASK(bits), IF_SKIP(0, 1), KILL, ALLOW
/* This level and this option. */
#define CALL_OPTION(name, level, option) \
	UNLESS_SKIP(SYS_##name, 6), ARG(1), UNLESS_SKIP(level, 3), ARG(2), UNLESS_SKIP(option, 1), ALLOW, LOAD(nr)

static const struct sock_filter beginning[] = {
	LOAD(arch),
	IF_SKIP(ARCH, 1),
	KILL,
	LOAD(nr),
};

/* Of a proxy that reaches hosts. */
static const struct sock_filter reaching[] = {
	CALL(splice),
	CALL(sendmsg),                  /* of the resolver; it passes no descriptor on that was not there before */
	CALL(connect),
	CALL(pipe2),
	CALL(read),                     /* the resolver's timer */
	CALL(timerfd_settime),
	CALL_WITH(fcntl, 1, F_SETPIPE_SZ),
	CALL_OPTION(getsockopt, SOL_SOCKET, SO_ERROR),
	CALL_OPTION(getsockopt, SOL_SOCKET, SO_MEMINFO), /* how much a socket takes, of the proxy's own */
	/* TCP and UDP, of IPv4 and IPv6. */
	UNLESS_SKIP(SYS_socket, 9),
	ARG(0),
	IF_SKIP(AF_INET, 1),
	UNLESS_SKIP(AF_INET6, 5),
	ARG(1),
	MASK(~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK)),
	IF_SKIP(SOCK_STREAM, 1),
	UNLESS_SKIP(SOCK_DGRAM, 1),
	ALLOW,
	KILL,
};

/* What a library for TLS does besides: which process it is in, and its locks. */
static const struct sock_filter encrypting[] = {
	CALL(getpid),
	CALL(futex),
};

static const struct sock_filter answering[] = {
	/* Waiting, and what listeners need. */
#ifdef SYS_epoll_wait
	CALL(epoll_wait),
#endif
	CALL(epoll_pwait),
	CALL(epoll_ctl),
	CALL(recvfrom),
	CALL(sendto),
	CALL(accept4),
	CALL(close),
	CALL(shutdown),
	CALL(getsockname),
	CALL_OPTION(setsockopt, IPPROTO_TCP, TCP_NODELAY),
	CALL_OPTION(setsockopt, SOL_SOCKET, SO_LINGER),
	/* Memory, never to be executed. */
	CALL_WITHOUT(mmap, 2, PROT_EXEC),
	CALL(munmap),
	CALL(mremap),
	CALL(madvise),
	CALL(brk),
	/* Clocks and chance. */
	CALL(clock_gettime),
	CALL(gettimeofday),
	CALL(getrandom),
	/* The end. */
#ifdef SYS_poll
	CALL(poll),
#endif
	CALL(ppoll),
	CALL(restart_syscall),
	CALL(exit_group),
#if SEAL_IS_SANITIZED
	/* Test builds only: what the sanitizers do, and the report they write. */
	CALL_WITHOUT(mprotect, 2, PROT_EXEC),
	CALL(sigaltstack),
	CALL(write),
	CALL(futex),
	CALL(getpid),
	CALL(gettid),
	CALL(sched_yield),
	CALL(openat),
	CALL(rt_sigprocmask),
	CALL(rt_sigaction),
	CALL(readlink),
	CALL(ioctl),
#endif
	KILL,
};

enum seal_use { SEAL_OFFLINE, SEAL_REACHING, SEAL_ENCRYPTING };

static size_t put(struct sock_filter *filter, size_t at, const struct sock_filter *more, size_t count)
{
	memcpy(filter + at, more, count * sizeof(*more));
	return at + count;
}

/* What reaches hosts ends with a KILL of its own, behind the check of a socket's kind, and so comes after what
 * encrypts. */
static const char *filter_calls(enum seal_use use)
{
	struct sock_filter
		filter[ARRAY_SIZE(beginning) + ARRAY_SIZE(encrypting) + ARRAY_SIZE(reaching) + ARRAY_SIZE(answering)];
	size_t count = put(filter, 0, beginning, ARRAY_SIZE(beginning));
	if (use == SEAL_ENCRYPTING)
		count = put(filter, count, encrypting, ARRAY_SIZE(encrypting));
	if (use != SEAL_OFFLINE)
		count = put(filter, count, reaching, ARRAY_SIZE(reaching));
	count = put(filter, count, answering, ARRAY_SIZE(answering));
	struct sock_fprog program = { (unsigned short)count, filter };
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? "cannot install a seccomp filter" :
	                                                                        NULL;
}

static const char *raise_for(uint64_t *descriptors, enum seal_use use)
{
#if !SEAL_IS_SANITIZED
	/* Whatever 0, 1 and 2 were: nothing is to be read from or written to them. */
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
#endif
	const char *why = limit(descriptors);
	if (!why)
		why = drop_privileges();
	if (!why)
		why = restrict_files();
	return why ? why : filter_calls(use);
}

const char *seal_raise(uint64_t *descriptors, bool offline)
{
	return raise_for(descriptors, offline ? SEAL_OFFLINE : SEAL_REACHING);
}

const char *seal_raise_for_tls(uint64_t *descriptors)
{
	return raise_for(descriptors, SEAL_ENCRYPTING);
}
