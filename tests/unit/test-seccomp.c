/* The system-call filter beside the table and a plain statement of the argument rules; and how long and how deep it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "profile/seccomp.h"
#include "bpf-run.h"
#include "seccomp-vectors.h"

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

static uint32_t expect_limits(const struct seccomp_data *data)
{
	if ((uint32_t)data->args[0])
		return REFUSE(EPERM);
	return (uint32_t)data->args[1] != 4 || !data->args[2] ? ALLOW : data->args[3] ? REFUSE(EPERM) : DONE;
}

static bool expect_scheduled(unsigned options, uint32_t who)
{
	return options & SECCOMP_AMONG_OTHERS ? who == 0 : who != 1;
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
	case SECCOMP_SET_IOCTL: return ioctl_allowed(low[1]) ? ALLOW : REFUSE(ENOTTY);
	case SECCOMP_SET_PERSONALITY: return low[0] == LOW || !(low[0] & ~PERSONA_FINE) ? ALLOW : REFUSE(EPERM);
	case SECCOMP_SET_LIMITS: return expect_limits(data);
	case SECCOMP_SET_SET_LIMIT: return low[0] == 4 ? DONE : ALLOW;
	case SECCOMP_SET_FCNTL: return low[1] == 1024 || low[1] == 1040 ? REFUSE(EPERM) : ALLOW;
	case SECCOMP_SET_SCHEDULE: return expect_scheduled(options, low[0]) ? ALLOW : REFUSE(EPERM);
	case SECCOMP_SET_PRIORITY: return low[0] == 0 && expect_scheduled(options, low[1]) ? ALLOW : REFUSE(EPERM);
	case SECCOMP_SET_IO_PRIORITY: return low[0] == 1 && low[1] == 0 ? ALLOW : REFUSE(EPERM);
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

/* ---- Against the table ------------------------------------------------------------------------------------------ */

static void check_number(const struct sock_filter *filter, size_t length, uint32_t arch, unsigned options,
                         uint32_t number)
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
					struct seccomp_data data =
						data_for(arches[a].audit, number + beyond[i], number);
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
				enum seccomp_answer answer =
					seccomp_set_answer(seccomp_set_of(data.arch, number), options);
				bpf_run(filter, length, &data, &steps);
				if (answer != SECCOMP_BY_ARGUMENTS && steps > deepest)
					deepest = steps;
			}
		}
		clock_gettime(CLOCK_MONOTONIC, &from);
		for (int i = 0; i < ROUNDS; i++)
			emit(arches[a].audit, 0, filter);
		clock_gettime(CLOCK_MONOTONIC, &to);
		print_message(
			"# %s: %zu instructions, %zu with the longest options, at most %u run where arguments do not "
			"matter, emitted in %.2f us\n",
			arches[a].name, emit(arches[a].audit, 0, filter), longest, deepest,
			microseconds(from, to) / ROUNDS);
		assert_true(longest <= 280);
		/* Head, return, and a comparison for each halving. */
		assert_true(deepest <= 3 + 1 + 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filter_agrees_with_table),
		cmocka_unit_test(foreign_entry_is_refused),
		cmocka_unit_test(too_little_room_is_said),
		cmocka_unit_test(filter_is_short),
	};
	return cmocka_run_group_tests(tests, vectors_make, NULL);
}
