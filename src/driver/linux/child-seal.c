/* What `command` of launch.h's picture does to itself just before exec: limits, keyring, privileges, Landlock, seccomp.
 * In this order: Landlock opens paths, seccomp comes last because it would refuse some of the steps before it. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "driver/linux/control.h"
#include "driver/linux/launch.h"
#include "driver/linux/sys.h"

/* The limit on open files, or the others. */
static int limit(struct launch *launch, bool files)
{
	const struct launch_seal *seal = &launch->seal;
	for (size_t i = 0; i < seal->rlimit_count; i++) {
		const struct launch_rlimit *limit = &seal->rlimits[i];
		if ((limit->resource == RLIMIT_NOFILE) != files)
			continue;
		long result = sys_4(SYS_prlimit64, 0, limit->resource, &limit->value, NULL);
		if (result < 0)
			return launch_unavailable(launch, result, "limits", NULL, "cannot set a resource limit");
	}
	return 0;
}

/* A descriptor that is still to be handed out is counted against the limit on open files, with those that other
 * commands of this user keep under way: launch_tell_renames() sets it then. */
int launch_limit(struct launch *launch)
{
	return limit(launch, false) < 0 || (!launch->tells_renames && limit(launch, true) < 0) ? -1 : 0;
}

void launch_empty_bounding_set(const struct launch *launch)
{
	for (int capability = 0; launch->seal.drop_privileges && capability < 64; capability++)
		if (sys_5(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0) == -EINVAL)
			break;
}

static int drop_privileges(struct launch *launch)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	sys_5(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	long result = sys_2(SYS_capset, &header, none);
	if (result >= 0)
		result = sys_5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return result < 0 ? launch_unavailable(launch, result, "privileges", NULL, "cannot drop privileges") : 0;
}

#ifdef CORDON_UNWALL
/* An ordinary user's capabilities would be gone with exec. */
static void keep_privileges(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	sys_2(SYS_capget, &header, data);
	for (int i = 0; i < 2; i++)
		data[i].inheritable = data[i].effective = data[i].permitted;
	sys_2(SYS_capset, &header, data);
	for (int capability = 0; capability < 64; capability++)
		sys_5(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
}
#endif

/* ---- Landlock --------------------------------------------------------------------------------------------------- */

#define FILE_ONLY (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | \
                   LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV)
#define CHANGE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
                LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | \
                LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER | \
                LANDLOCK_ACCESS_FS_TRUNCATE)
#define DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

/* What the kernel's ABI knows; REFER came with 2, TRUNCATE with 3, IOCTL_DEV with 5. */
static uint64_t handled(const struct launch_seal *seal)
{
	uint64_t access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | CHANGE | DEVICES |
	                  LANDLOCK_ACCESS_FS_IOCTL_DEV;
	if (seal->landlock_execute)
		access |= LANDLOCK_ACCESS_FS_EXECUTE;
	if (seal->landlock_abi < 2)
		access &= ~LANDLOCK_ACCESS_FS_REFER;
	if (seal->landlock_abi < 3)
		access &= ~LANDLOCK_ACCESS_FS_TRUNCATE;
	if (seal->landlock_abi < 5)
		access &= ~LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return access;
}

static uint64_t access_of(unsigned rule)
{
	uint64_t access = 0;
	if (rule & LANDLOCK_SEE)
		access |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	if (rule & LANDLOCK_START)
		access |= LANDLOCK_ACCESS_FS_EXECUTE;
	if (rule & LANDLOCK_CHANGE)
		access |= CHANGE;
	if (rule & LANDLOCK_USE)
		access |= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
		          LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return access;
}

static int add_rule(struct launch *launch, long ruleset, const struct landlock_rule *rule, uint64_t known)
{
	struct stat info;
	long fd = sys_4(SYS_openat, AT_FDCWD, rule->path, O_PATH | O_CLOEXEC, 0);
	if (fd == -ENOENT || fd == -EACCES)
		return 0; /* not there or not reachable: without a rule it stays refused */
	long result = fd < 0 ? fd : sys_2(SYS_fstat, fd, &info);
	if (result >= 0) {
		struct landlock_path_beneath_attr beneath = { .allowed_access = access_of(rule->access) & known,
		                                              .parent_fd = (int)fd };
		if (!S_ISDIR(info.st_mode))
			beneath.allowed_access &= FILE_ONLY;
		if ((rule->access & LANDLOCK_IF_PUBLIC) && !(info.st_mode & S_IROTH))
			beneath.allowed_access = 0;
		if (beneath.allowed_access)
			result = sys_4(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
	}
	if (fd >= 0)
		sys_1(SYS_close, fd);
	return result < 0 ? launch_unavailable(launch, result, "filesystem_second", rule->path,
	                                       "cannot add a Landlock rule") :
	                    0;
}

static int restrict_filesystem(struct launch *launch, const struct launch_seal *seal)
{
	struct landlock_ruleset attributes = { .handled_access_fs = handled(seal) };
	size_t size = sizeof(attributes.handled_access_fs);
	if (seal->landlock_abi >= 6) {
		attributes.scoped = seal->landlock_scopes;
		size = sizeof(attributes);
	}
	long ruleset = sys_3(SYS_landlock_create_ruleset, &attributes, size, 0);
	if (ruleset < 0)
		return launch_unavailable(launch, ruleset, "filesystem_second", NULL, "cannot make a Landlock ruleset");
	for (size_t i = 0; i < seal->rule_count; i++)
		if (add_rule(launch, ruleset, &seal->rules[i], attributes.handled_access_fs) < 0)
			return -1;
	long result = sys_2(SYS_landlock_restrict_self, ruleset, 0);
	sys_1(SYS_close, ruleset);
	return result < 0 ? launch_unavailable(launch, result, "filesystem_second", NULL,
	                                       "cannot enforce the Landlock ruleset") :
	                    0;
}

/* ---- seccomp ---------------------------------------------------------------------------------------------------- */

static int install_filter(struct launch *launch, const struct sock_filter *filter, unsigned short length)
{
	struct sock_fprog program = { length, (struct sock_filter *)(uintptr_t)filter };
	long result = sys_3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	if (result >= 0)
		return 0;
	return launch_fail(
		launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "kernel_surface", "seccomp",
		"cannot install the system call filter",
		"the kernel must be built with CONFIG_SECCOMP_FILTER, and nothing around cordon may refuse seccomp()");
}

/* The starter's filter lets it fork; a command that may not start others gives that up. Other architectures' calls
 * never come so far: the starter's filter refuses them. Threads can still be made. */
int launch_forbid_spawning(struct launch *launch)
{
#define CALL(number)                                                                                                   \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
	static const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_fork
		CALL(SYS_fork),
		CALL(SYS_vfork),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
#undef CALL
	return install_filter(launch, filter, sizeof(filter) / sizeof(*filter));
}

static long listen_for_renames(void)
{
#define CALL(number)                                                                                                   \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
	static const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_rename
		CALL(SYS_rename),
#endif
#ifdef SYS_renameat
		CALL(SYS_renameat),
#endif
		CALL(SYS_renameat2),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
#undef CALL
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), (struct sock_filter *)(uintptr_t)filter };
	/* From Linux 5.19 on a signal that is not fatal does not interrupt a call that is being looked at, which would
	 * make it twice. */
	long fd = sys_3(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	                SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
	if (fd == -EINVAL)
		fd = sys_3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	return fd;
}

int launch_tell_renames(struct launch *launch)
{
	struct control_message message = { .kind = CONTROL_RENAMES };
	struct iovec part = { &message, sizeof(message) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = {
			      .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct msghdr header = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	long fd = listen_for_renames(), result = 0;
	*(int *)(void *)CMSG_DATA(&control.header) = (int)fd;
	if (fd >= 0) {
		result = launch_hand_out(CONTROL_FD, &header);
		sys_1(SYS_close, fd);
	}
	sys_1(SYS_close, CONTROL_FD);
	/* Without a listener every rename would fail. */
	if (result < 0)
		return launch_fail(launch, CORDON_E_RESOURCE_EXHAUSTED, result, "kernel_surface", "sendmsg",
		                   "cannot hand out the listener for renames", "try again");
	return limit(launch, true);
}

int launch_seal(struct launch *launch)
{
	const struct launch_seal *seal = &launch->seal;
	if (launch_limit(launch) < 0)
		return -1;
	/* Where the kernel or a container refuses, the filter below still refuses every use of a keyring. */
	if (seal->new_keyring)
		sys_2(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
#ifdef CORDON_UNWALL
	if (!seal->drop_privileges)
		keep_privileges();
#endif
	if (seal->drop_privileges && drop_privileges(launch) < 0)
		return -1;
	if (seal->landlock_abi > 0 && restrict_filesystem(launch, seal) < 0)
		return -1;
	return seal->filter_length ? install_filter(launch, seal->filter, seal->filter_length) : 0;
}
