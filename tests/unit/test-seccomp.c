/* The system-call filter, asked in five ways: against the table and a plain statement of the argument rules; against a
 * filter that libseccomp makes from the same sets; the table against libseccomp's numbers; installed for real; and how
 * long and how deep it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/audit.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "base/json.h"
#include "profile/seccomp.h"
#include "../support/bpf-run.h"

#define ALLOW SECCOMP_RET_ALLOW
#define REFUSE(error) (SECCOMP_RET_ERRNO | (error))
#define OPTIONS_ALL ((1u << SECCOMP_OPTION_MAX) - 1)
#define LOW 0xffffffffull
#define NEW_ANY 0x7e020080u
#define THREAD 0x10000u
#define UNSHARE_FINE 0x50f00u
#define PERSONA_FINE 0x60008u
#define IOCTL_FSSETXATTR 0x401c5820u
#define IOCTL_SETFLAGS 0x40086602u
#define IOCTL_ENABLE_VERITY 0x40806685u
#define SET_ID 06000u
#define CREATES 020000100u

static const struct {
	uint32_t audit, scmp;
	const char *name;
} arches[] = {
	{ AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64, "x86_64" },
	{ AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, "aarch64" },
};

/* ---- The argument rules, said plainly ---------------------------------------------------------------------------- */

static uint32_t expect_clone(unsigned options, const uint32_t *low)
{
	if (low[0] & NEW_ANY)
		return REFUSE(EPERM);
	return options & SECCOMP_NO_SPAWN && !(low[0] & THREAD) ? REFUSE(EPERM) : ALLOW;
}

static bool expect_ip_protocol(uint32_t protocol)
{
	static const uint32_t fine[] = { 0, 1, 6, 17, 58, 262 };
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		if (protocol == fine[i])
			return true;
	return false;
}

static uint32_t expect_socket(unsigned options, const uint32_t *low)
{
	uint32_t type = low[1] & 0xf;
	switch (low[0]) {
	case 1:
		return options & SECCOMP_NO_UNIX ? REFUSE(EPERM) : ALLOW;
	case 2:
	case 10:
		if (options & SECCOMP_NO_NETWORK || (type != 1 && type != 2))
			return REFUSE(EPERM);
		return expect_ip_protocol(low[2]) ? ALLOW : REFUSE(EPROTONOSUPPORT);
	case 16:
		if (options & SECCOMP_NO_NETWORK)
			return REFUSE(EPERM);
		return low[2] == 0 ? ALLOW : REFUSE(EPROTONOSUPPORT);
	default:
		return REFUSE(EAFNOSUPPORT);
	}
}

static uint32_t expect_socketpair(unsigned options, const uint32_t *low)
{
	uint32_t type = low[1] & 0xf;
	if (low[0] != 1)
		return REFUSE(EOPNOTSUPP);
	return options & SECCOMP_NO_UNIX && type != 1 && type != 5 ? REFUSE(EPERM) : ALLOW;
}

static bool expect_ioctl_refused(unsigned options, uint32_t request)
{
	if (request == IOCTL_SETFLAGS || request == IOCTL_ENABLE_VERITY)
		return options & SECCOMP_NO_ATTRIBUTES;
	return request == 0x5412 || request == 0x541c || request == 0x5423 || request == IOCTL_FSSETXATTR;
}

static uint32_t expect_arguments(enum seccomp_set set, unsigned options, const struct seccomp_data *data)
{
	const uint32_t low[] = { (uint32_t)data->args[0], (uint32_t)data->args[1], (uint32_t)data->args[2],
	                         (uint32_t)data->args[3] };
	switch (set) {
	case SECCOMP_SET_CLONE: return expect_clone(options, low);
	case SECCOMP_SET_UNSHARE: return data->args[0] & ~(uint64_t)UNSHARE_FINE ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_SOCKET: return expect_socket(options, low);
	case SECCOMP_SET_SOCKETPAIR: return expect_socketpair(options, low);
	case SECCOMP_SET_IOCTL: return expect_ioctl_refused(options, low[1]) ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_PERSONALITY: return low[0] == LOW || !(low[0] & ~PERSONA_FINE) ? ALLOW : REFUSE(EPERM);
	case SECCOMP_SET_LIMITS: return low[0] == 0 ? ALLOW : REFUSE(EPERM);
	case SECCOMP_SET_CHMOD:
	case SECCOMP_SET_MAKE: return low[1] & SET_ID ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_CHMODAT:
	case SECCOMP_SET_MAKEAT: return low[2] & SET_ID ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_OPEN: return low[1] & CREATES && low[2] & SET_ID ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_OPENAT: return low[2] & CREATES && low[3] & SET_ID ? REFUSE(EPERM) : ALLOW;
	default: fail_msg("%s: no rule for its arguments", seccomp_set_name(set)); return 0;
	}
}

static uint32_t expect(unsigned options, const struct seccomp_data *data)
{
	enum seccomp_set set = seccomp_set_of(data->arch, (uint32_t)data->nr);
	switch (seccomp_set_answer(set, options)) {
	case SECCOMP_ALLOWED: return ALLOW;
	case SECCOMP_SAYS_EPERM: return REFUSE(EPERM);
	case SECCOMP_SAYS_ENOSYS: return REFUSE(ENOSYS);
	default: return expect_arguments(set, options, data);
	}
}

/* ---- What is asked ---------------------------------------------------------------------------------------------- */

static struct vectors {
	uint64_t args[8192][6];
	size_t count, sockets;          /* the first so many are of use to sockets only */
} vectors;

static const uint64_t uppers[] = { 0, 1ull << 32, ~LOW };

static void vector_add_four(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	for (size_t i = 0; i < ARRAY_SIZE(uppers); i++) {
		assert_true(vectors.count < ARRAY_SIZE(vectors.args));
		uint64_t *args = vectors.args[vectors.count++];
		args[0] = a | uppers[i], args[1] = b | uppers[(i + 1) % 3], args[2] = c | uppers[(i + 2) % 3];
		args[3] = d | uppers[i];
		args[4] = args[5] = LOW * i;
	}
}

static void vector_add(uint64_t a, uint64_t b, uint64_t c)
{
	vector_add_four(a, b, c, LOW * (vectors.count & 1));
}

static int vectors_make(void **state)
{
	static const uint32_t families[] = { 0, 1, 2, 10, 16, 17, 21, 30, 38, 40, 44, 0xffffffff };
	static const uint32_t types[] = { 0, 1, 2, 3, 4, 5, 6, 10, 15, 1 | SOCK_CLOEXEC, 2 | SOCK_CLOEXEC | SOCK_NONBLOCK };
	static const uint32_t protocols[] = { 0, 1, 6, 9, 17, 58, 132, 262 };
	static const uint32_t firsts[] = {
		0x10f00, 0x3d0f00, 0x4111, 0x1200011, 0x100, 0x200, 0x400, 0x40000, 0x100000, 0x600, SIGCHLD, THREAD,
		NEW_ANY, NEW_ANY | THREAD, 0x20000, 0x80, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000,
		0x40000000, 0x80000000, 0x10000000 | 0x3d0f00, 8, 0x40008, 0x60008, 0x400000, 0x200000, 0x7fffffff,
	};
	static const uint32_t seconds[] = { 0x5401, 0x5411, 0x5412, 0x5413, 0x541c, 0x541d, 0x5423, 0x5424,
	                                    IOCTL_FSSETXATTR, 0x801c581f, 0xffff5412, IOCTL_SETFLAGS, 0x80086601,
	                                    IOCTL_ENABLE_VERITY, 0xc0046686 };
	static const uint32_t flags[] = { 0, 01, 02, 0100, 0101, 03101, 040000, 0200000, 020000000, 020040002, 020200002,
	                                  02000000, 010000000, ~CREATES, 0xffffffff };
	static const uint32_t modes[] = { 0, 0644, 0755, 01777, 02000, 04000, 06000, 02755, 04755, 07777, 0100644, 0104755,
	                                  0102755, 010000, 0x10000, 0xffff0000, 0xffffffff, (uint32_t)~SET_ID };
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(families); f++)
		for (size_t t = 0; t < ARRAY_SIZE(types); t++)
			for (size_t p = 0; p < ARRAY_SIZE(protocols); p++)
				vector_add(families[f], types[t], protocols[p]);
	vectors.sockets = vectors.count;
	for (size_t i = 0; i < ARRAY_SIZE(firsts); i++)
		vector_add(firsts[i], 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++)
		vector_add(1, seconds[i], 0);
	/* Flags and mode of open, of openat, and modes alone: as the second argument. */
	for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
		for (size_t f = 0; f < ARRAY_SIZE(flags); f++) {
			vector_add(0x1000, flags[f], modes[m]);
			vector_add_four(LOW - 99, 0x1000, flags[f], modes[m]);
		}
		vector_add(0x1000, modes[m], 0);
	}
	return 0;
}

static size_t vectors_start(uint32_t arch, uint32_t number)
{
	enum seccomp_set set = seccomp_set_of(arch, number);
	return set == SECCOMP_SET_SOCKET || set == SECCOMP_SET_SOCKETPAIR ? 0 : vectors.sockets;
}

/* All vectors where arguments matter, a few where they must not. */
static size_t vectors_step(uint32_t arch, uint32_t number, unsigned options)
{
	enum seccomp_answer answer = seccomp_set_answer(seccomp_set_of(arch, number), options);
	return answer == SECCOMP_BY_ARGUMENTS ? 1 : (vectors.count - vectors.sockets) / 4;
}

static struct seccomp_data data_for(uint32_t arch, uint32_t number, size_t vector)
{
	struct seccomp_data data = { .nr = (int)number, .arch = arch };
	memcpy(data.args, vectors.args[vector], sizeof(data.args));
	return data;
}

static size_t emit(uint32_t arch, unsigned options, struct sock_filter *out)
{
	size_t length = seccomp_emit(arch, options, out, SECCOMP_FILTER_MAX);
	assert_true(length > 0 && length <= SECCOMP_FILTER_MAX);
	return length;
}

/* ---- Against the table ------------------------------------------------------------------------------------------ */

static void check_number(const struct sock_filter *filter, size_t length, uint32_t arch, unsigned options, uint32_t number)
{
	for (size_t v = vectors_start(arch, number); v < vectors.count; v += vectors_step(arch, number, options)) {
		struct seccomp_data data = data_for(arch, number, v);
		uint32_t got = bpf_run(filter, length, &data, NULL), want = expect(options, &data);
		if (got != want)
			fail_msg("number %u, options %x, arguments %llx %llx %llx: %x, not %x", number, options,
			         (unsigned long long)data.args[0], (unsigned long long)data.args[1],
			         (unsigned long long)data.args[2], got, want);
	}
}

static void filter_agrees_with_table(void **state)
{
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++)
		for (unsigned options = 0; options <= OPTIONS_ALL; options++) {
			size_t length = emit(arches[a].audit, options, filter);
			for (uint32_t number = 0; number < 1024; number++)
				check_number(filter, length, arches[a].audit, options, number);
		}
}

static void foreign_entry_is_refused(void **state)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0 };
	static const uint32_t beyond[] = { 0x40000000, 0x7ffffc00, 0x80000000, 0xfffffc00 };
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++)
		for (unsigned options = 0; options <= OPTIONS_ALL; options++) {
			size_t length = emit(arches[a].audit, options, filter);
			for (uint32_t number = 0; number < 1024; number++) {
				for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
					struct seccomp_data data = data_for(foreign[i], number, number);
					if (foreign[i] != arches[a].audit)
						assert_int_equal(bpf_run(filter, length, &data, NULL), REFUSE(ENOSYS));
				}
				for (size_t i = 0; i < ARRAY_SIZE(beyond); i++) {
					struct seccomp_data data = data_for(arches[a].audit, number + beyond[i], number);
					assert_int_equal(bpf_run(filter, length, &data, NULL), REFUSE(ENOSYS));
				}
			}
		}
}

static void too_little_room_is_said(void **state)
{
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	(void)state;
	size_t length = emit(AUDIT_ARCH_X86_64, 0, filter);
	struct sock_filter *exact = malloc(length * sizeof(*exact));
	assert_non_null(exact);
	assert_int_equal(seccomp_emit(AUDIT_ARCH_X86_64, 0, exact, length), length);
	assert_memory_equal(exact, filter, length * sizeof(*exact));
	assert_int_equal(seccomp_emit(AUDIT_ARCH_X86_64, 0, exact, length - 1), 0);
	assert_int_equal(seccomp_emit(AUDIT_ARCH_X86_64, 0, NULL, 0), 0);
	assert_int_equal(seccomp_emit(AUDIT_ARCH_I386, 0, filter, SECCOMP_FILTER_MAX), 0);
	free(exact);
}

/* ---- Against libseccomp ----------------------------------------------------------------------------------------- */

/* What libseccomp answers where none of the rules given to it matches. */
#define NO_RULE SECCOMP_RET_TRACE

static const struct rule {
	const char *call;
	uint32_t action;
	unsigned with, without;
	uint64_t mask[4], value[4];     /* a mask of 0: any */
} rules[] = {
	{ "clone", ALLOW, 0, SECCOMP_NO_SPAWN, { NEW_ANY }, { 0 } },
	{ "clone", ALLOW, SECCOMP_NO_SPAWN, 0, { NEW_ANY | THREAD }, { THREAD } },
	{ "unshare", ALLOW, 0, 0, { ~(uint64_t)UNSHARE_FINE }, { 0 } },
	{ "personality", ALLOW, 0, 0, { LOW & ~PERSONA_FINE }, { 0 } },
	{ "personality", ALLOW, 0, 0, { LOW }, { LOW } },
	{ "prlimit64", ALLOW, SECCOMP_OWN_LIMITS, 0, { LOW }, { 0 } },
	{ "ioctl", REFUSE(EPERM), 0, 0, { 0, LOW }, { 0, 0x5412 } },
	{ "ioctl", REFUSE(EPERM), 0, 0, { 0, LOW }, { 0, 0x541c } },
	{ "ioctl", REFUSE(EPERM), 0, 0, { 0, LOW }, { 0, 0x5423 } },
	{ "ioctl", REFUSE(EPERM), 0, 0, { 0, LOW }, { 0, IOCTL_FSSETXATTR } },
	{ "ioctl", REFUSE(EPERM), SECCOMP_NO_ATTRIBUTES, 0, { 0, LOW }, { 0, IOCTL_SETFLAGS } },
	{ "ioctl", REFUSE(EPERM), SECCOMP_NO_ATTRIBUTES, 0, { 0, LOW }, { 0, IOCTL_ENABLE_VERITY } },
	{ "chmod", ALLOW, 0, SECCOMP_NO_ATTRIBUTES, { 0, SET_ID }, { 0 } },
	{ "fchmod", ALLOW, 0, SECCOMP_NO_ATTRIBUTES, { 0, SET_ID }, { 0 } },
	{ "fchmodat", ALLOW, 0, SECCOMP_NO_ATTRIBUTES, { 0, 0, SET_ID }, { 0 } },
	{ "fchmodat2", ALLOW, 0, SECCOMP_NO_ATTRIBUTES, { 0, 0, SET_ID }, { 0 } },
	{ "creat", ALLOW, 0, 0, { 0, SET_ID }, { 0 } },
	{ "mknod", ALLOW, 0, 0, { 0, SET_ID }, { 0 } },
	{ "mknodat", ALLOW, 0, 0, { 0, 0, SET_ID }, { 0 } },
	{ "open", ALLOW, 0, 0, { 0, CREATES }, { 0 } },
	{ "open", ALLOW, 0, 0, { 0, 0, SET_ID }, { 0 } },
	{ "openat", ALLOW, 0, 0, { 0, 0, CREATES }, { 0 } },
	{ "openat", ALLOW, 0, 0, { 0, 0, 0, SET_ID }, { 0 } },
	{ "socket", ALLOW, 0, SECCOMP_NO_UNIX, { LOW }, { 1 } },
	{ "socket", REFUSE(EPERM), SECCOMP_NO_UNIX, 0, { LOW }, { 1 } },
	{ "socket", ALLOW, 0, SECCOMP_NO_NETWORK, { LOW, 0, LOW }, { 16, 0, 0 } },
	{ "socket", REFUSE(EPERM), SECCOMP_NO_NETWORK, 0, { LOW }, { 2 } },
	{ "socket", REFUSE(EPERM), SECCOMP_NO_NETWORK, 0, { LOW }, { 10 } },
	{ "socket", REFUSE(EPERM), SECCOMP_NO_NETWORK, 0, { LOW }, { 16 } },
	{ "socketpair", ALLOW, 0, SECCOMP_NO_UNIX, { LOW }, { 1 } },
	{ "socketpair", ALLOW, SECCOMP_NO_UNIX, 0, { LOW, 0xf }, { 1, 1 } },
	{ "socketpair", ALLOW, SECCOMP_NO_UNIX, 0, { LOW, 0xf }, { 1, 5 } },
};

static uint32_t reference_action(uint32_t action)
{
	return action == ALLOW ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(action & SECCOMP_RET_DATA);
}

static void reference_rule(scmp_filter_ctx context, const struct rule *rule, unsigned options)
{
	struct scmp_arg_cmp compare[4];
	unsigned count = 0;
	if ((options & rule->with) != rule->with || options & rule->without)
		return;
	for (unsigned i = 0; i < 4; i++)
		if (rule->mask[i])
			compare[count++] = (struct scmp_arg_cmp){ i, SCMP_CMP_MASKED_EQ, rule->mask[i], rule->value[i] };
	assert_int_equal(seccomp_rule_add_array(context, reference_action(rule->action),
	                                        seccomp_syscall_resolve_name(rule->call), count, compare), 0);
}

/* IP sockets: every type but two is refused; those two with any of six protocols are allowed. */
static void reference_ip(scmp_filter_ctx context, unsigned options)
{
	static const uint64_t families[] = { 2, 10 }, protocols[] = { 0, 1, 6, 17, 58, 262 };
	for (size_t f = 0; f < ARRAY_SIZE(families); f++)
		for (uint64_t type = 0; type < 16; type++) {
			if (type != 1 && type != 2) {
				reference_rule(context, &(struct rule){ "socket", REFUSE(EPERM), 0, SECCOMP_NO_NETWORK,
				                                        { LOW, 0xf }, { families[f], type } }, options);
				continue;
			}
			for (size_t p = 0; p < ARRAY_SIZE(protocols); p++)
				reference_rule(context, &(struct rule){ "socket", ALLOW, 0, SECCOMP_NO_NETWORK,
				                                        { LOW, 0xf, LOW },
				                                        { families[f], type, protocols[p] } }, options);
		}
}

static void reference_plain(scmp_filter_ctx context, uint32_t arch, unsigned options)
{
	for (uint32_t number = 0; number < 1024; number++) {
		enum seccomp_answer answer = seccomp_set_answer(seccomp_set_of(arch, number), options);
		const char *name = seccomp_call_name(arch, number);
		int native = name ? seccomp_syscall_resolve_name(name) : __NR_SCMP_ERROR;
		if (native == __NR_SCMP_ERROR || answer == SECCOMP_BY_ARGUMENTS)
			continue;
		uint32_t action = answer == SECCOMP_ALLOWED ? ALLOW : REFUSE(answer == SECCOMP_SAYS_EPERM ? EPERM : ENOSYS);
		assert_int_equal(seccomp_rule_add(context, reference_action(action), native, 0), 0);
	}
}

static size_t reference_make(size_t arch, unsigned options, struct sock_filter *out, size_t capacity)
{
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_TRACE(0));
	assert_non_null(context);
	if (seccomp_arch_native() != arches[arch].scmp) {
		assert_int_equal(seccomp_arch_add(context, arches[arch].scmp), 0);
		assert_int_equal(seccomp_arch_remove(context, seccomp_arch_native()), 0);
	}
	reference_plain(context, arches[arch].audit, options);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (seccomp_call_number(arches[arch].audit, rules[i].call) >= 0)
			reference_rule(context, &rules[i], options);
	reference_ip(context, options);

	auto_close int fd = memfd_create("filter", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(seccomp_export_bpf(context, fd), 0);
	ssize_t size = pread(fd, out, capacity * sizeof(*out), 0);
	assert_true(size > 0 && (size_t)size < capacity * sizeof(*out));
	seccomp_release(context);
	return (size_t)size / sizeof(*out);
}

/* What no rule of libseccomp's can say: its comparisons cannot be negated. */
static uint32_t reference_otherwise(uint32_t arch, uint32_t number, const struct seccomp_data *data)
{
	uint32_t family = (uint32_t)data->args[0];
	switch (seccomp_set_of(arch, number)) {
	case SECCOMP_SET_CLONE:
	case SECCOMP_SET_UNSHARE:
	case SECCOMP_SET_PERSONALITY:
	case SECCOMP_SET_CHMOD:
	case SECCOMP_SET_CHMODAT:
	case SECCOMP_SET_MAKE:
	case SECCOMP_SET_MAKEAT:
	case SECCOMP_SET_OPEN:
	case SECCOMP_SET_OPENAT:
	case SECCOMP_SET_LIMITS: return REFUSE(EPERM);
	case SECCOMP_SET_IOCTL: return ALLOW;
	case SECCOMP_SET_SOCKETPAIR: return family == 1 ? REFUSE(EPERM) : REFUSE(EOPNOTSUPP);
	case SECCOMP_SET_SOCKET:
		return family == 2 || family == 10 || family == 16 ? REFUSE(EPROTONOSUPPORT) : REFUSE(EAFNOSUPPORT);
	default: return REFUSE(ENOSYS);
	}
}

/* libseccomp 2.5.4 knows the calls of Linux 6.7; later ones have no name there, and are compared with the table only. */
static bool reference_knows(uint32_t arch, uint32_t number)
{
	const char *name = seccomp_call_name(arch, number);
	return !name || seccomp_syscall_resolve_name(name) != __NR_SCMP_ERROR;
}

static void filter_agrees_with_libseccomp(void **state)
{
	static struct sock_filter filter[SECCOMP_FILTER_MAX], reference[8192];
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++)
		for (unsigned options = 0; options <= OPTIONS_ALL; options++) {
			uint32_t arch = arches[a].audit;
			size_t length = emit(arch, options, filter);
			size_t reference_length = reference_make(a, options, reference, ARRAY_SIZE(reference));
			if (options == 0)
				print_message("# %s: libseccomp's filter has %zu instructions, ours %zu\n", arches[a].name,
				              reference_length, length);
			for (uint32_t number = 0; number < 1024; number++) {
				if (!reference_knows(arch, number))
					continue;
				for (size_t v = vectors_start(arch, number); v < vectors.count; v += vectors_step(arch, number, options)) {
					struct seccomp_data data = data_for(arch, number, v);
					uint32_t want = bpf_run(reference, reference_length, &data, NULL);
					if (want == NO_RULE)
						want = reference_otherwise(arch, number, &data);
					uint32_t got = bpf_run(filter, length, &data, NULL);
					if (got != want)
						fail_msg("%s %u, options %x, arguments %llx %llx %llx: %x, libseccomp says %x",
						         arches[a].name, number, options, (unsigned long long)data.args[0],
						         (unsigned long long)data.args[1], (unsigned long long)data.args[2], got, want);
				}
			}
		}
}

/* ---- The table -------------------------------------------------------------------------------------------------- */

static const struct call {
	const char *name;
	int numbers[2];
} calls[] = {
#define SECCOMP_CALL(name, x86_64, aarch64, set) { #name, { x86_64, aarch64 } },
#define SECCOMP_CALL_X86(name, x86_64, set) { #name, { x86_64, -1 } },
#include "profile/syscalls.def"
#include "skip.h"
};

static void table_is_sorted_and_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		assert_true(strlen(calls[i].name) < 24);
		if (i > 0)
			assert_true(calls[i].numbers[0] > calls[i - 1].numbers[0]);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(calls[i].name, calls[j].name);
			if (calls[i].numbers[1] >= 0)
				assert_int_not_equal(calls[i].numbers[1], calls[j].numbers[1]);
		}
	}
}

static void table_has_the_right_numbers(void **state)
{
	unsigned checked = 0;
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++) {
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			int number = seccomp_syscall_resolve_name_arch(arches[a].scmp, calls[i].name);
			if (seccomp_syscall_resolve_name(calls[i].name) == __NR_SCMP_ERROR) {
				assert_true(calls[i].numbers[0] > 456 || calls[i].numbers[0] == 335 || calls[i].numbers[0] == 336);
				continue;
			}
			/* Negative numbers of libseccomp's stand for calls that the architecture does not have. */
			assert_int_equal(calls[i].numbers[a], number < 0 ? -1 : number);
			checked++;
		}
		for (int number = 0; number < 1024; number++) {
			char *name = seccomp_syscall_resolve_num_arch(arches[a].scmp, number);
			if (name && !seccomp_call_name(arches[a].audit, (uint32_t)number))
				fail_msg("%s %d (%s) has no row", arches[a].name, number, name);
			free(name);
		}
	}
	assert_true(checked > 700);
}

static void table_has_the_hosts_numbers(void **state)
{
	(void)state;
#define HOST(call) assert_int_equal(seccomp_call_number(seccomp_native_arch, #call), SYS_##call)
	HOST(read);
	HOST(clone3);
	HOST(landlock_restrict_self);
#ifdef SYS_mseal
	HOST(mseal);
#endif
#ifdef SYS_file_setattr
	HOST(file_setattr);
#endif
}

static const char *const never[] = {
	"mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig",
	"fsmount", "fspick", "mount_setattr", "setns", "keyctl", "add_key", "request_key", "bpf", "perf_event_open",
	"userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "kexec_load", "kexec_file_load",
	"init_module", "finit_module", "delete_module", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
	"open_by_handle_at", "fanotify_init", "swapon", "swapoff", "reboot", "quotactl", "quotactl_fd", "acct",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "iopl", "ioperm", "sethostname", "setdomainname",
	"syslog", "clone3", "memfd_secret", "modify_ldt", "lsm_set_self_attr", "file_setattr",
	"openat2",
};
static const char *const always[] = {
	"read", "mkdirat", "fgetxattr", "execve", "mmap", "futex", "ptrace", "seccomp", "landlock_restrict_self", "rseq",
	"set_robust_list", "membarrier", "getrandom", "copy_file_range", "splice", "inotify_add_watch", "signalfd4",
	"timerfd_create", "sched_setaffinity", "mbind", "io_submit", "pidfd_open", "close_range", "mseal",
};

static void table_decides_as_promised(void **state)
{
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++)
		for (unsigned options = 0; options <= OPTIONS_ALL; options++) {
			for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
				assert_true(seccomp_call_number(AUDIT_ARCH_X86_64, never[i]) >= 0);
				long number = seccomp_call_number(arches[a].audit, never[i]);
				enum seccomp_set set = seccomp_set_of(arches[a].audit, (uint32_t)number);
				assert_true(seccomp_set_answer(set, options) >= SECCOMP_SAYS_EPERM);
			}
			for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
				long number = seccomp_call_number(arches[a].audit, always[i]);
				enum seccomp_set set = seccomp_set_of(arches[a].audit, (uint32_t)number);
				assert_int_equal(seccomp_set_answer(set, options), SECCOMP_ALLOWED);
			}
		}
}

static void table_gives_reasons(void **state)
{
	(void)state;
	for (unsigned set = 0; set < SECCOMP_SET_MAX; set++) {
		bool used = set == SECCOMP_SET_UNKNOWN;
		assert_true(strlen(seccomp_set_name(set)) > 0);
		assert_true(strlen(seccomp_set_reason(set)) > 10);
		for (unsigned other = 0; other < set; other++)
			assert_string_not_equal(seccomp_set_name(set), seccomp_set_name(other));
		for (uint32_t number = 0; number < 1024; number++)
			used |= seccomp_set_of(AUDIT_ARCH_X86_64, number) == set;
		if (!used)
			fail_msg("the set %s has no call", seccomp_set_name(set));
	}
	for (unsigned option = 0; option < SECCOMP_OPTION_MAX; option++) {
		assert_true(strlen(seccomp_option_name(option)) > 0);
		assert_true(strlen(seccomp_option_meaning(option)) > 10);
	}
}

static void names_and_numbers_go_round(void **state)
{
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++)
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			assert_int_equal(seccomp_call_number(arches[a].audit, calls[i].name), calls[i].numbers[a]);
			if (calls[i].numbers[a] >= 0)
				assert_string_equal(seccomp_call_name(arches[a].audit, (uint32_t)calls[i].numbers[a]), calls[i].name);
		}
	assert_null(seccomp_call_name(AUDIT_ARCH_X86_64, 400));
	assert_null(seccomp_call_name(AUDIT_ARCH_AARCH64, 0xffffffff));
	assert_null(seccomp_call_name(AUDIT_ARCH_I386, 1));
	assert_int_equal(seccomp_call_number(AUDIT_ARCH_X86_64, "nonsense"), -1);
	assert_int_equal(seccomp_call_number(AUDIT_ARCH_I386, "read"), -1);
	assert_int_equal(seccomp_set_of(AUDIT_ARCH_I386, 1), SECCOMP_SET_UNKNOWN);
	assert_int_equal(seccomp_set_of(AUDIT_ARCH_X86_64, 0x40000001), SECCOMP_SET_UNKNOWN);
}

static char *listing(uint32_t arch, unsigned options)
{
	struct json json;
	json_init(&json);
	seccomp_listing(&json, arch, options);
	char *text = json_take(&json);
	assert_non_null(text);
	return text;
}

static void listing_says_what_is_refused(void **state)
{
	(void)state;
	auto_free char *plain = listing(AUDIT_ARCH_AARCH64, 0);
	assert_non_null(strstr(plain, "{\"architecture\":\"aarch64\",\"options\":[],\"sets\":["));
	assert_non_null(strstr(plain, "\"calls\":[\"add_key\",\"request_key\",\"keyctl\"]"));
	assert_null(strstr(plain, "\"memfd_create\""));
	assert_null(strstr(plain, "\"iopl\""));
	auto_free char *narrow = listing(AUDIT_ARCH_X86_64, SECCOMP_NO_MEMFD | SECCOMP_NO_SPAWN);
	assert_non_null(strstr(narrow, "\"options\":[\"no_spawn\",\"no_memfd\"]"));
	assert_non_null(strstr(narrow, "\"calls\":[\"memfd_create\"]"));
	assert_non_null(strstr(narrow, "\"calls\":[\"fork\",\"vfork\"]"));
	auto_free char *none = listing(AUDIT_ARCH_I386, 0);
	assert_string_equal(none, "null");
}

/* ---- Installed -------------------------------------------------------------------------------------------------- */

static int refused(long result, int error)
{
	return result == -1 && errno == error ? 0 : 1;
}

static int live_basics(void)
{
	struct rlimit limit;
	int failed = getpid() <= 0 || unshare(CLONE_FS) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0;
	failed |= refused(mount("none", "/", NULL, MS_REMOUNT, NULL), EPERM);
	failed |= refused(syscall(SYS_ioctl, 0, 0x5412, "x"), EPERM);
	failed |= refused(syscall(SYS_ioctl, 0, 0x5412 | 1ul << 32, "x"), EPERM);
	failed |= refused(syscall(SYS_ioctl, 0, 0x541c | ~LOW, "x"), EPERM);
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

static int live_no_ipc(void)
{
	return refused(shmget(IPC_PRIVATE, 4096, 0600), EPERM);
}

static int live_own_limits(void)
{
	struct rlimit limit;
	return refused(prlimit(getppid(), RLIMIT_CPU, NULL, &limit), EPERM) | (prlimit(0, RLIMIT_CPU, NULL, &limit) != 0);
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
	long flags = 0;
	int file = openat(room_fd, "other", O_CREAT | O_RDWR, 0644);
	int failed = file < 0 || refused(fchmod(file, 0600), EPERM) | refused(fchmodat(room_fd, "other", 0600, 0), EPERM);
	failed |= refused(fchown(file, getuid(), getgid()), EPERM);
	failed |= refused(fchownat(room_fd, "other", getuid(), getgid(), AT_SYMLINK_NOFOLLOW), EPERM);
	failed |= refused(futimens(file, times), EPERM) | refused(utimensat(room_fd, "other", times, 0), EPERM);
	failed |= refused(fsetxattr(file, "user.x", "x", 1, 0), EPERM) | refused(fremovexattr(file, "user.x"), EPERM);
	failed |= refused(ioctl(file, FS_IOC_SETFLAGS, &flags), EPERM);
	failed |= refused(openat(room_fd, "made", O_CREAT | O_WRONLY, 04755), EPERM);
	return failed | (mode_of("other") != 0644);
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
		{ "no_ipc", SECCOMP_NO_IPC, live_no_ipc },
		{ "own_limits", SECCOMP_OWN_LIMITS, live_own_limits },
		{ "no_set_id", SECCOMP_OWN_LIMITS, live_no_set_id },
		{ "no_attributes", SECCOMP_NO_ATTRIBUTES, live_no_attributes },
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

/* ---- Cost ------------------------------------------------------------------------------------------------------- */

static double microseconds(struct timespec from, struct timespec to)
{
	return (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
}

static void filter_is_short(void **state)
{
	enum { ROUNDS = 1000 };
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	struct timespec from, to;
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++) {
		size_t longest = 0;
		unsigned deepest = 0;
		for (unsigned options = 0; options <= OPTIONS_ALL; options++) {
			size_t length = emit(arches[a].audit, options, filter);
			longest = length > longest ? length : longest;
			for (uint32_t number = 0; number < 1024; number++) {
				struct seccomp_data data = { .nr = (int)number, .arch = arches[a].audit };
				unsigned steps = 0;
				enum seccomp_answer answer = seccomp_set_answer(seccomp_set_of(data.arch, number), options);
				bpf_run(filter, length, &data, &steps);
				if (answer != SECCOMP_BY_ARGUMENTS && steps > deepest)
					deepest = steps;
			}
		}
		clock_gettime(CLOCK_MONOTONIC, &from);
		for (int i = 0; i < ROUNDS; i++)
			emit(arches[a].audit, 0, filter);
		clock_gettime(CLOCK_MONOTONIC, &to);
		print_message("# %s: %zu instructions, %zu with the longest options, at most %u run where arguments do not "
		              "matter, emitted in %.2f us\n", arches[a].name, emit(arches[a].audit, 0, filter), longest,
		              deepest, microseconds(from, to) / ROUNDS);
		assert_true(longest <= 190);
		/* Head, return, and a comparison for each halving. */
		assert_true(deepest <= 3 + 1 + 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filter_agrees_with_table),
		cmocka_unit_test(foreign_entry_is_refused),
		cmocka_unit_test(too_little_room_is_said),
		cmocka_unit_test(filter_agrees_with_libseccomp),
		cmocka_unit_test(table_is_sorted_and_unique),
		cmocka_unit_test(table_has_the_right_numbers),
		cmocka_unit_test(table_has_the_hosts_numbers),
		cmocka_unit_test(table_decides_as_promised),
		cmocka_unit_test(table_gives_reasons),
		cmocka_unit_test(names_and_numbers_go_round),
		cmocka_unit_test(listing_says_what_is_refused),
		cmocka_unit_test(filter_holds),
#ifdef __x86_64__
		cmocka_unit_test(other_entries_are_closed),
#endif
		cmocka_unit_test(filter_is_short),
	};
	return cmocka_run_group_tests(tests, vectors_make, NULL);
}
