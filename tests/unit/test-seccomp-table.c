/* The table of system calls: its numbers beside libseccomp's and this machine's, what it decides, and its reasons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/audit.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/seccomp.h"
#include "seccomp-vectors.h"

static const struct call {
	const char *name;
	int numbers[2];
} calls[] = {
#define SECCOMP_CALL(name, x86_64, aarch64, set) { #name, { x86_64, aarch64 } },
#define SECCOMP_CALL_X86(name, x86_64, set) { #name, { x86_64, -1 } },
#include "profile/syscalls.def"
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
				assert_true(calls[i].numbers[0] > 456 || calls[i].numbers[0] == 335 ||
				            calls[i].numbers[0] == 336);
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
	"read",
	"mkdirat",
	"fgetxattr",
	"execve",
	"mmap",
	"futex",
	"ptrace",
	"seccomp",
	"landlock_restrict_self",
	"rseq",
	"set_robust_list",
	"membarrier",
	"getrandom",
	"copy_file_range",
	"splice",
	"inotify_add_watch",
	"signalfd4",
	"timerfd_create",
	"sched_getaffinity",
	"mbind",
	"io_submit",
	"pidfd_open",
	"close_range",
	"mseal",
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
				assert_string_equal(seccomp_call_name(arches[a].audit, (uint32_t)calls[i].numbers[a]),
				                    calls[i].name);
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
	assert_non_null(strstr(plain, "{\"architecture\":\"aarch64\",\"options\":[],\"devices\":[],\"sets\":["));
	assert_non_null(strstr(plain, "\"calls\":[\"add_key\",\"request_key\",\"keyctl\"]"));
	assert_null(strstr(plain, "\"memfd_create\""));
	assert_null(strstr(plain, "\"iopl\""));
	auto_free char *narrow = listing(AUDIT_ARCH_X86_64, SECCOMP_NO_MEMFD | SECCOMP_NO_SPAWN | SECCOMP_DEVICE_KVM);
	assert_non_null(strstr(narrow, "\"options\":[\"no_spawn\",\"no_memfd\"],\"devices\":[\"kvm\"]"));
	assert_non_null(strstr(narrow, "\"calls\":[\"memfd_create\"]"));
	assert_non_null(strstr(narrow, "\"calls\":[\"fork\",\"vfork\"]"));
	auto_free char *none = listing(AUDIT_ARCH_I386, 0);
	assert_string_equal(none, "null");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sorted_and_unique),
		cmocka_unit_test(table_has_the_right_numbers),
		cmocka_unit_test(table_has_the_hosts_numbers),
		cmocka_unit_test(table_decides_as_promised),
		cmocka_unit_test(table_gives_reasons),
		cmocka_unit_test(names_and_numbers_go_round),
		cmocka_unit_test(listing_says_what_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
