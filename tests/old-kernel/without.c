/* Runs a command on a machine that lacks something: without RULE[,RULE...] -- COMMAND...
 *
 *     without clone3:ENOSYS -- cordon run -- true
 *     without fsopen:ENOSYS,open_tree:EPERM -- cordon doctor
 *     without docker -- cordon run -- true
 *
 * A rule is a system call and the errno it gives, or a name from the table of hosts below. A call may be narrowed to
 * those with certain bits in one argument, `clone/0:0x10000000:EPERM`, or with one value: `fsconfig/1=0:EINVAL`.
 * Instead of an errno it may say NEVER: the call does not return, as one that waits for a file server that is gone. The
 * rules hold for everything the command starts, inside a sandbox too. As an ordinary user they come with no_new_privs,
 * without which a filter needs privileges; to root they are given without it. Libc only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RULES_MAX 64

struct named {
	const char *name;
	long number;
};
#define CALL(name) { #name, SYS_##name }
#define ERROR(name) { #name, name }

/* By number where the headers of Debian 12 do not know the name; these are the same on every architecture. */
static const struct named calls[] = {
	CALL(bpf),
	CALL(capset),
	CALL(chroot),
	CALL(clone),
	CALL(clone3),
	CALL(close_range),
	CALL(execveat),
	CALL(fallocate),
	CALL(flock),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fsopen),
	CALL(getcpu),
	CALL(keyctl),
	CALL(landlock_add_rule),
	CALL(landlock_create_ruleset),
	CALL(landlock_restrict_self),
	CALL(memfd_create),
	CALL(mount),
	CALL(mount_setattr),
	CALL(move_mount),
	CALL(open_tree),
	CALL(openat2),
	CALL(perf_event_open),
	CALL(pidfd_open),
	CALL(pidfd_send_signal),
	CALL(pivot_root),
	CALL(prlimit64),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(seccomp),
	CALL(sethostname),
	CALL(setns),
	CALL(statx),
	CALL(umount2),
	CALL(unshare),
	CALL(userfaultfd),
	CALL(waitid),
	CALL(setsid),
	CALL(fspick),
	CALL(add_key),
	CALL(request_key),
	CALL(faccessat2),
	CALL(timerfd_create),
	CALL(epoll_create1),
	CALL(socketpair),
	CALL(signalfd4),
	CALL(socket),
	CALL(bind),
};

static const struct named errors[] = {
	ERROR(ENOLCK), ERROR(ENOSYS), ERROR(EPERM),  ERROR(EACCES), ERROR(EINVAL), ERROR(EOPNOTSUPP),
	ERROR(ENOSPC), ERROR(EUSERS), ERROR(EAGAIN), ERROR(ENOMEM), ERROR(EMFILE), ERROR(EAFNOSUPPORT),
};

/* Docker's default profile, in what matters to a sandbox inside it; compared with the real one. */
static const struct {
	const char *name, *rules;
} hosts[] = {
	{ "docker",
	  "unshare:EPERM,setns:EPERM,mount:EPERM,umount2:EPERM,pivot_root:EPERM,open_tree:EPERM,move_mount:EPERM,"
	  "fsopen:EPERM,fsconfig:EPERM,fsmount:EPERM,fspick:EPERM,mount_setattr:EPERM,clone3:ENOSYS,"
	  "clone/0:0x7e020000:EPERM,bpf:EPERM,keyctl:EPERM,add_key:EPERM,request_key:EPERM,perf_event_open:EPERM,"
	  "userfaultfd:EPERM" },
};

static struct sock_filter filter[8 + 5 * RULES_MAX];
static unsigned short length;
static unsigned long flags;

static void emit(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	filter[length++] = (struct sock_filter){ code, yes, no, k };
}

static long look(const struct named *table, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(table[i].name, name))
			return table[i].number;
	fprintf(stderr, "without: %s is in no table\n", name);
	exit(2);
}

static void add_rule(char *rule)
{
	char *last = strrchr(rule, ':'), *slash = strchr(rule, '/');
	if (!last || length + 8 > (int)COUNT(filter)) {
		fprintf(stderr, "without: %s: not SYSCALL:ERRNO\n", rule);
		exit(2);
	}
	*last++ = '\0';
	bool never = !strcmp(last, "NEVER");
	uint32_t refuse =
		never ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | (uint32_t)look(errors, COUNT(errors), last);
	flags |= never ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	unsigned argument = 0;
	uint32_t bits = 0;
	bool is_value = false;
	if (slash) {
		*slash++ = '\0';
		is_value = strchr(slash, '=') != NULL;
		if (sscanf(slash, is_value ? "%u=%x" : "%u:%x", &argument, &bits) != 2)
			exit(2);
	}
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)look(calls, COUNT(calls), rule), 0, slash ? 3 : 1);
	if (slash) {
		emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, args) + 8 * argument, 0, 0);
		emit(BPF_JMP | (is_value ? BPF_JEQ : BPF_JSET) | BPF_K, bits, 0, 1);
	}
	emit(BPF_RET | BPF_K, refuse, 0, 0);
}

static void add_rules(const char *rules)
{
	char *copy = strdup(rules), *save = NULL;
	for (char *rule = copy ? strtok_r(copy, ",", &save) : NULL; rule; rule = strtok_r(NULL, ",", &save)) {
		size_t i = 0;
		while (i < COUNT(hosts) && strcmp(hosts[i].name, rule) != 0)
			i++;
		if (i < COUNT(hosts))
			add_rules(hosts[i].rules);
		else
			add_rule(rule);
	}
	free(copy);
}

int main(int argc, char **argv)
{
	if (argc < 4 || strcmp(argv[2], "--") != 0) {
		fprintf(stderr, "usage: without RULE[,RULE...] -- COMMAND...\n");
		return 2;
	}
	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
	add_rules(argv[1]);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	struct sock_fprog program = { length, filter };
	long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (listener < 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	/* Nobody answers, as long as somebody has it. */
	if (listener < 0 || (flags && fcntl((int)listener, F_SETFD, 0) < 0)) {
		perror("without: seccomp");
		return 2;
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
