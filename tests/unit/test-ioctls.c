/* The requests that ioctl may make: the table beside the kernel's headers, and the filter that is made from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <asm/termbits.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/kd.h>
#include <linux/nsfs.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <linux/vt.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "profile/seccomp.h"
#include "bpf-run.h"
#include "seccomp-vectors.h"

#define DEVICES_ALL (((1u << SECCOMP_DEVICE_MAX) - 1) << SECCOMP_OPTION_MAX)

static const struct {
	const char *name;
	uint32_t request, of_header;
} table[] = {
#define IOCTL(name, request) { #name, request, name },
#include "profile/ioctls.def"
};

static const struct {
	unsigned option;
	uint32_t mask, value;
} device_requests[] = {
#define IOCTL_DEVICE_REQUESTS(id, mask, value) { SECCOMP_DEVICE_##id, mask, value },
#include "profile/ioctls.def"
};

/* Never allowed, whatever is granted. */
static const uint32_t never[] = {
	TIOCSTI,
	TIOCLINUX,
	TIOCSETD,
	TIOCCONS,
	TIOCVHANGUP,
	TIOCSSERIAL,
	FS_IOC_SETFLAGS,
	FS_IOC_FSSETXATTR,
	FS_IOC_SETVERSION,
	FS_IOC_ENABLE_VERITY,
	FS_IOC_MEASURE_VERITY,
	FS_IOC_SETFSLABEL,
	FS_IOC_SET_ENCRYPTION_POLICY,
	FS_IOC_GET_ENCRYPTION_POLICY,
	FS_IOC_GET_ENCRYPTION_POLICY_EX,
	FS_IOC_GET_ENCRYPTION_PWSALT,
	FS_IOC_ADD_ENCRYPTION_KEY,
	FS_IOC_REMOVE_ENCRYPTION_KEY,
	FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS,
	FS_IOC_GET_ENCRYPTION_KEY_STATUS,
	FS_IOC_GET_ENCRYPTION_NONCE,
	BTRFS_IOC_SNAP_CREATE,
	BTRFS_IOC_SNAP_CREATE_V2,
	BTRFS_IOC_SUBVOL_CREATE,
	BTRFS_IOC_SUBVOL_CREATE_V2,
	BTRFS_IOC_SNAP_DESTROY,
	BTRFS_IOC_SNAP_DESTROY_V2,
	BTRFS_IOC_SUBVOL_SETFLAGS,
	BTRFS_IOC_TREE_SEARCH,
	BTRFS_IOC_TREE_SEARCH_V2,
	BTRFS_IOC_INO_LOOKUP,
	BTRFS_IOC_INO_LOOKUP_USER,
	BTRFS_IOC_INO_PATHS,
	BTRFS_IOC_SET_RECEIVED_SUBVOL,
	BTRFS_IOC_SEND,
	BTRFS_IOC_DEFRAG,
	BTRFS_IOC_DEFAULT_SUBVOL,
	FIFREEZE,
	FITHAW,
	FITRIM,
	BLKRRPART,
	BLKDISCARD,
	BLKGETSIZE64,
	SIOCSIFFLAGS,
	SIOCSIFADDR,
	SIOCADDRT,
	SIOCGARP,
	SIOCBRADDBR,
	NS_GET_USERNS,
	NS_GET_PARENT,
	RNDADDENTROPY,
	RNDADDTOENTCNT,
	0xc0c0583b /* XFS_IOC_SWAPEXT */,
	0xc028660f /* EXT4_IOC_MOVE_EXT */,
	0x2285 /* SG_IO */,
};

static uint32_t judge(const struct sock_filter *filter, size_t length, size_t arch, uint64_t request)
{
	struct seccomp_data data = { .nr = (int)seccomp_call_number(arches[arch].audit, "ioctl"),
		                     .arch = arches[arch].audit };
	data.args[1] = request;
	data.args[2] = request * 0x9e3779b97f4a7c15ull;
	return bpf_run(filter, length, &data, NULL);
}

static void table_is_sorted_and_has_the_headers_numbers(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_SIZE(table), ioctls_allowed_count);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].request != table[i].of_header)
			fail_msg("%s is %x", table[i].name, table[i].of_header);
		assert_true(ioctl_allowed(table[i].request));
		assert_true(i == 0 || table[i - 1].request < table[i].request);
	}
}

/* The upper half of the argument, which the kernel drops, changes nothing: set, or sign-extended. */
static void check(const struct sock_filter *filter, size_t length, size_t arch, uint32_t request)
{
	static const uint64_t uppers[] = { 0, 1ull << 32, 1ull << 63, ~LOW };
	uint32_t want = ioctl_allowed(request) ? ALLOW : REFUSE(ENOTTY);
	for (size_t i = 0; i < ARRAY_SIZE(uppers); i++) {
		uint32_t got = judge(filter, length, arch, request | uppers[i]);
		if (got != want)
			fail_msg("request %llx: %x, not %x", (unsigned long long)(request | uppers[i]), got, want);
	}
}

static void listed_requests_are_allowed_and_no_others(void **state)
{
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	(void)state;
	srandom(1);
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++) {
		size_t length = emit(arches[a].audit, SECCOMP_OWN_LIMITS, filter);
		for (size_t i = 0; i < ioctls_allowed_count; i++) {
			check(filter, length, a, ioctls_allowed[i]);
			check(filter, length, a, ioctls_allowed[i] - 1);
			check(filter, length, a, ioctls_allowed[i] + 1);
			for (unsigned bit = 0; bit < 32; bit++)
				check(filter, length, a, ioctls_allowed[i] ^ 1u << bit);
		}
		for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
			assert_false(ioctl_allowed(never[i]));
			check(filter, length, a, never[i]);
		}
		for (uint32_t request = 0; request < 0x10000; request++)
			check(filter, length, a, request);
		for (int i = 0; i < 50000; i++)
			check(filter, length, a, (uint32_t)random() << 1 ^ (uint32_t)random());
	}
}

static bool device_allows(unsigned options, uint32_t request)
{
	for (size_t i = 0; i < ARRAY_SIZE(device_requests); i++)
		if (options & device_requests[i].option &&
		    (request & device_requests[i].mask) == device_requests[i].value)
			return true;
	return false;
}

/* Each option alone and all at once: what a device adds, and that it adds nothing else. */
static void devices_add_their_requests(void **state)
{
	struct sock_filter filter[SECCOMP_FILTER_MAX];
	(void)state;
	for (unsigned device = 0; device <= SECCOMP_DEVICE_MAX; device++) {
		unsigned options = device < SECCOMP_DEVICE_MAX ? SECCOMP_DEVICE_BIT(device) : DEVICES_ALL;
		size_t length = emit(AUDIT_ARCH_X86_64, options | OPTIONS_ALL, filter);
		for (size_t i = 0; i < ARRAY_SIZE(device_requests); i++) {
			uint32_t wide = device_requests[i].value | (~device_requests[i].mask & 0xc0180005u);
			uint32_t want = device_allows(options, wide) ? ALLOW : REFUSE(ENOTTY);
			assert_true(want == ALLOW || !(options & device_requests[i].option));
			assert_int_equal(judge(filter, length, 0, wide), want);
			assert_int_equal(judge(filter, length, 0, wide | ~LOW), want);
		}
		for (size_t i = 0; i < ioctls_allowed_count; i++)
			assert_int_equal(judge(filter, length, 0, ioctls_allowed[i]), ALLOW);
		for (size_t i = 0; i < ARRAY_SIZE(never); i++)
			assert_int_equal(judge(filter, length, 0, never[i] | ~LOW), REFUSE(ENOTTY));
	}
	assert_int_equal(judge(filter, emit(AUDIT_ARCH_X86_64, SECCOMP_DEVICE_KVM, filter), 0, 0x4501), REFUSE(ENOTTY));
	print_message("# with every device: %zu instructions\n",
	              emit(AUDIT_ARCH_X86_64, OPTIONS_ALL | DEVICES_ALL, filter));
}

static void paths_name_devices(void **state)
{
	static const struct {
		const char *path;
		unsigned options;
	} rows[] = {
		{ "/dev/kvm", SECCOMP_DEVICE_KVM },           { "/dev/nvidia0", SECCOMP_DEVICE_NVIDIA },
		{ "/dev/nvidia-uvm", SECCOMP_DEVICE_NVIDIA }, { "/dev/nvidia-caps", SECCOMP_DEVICE_NVIDIA },
		{ "/dev/dri", SECCOMP_DEVICE_DRI },           { "/dev/dri/renderD128", SECCOMP_DEVICE_DRI },
		{ "/dev/bus", SECCOMP_DEVICE_USB },           { "/dev/bus/usb/001/002", SECCOMP_DEVICE_USB },
		{ "/dev/snd/pcmC0D0p", SECCOMP_DEVICE_SOUND }, { "/dev/null", 0 },
		{ "/dev/ttyUSB0", 0 },                        { "/home/dev/kvm", 0 },
		{ "/dev/kv", 0 },                             { "/de", 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(seccomp_device_option(rows[i].path), rows[i].options);
	for (unsigned i = 0; i < SECCOMP_DEVICE_MAX; i++)
		for (unsigned other = 0; other < i; other++)
			assert_string_not_equal(seccomp_device_name(i), seccomp_device_name(other));
	assert_true(SECCOMP_OPTION_MAX + SECCOMP_DEVICE_MAX <= 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_sorted_and_has_the_headers_numbers),
		cmocka_unit_test(listed_requests_are_allowed_and_no_others),
		cmocka_unit_test(devices_add_their_requests),
		cmocka_unit_test(paths_name_devices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
