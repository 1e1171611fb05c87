/* The system-call filter beside one that libseccomp makes from the same sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <seccomp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profile/seccomp.h"
#include "bpf-run.h"
#include "seccomp-vectors.h"

/* What libseccomp answers where none of the rules given to it matches. */
#define NO_RULE SECCOMP_RET_TRACE

#define SCHEDULES(name) \
	{ name, REFUSE(EPERM), SECCOMP_OWN_LIMITS, SECCOMP_AMONG_OTHERS, { LOW }, { 1 } }, \
	{ name, ALLOW, SECCOMP_OWN_LIMITS | SECCOMP_AMONG_OTHERS, 0, { LOW }, { 0 } }

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
	{ "prlimit64", ALLOW, SECCOMP_OWN_LIMITS, 0, { LOW, 0, ~(uint64_t)0 }, { 0 } },
	{ "setrlimit", DONE, 0, 0, { LOW }, { 4 } },
	{ "fcntl", REFUSE(EPERM), 0, 0, { 0, LOW }, { 0, 1024 } },
	{ "fcntl", REFUSE(EPERM), 0, 0, { 0, LOW }, { 0, 1040 } },
	SCHEDULES("sched_setparam"),
	SCHEDULES("sched_setscheduler"),
	SCHEDULES("sched_setaffinity"),
	SCHEDULES("sched_setattr"),
	{ "setpriority", REFUSE(EPERM), SECCOMP_OWN_LIMITS, SECCOMP_AMONG_OTHERS, { LOW, LOW }, { 0, 1 } },
	{ "setpriority", ALLOW, SECCOMP_OWN_LIMITS | SECCOMP_AMONG_OTHERS, 0, { LOW, LOW }, { 0, 0 } },
	{ "ioprio_set", ALLOW, SECCOMP_AMONG_OTHERS, 0, { LOW, LOW }, { 1, 0 } },
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
			compare[count++] =
				(struct scmp_arg_cmp){ i, SCMP_CMP_MASKED_EQ, rule->mask[i], rule->value[i] };
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

static void reference_ioctl(scmp_filter_ctx context, unsigned options)
{
	for (size_t i = 0; i < ioctls_allowed_count; i++)
		reference_rule(context, &(struct rule){ "ioctl", ALLOW, 0, 0, { 0, LOW }, { 0, ioctls_allowed[i] } },
		               options);
}

static void reference_plain(scmp_filter_ctx context, uint32_t arch, unsigned options)
{
	for (uint32_t number = 0; number < 1024; number++) {
		enum seccomp_answer answer = seccomp_set_answer(seccomp_set_of(arch, number), options);
		const char *name = seccomp_call_name(arch, number);
		int native = name ? seccomp_syscall_resolve_name(name) : __NR_SCMP_ERROR;
		if (native == __NR_SCMP_ERROR || answer == SECCOMP_BY_ARGUMENTS)
			continue;
		uint32_t action =
			answer == SECCOMP_ALLOWED ? ALLOW : REFUSE(answer == SECCOMP_SAYS_EPERM ? EPERM : ENOSYS);
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
	reference_ioctl(context, options);

	auto_close int fd = memfd_create("filter", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(seccomp_export_bpf(context, fd), 0);
	ssize_t size = pread(fd, out, capacity * sizeof(*out), 0);
	assert_true(size > 0 && (size_t)size < capacity * sizeof(*out));
	seccomp_release(context);
	return (size_t)size / sizeof(*out);
}

/* What no rule of libseccomp's can say: its comparisons cannot be negated. */
static uint32_t reference_otherwise(uint32_t arch, uint32_t number, unsigned options, const struct seccomp_data *data)
{
	uint32_t family = (uint32_t)data->args[0];
	bool among_others = options & SECCOMP_AMONG_OTHERS, is_core = (uint32_t)data->args[1] == 4;
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
	case SECCOMP_SET_IO_PRIORITY: return REFUSE(EPERM);
	case SECCOMP_SET_LIMITS:
		return family || (is_core && data->args[3]) ? REFUSE(EPERM) : is_core ? DONE : ALLOW;
	case SECCOMP_SET_SCHEDULE: return among_others ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_PRIORITY: return among_others || family ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_SET_LIMIT:
	case SECCOMP_SET_FCNTL: return ALLOW;
	case SECCOMP_SET_IOCTL: return REFUSE(ENOTTY);
	case SECCOMP_SET_SOCKETPAIR: return family == 1 ? REFUSE(EPERM) : REFUSE(EOPNOTSUPP);
	case SECCOMP_SET_SOCKET:
		return family == 2 || family == 10 || family == 16 ? REFUSE(EPROTONOSUPPORT) : REFUSE(EAFNOSUPPORT);
	default: return REFUSE(ENOSYS);
	}
}

/* libseccomp 2.5.4 knows the calls of Linux 6.7; later ones have no name there, and are compared with the table only.
 */
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
				print_message("# %s: libseccomp's filter has %zu instructions, ours %zu\n",
				              arches[a].name, reference_length, length);
			for (uint32_t number = 0; number < 1024; number++) {
				if (!reference_knows(arch, number))
					continue;
				for (size_t v = vectors_start(arch, number); v < vectors.count;
				     v += vectors_step(arch, number, options)) {
					struct seccomp_data data = data_for(arch, number, v);
					uint32_t want = bpf_run(reference, reference_length, &data, NULL);
					if (want == NO_RULE)
						want = reference_otherwise(arch, number, options, &data);
					uint32_t got = bpf_run(filter, length, &data, NULL);
					if (got != want)
						fail_msg("%s %u, options %x, arguments %llx %llx %llx: %x, libseccomp "
						         "says %x",
						         arches[a].name, number, options,
						         (unsigned long long)data.args[0],
						         (unsigned long long)data.args[1],
						         (unsigned long long)data.args[2], got, want);
				}
			}
		}
}

/* Every listed request, those beside it, and every one that differs from it in one bit. */
static void ioctl_agrees_with_libseccomp(void **state)
{
	static struct sock_filter filter[SECCOMP_FILTER_MAX], reference[8192];
	static const uint64_t uppers[] = { 0, 1ull << 32, ~LOW };
	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++) {
		size_t length = emit(arches[a].audit, 0, filter);
		size_t reference_length = reference_make(a, 0, reference, ARRAY_SIZE(reference));
		long number = seccomp_call_number(arches[a].audit, "ioctl");
		for (size_t i = 0; i < ioctls_allowed_count; i++)
			for (uint32_t change = 0; change < 34; change++) {
				uint32_t request = ioctls_allowed[i];
				request = change < 32 ? request ^ 1u << change : request + (change == 32 ? 1 : 0);
				struct seccomp_data data = { .nr = (int)number, .arch = arches[a].audit };
				data.args[1] = request | uppers[(i + change) % ARRAY_SIZE(uppers)];
				uint32_t want = bpf_run(reference, reference_length, &data, NULL);
				uint32_t got = bpf_run(filter, length, &data, NULL);
				if (got != (want == NO_RULE ? REFUSE(ENOTTY) : want))
					fail_msg("%s: request %x: %x, libseccomp says %x", arches[a].name, request, got,
					         want);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ioctl_agrees_with_libseccomp),
		cmocka_unit_test(filter_agrees_with_libseccomp),
	};
	return cmocka_run_group_tests(tests, vectors_make, NULL);
}
