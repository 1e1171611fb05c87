/* Attempts on privileges and on parts of the kernel that no ordinary program needs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

/* ---- privileges -------------------------------------------------------------------------------------------------- */

static bool has_capability(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[0].effective | data[0].permitted | data[0].inheritable | data[1].effective | data[1].permitted;
}

/* Has one, or can get one. */
enum answer try_capabilities(char **arguments)
{
	(void)arguments;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1u << CAP_CHOWN, .permitted = 1u << CAP_CHOWN } };
	return escaped_if(has_capability() || syscall(SYS_capset, &header, data) == 0);
}

enum answer try_bounding_set(char **arguments)
{
	(void)arguments;
	for (int capability = 0; capability < 64; capability++)
		if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1)
			return ESCAPED;
	return CONTAINED;
}

enum answer try_new_privileges(char **arguments)
{
	(void)arguments;
	prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? ESCAPED : CONTAINED;
}

enum answer try_root(char **arguments)
{
	(void)arguments;
	return escaped_if(setresuid(0, 0, 0) == 0 || geteuid() == 0);
}

/* PROGRAM ARGUMENT…: started by us, it runs as its owner. */
enum answer try_setuid(char **arguments)
{
	struct stat info;
	int hold[2];
	if (stat(arguments[0], &info) < 0 || !(info.st_mode & S_ISUID) || pipe(hold) < 0)
		return broken(arguments[0]);
	pid_t pid = fork_quietly();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(hold[0], 0);
		dup2(null, 1);
		dup2(null, 2);
		execv(arguments[0], arguments);
		_exit(1);
	}
	char path[64];
	unsigned effective = 0;
	bool changed = false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	for (int i = 0; i < 150 && !changed; i++) {
		char line[200];
		FILE *status = fopen(path, "r");
		while (status && fgets(line, sizeof(line), status))
			if (sscanf(line, "Uid: %*u %u", &effective) == 1)
				changed = effective == info.st_uid && effective != getuid();
		if (status)
			fclose(status);
		usleep(2000);
	}
	kill(pid, SIGKILL);
	close(hold[1]);
	waitpid(pid, NULL, 0);
	return changed ? ESCAPED : CONTAINED;
}

static int capable_after(void *argument)
{
	char *words[] = { "attempt", "--inline", "capabilities", NULL }, *environment[] = { NULL };
	int null = open("/dev/null", O_WRONLY);
	int unused = setresuid(65534, 65534, 65534); /* where we are root: what it gives must come from the file */
	(void)unused;
	dup2(null, 1);
	syscall(SYS_execveat, *(int *)argument, "", words, environment, AT_EMPTY_PATH);
	return 1;
}

/* PROGRAM: a copy of this program that has file capabilities; it tells whether it got any. */
enum answer try_file_capabilities(char **arguments)
{
	int fd = open(arguments[0], O_PATH);
	return fd < 0 ? escaped_if(false) : run_child(capable_after, &fd);
}

static int make_as(const char *way, const char *path)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 04755 };
	if (!strcmp(way, "create"))
		return open(path, O_CREAT | O_EXCL | O_WRONLY, 04755);
	if (!strcmp(way, "tmpfile"))
		return open(".", O_TMPFILE | O_WRONLY, 04755);
	if (!strcmp(way, "openat2"))
		return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (!strcmp(way, "mknod"))
		return mknod(path, S_IFREG | 04755, 0) < 0 ? -1 : open(path, O_WRONLY);
	int fd = open(path, O_CREAT | O_WRONLY, 0755);
	if (!strcmp(way, "chmod"))
		chmod(path, 04755);
	else if (!strcmp(way, "fchmodat2"))
		syscall(452 /* SYS_fchmodat2, since 6.6 */, AT_FDCWD, path, 04755, 0);
	else
		fchmod(fd, 02755);
	return fd;
}

/* WAY PATH: a file that whoever starts it on the host runs as the caller. */
enum answer try_make_setuid(char **arguments)
{
	struct stat info;
	umask(0);
	int fd = make_as(arguments[0], arguments[1]);
	return escaped_if(fd >= 0 && fstat(fd, &info) == 0 && (info.st_mode & (S_ISUID | S_ISGID)));
}

enum answer try_chown(char **arguments)
{
	return escaped_if(chown(arguments[0], 65534, 65534) == 0);
}

/* ---- namespaces and mounts --------------------------------------------------------------------------------------- */

static unsigned long flag_of(const char *name)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} flags[] = {
		{ "user", CLONE_NEWUSER }, { "mnt", CLONE_NEWNS }, { "net", CLONE_NEWNET }, { "pid", CLONE_NEWPID }
	};
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!strcmp(flags[i].name, name))
			return flags[i].flag;
	return 0;
}

enum answer try_unshare(char **arguments)
{
	return escaped_if(unshare((int)flag_of(arguments[0])) == 0);
}

enum answer try_clone_namespace(char **arguments)
{
	return escaped_if_made(syscall(SYS_clone, flag_of(arguments[0]) | SIGCHLD, NULL, NULL, NULL, NULL));
}

enum answer try_clone3_namespace(char **arguments)
{
	(void)arguments;
	struct clone_args how = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	return escaped_if_made(syscall(SYS_clone3, &how, sizeof(how)));
}

/* KIND: into one's own network namespace, which proves that one could go into another. */
enum answer try_setns(char **arguments)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/ns/%s", arguments[0]);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return broken(path);
	return escaped_if(setns(fd, 0) == 0);
}

enum answer try_mount(char **arguments)
{
	return escaped_if(mount("none", arguments[0], "tmpfs", 0, NULL) == 0);
}

enum answer try_bind_mount(char **arguments)
{
	return escaped_if(mount(arguments[0], arguments[1], NULL, MS_BIND, NULL) == 0);
}

/* PATH TEXT: what is mounted over it is taken away, and the text is there. */
enum answer try_unmask(char **arguments)
{
	int fd = umount2(arguments[0], MNT_DETACH) == 0 ? open(arguments[0], O_RDONLY) : -1;
	return escaped_if(fd >= 0 && fd_contains(fd, arguments[1]));
}

enum answer try_remount(char **arguments)
{
	return escaped_if(mount(NULL, arguments[0], NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL) == 0);
}

enum answer try_new_mount(char **arguments)
{
	(void)arguments;
	return escaped_if_fd((int)syscall(SYS_fsopen, "tmpfs", 0));
}

enum answer try_chroot(char **arguments)
{
	return escaped_if(chroot(arguments[0]) == 0);
}

enum answer try_pivot_root(char **arguments)
{
	if (mount("none", arguments[0], "tmpfs", 0, NULL) < 0 || chdir(arguments[0]) < 0)
		return escaped_if(false);
	return escaped_if(syscall(SYS_pivot_root, ".", ".") == 0);
}

/* PATH: the machine's null device under a name of our own; its disk would be as easy. */
enum answer try_mknod(char **arguments)
{
	return escaped_if(mknod(arguments[0], S_IFCHR | 0666, makedev(1, 3)) == 0);
}

/* ---- system calls ------------------------------------------------------------------------------------------------ */

static char buffer[512], here[16] = "here";
static struct iovec local_part = { buffer, 4 }, remote_part = { here, 4 };
static struct perf_event_attr event = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(event), .exclude_kernel = 1,
                                        .exclude_hv = 1 };
static struct {
	unsigned bytes;
	int type;
	unsigned char handle[8];
} handle = { 8, 1, { 0 } };

/* With arguments that the kernel answers otherwise than with EPERM or ENOSYS, whoever asks (P: whoever has the
 * privilege), and that change nothing. An answer of the kernel's own means that its code was reached. */
#define AS_LONG(value) (long)(uintptr_t)(value)
#define OWN_PID LONG_MIN
static const struct {
	const char *name;
	long number, arguments[6];
} calls[] = {
	{ "bpf", SYS_bpf, { 1, AS_LONG(buffer), 64 } },
	{ "perf_event_open", SYS_perf_event_open, { AS_LONG(&event), 0, -1, -1, 0 } },
	{ "userfaultfd", SYS_userfaultfd, { 1 /* user mode only */ } },
	{ "io_uring_setup", SYS_io_uring_setup, { 4, AS_LONG(buffer) } },
	{ "keyctl", SYS_keyctl, { KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1 } },
	{ "add_key", SYS_add_key, { AS_LONG("user"), AS_LONG("cordon"), AS_LONG("x"), 1, KEY_SPEC_PROCESS_KEYRING } },
	{ "request_key", SYS_request_key, { AS_LONG("user"), AS_LONG("cordon-none"), 0, 0 } },
	{ "process_vm_readv", SYS_process_vm_readv, { OWN_PID, AS_LONG(&local_part), 1, AS_LONG(&remote_part), 1, 0 } },
	{ "process_vm_writev",
	  SYS_process_vm_writev,
	  { OWN_PID, AS_LONG(&local_part), 1, AS_LONG(&remote_part), 1, 0 } },
	{ "open_by_handle_at", SYS_open_by_handle_at, { -1, AS_LONG(&handle), 0 } },
	{ "fanotify_init", SYS_fanotify_init, { 0x200 /* FAN_REPORT_FID */, 0 } },
	{ "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 0 } },
	{ "process_madvise", SYS_process_madvise, { -1, 0, 0, 0, 0 } },
	{ "kcmp", SYS_kcmp, { OWN_PID, OWN_PID, 0, 0, 1 } },
	{ "setns", SYS_setns, { -1, 0 } },
	{ "open_tree", SYS_open_tree, { AT_FDCWD, AS_LONG("/"), 0 } },
	{ "quotactl", SYS_quotactl, { 0x80000100, 0, 0, AS_LONG(buffer) } },
	{ "clock_settime", SYS_clock_settime, { 99, AS_LONG(buffer) } },
	{ "memfd_secret", SYS_memfd_secret, { 0xff } },
	{ "move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, 0 } },
#ifdef SYS_modify_ldt
	{ "modify_ldt", SYS_modify_ldt, { 0, AS_LONG(buffer), 16 } },
#endif
	/* P */
	{ "kexec_load", SYS_kexec_load, { 0, 0, 0, -1 } },
	{ "init_module", SYS_init_module, { AS_LONG(buffer), 4, AS_LONG("") } },
	{ "finit_module", SYS_finit_module, { -1, AS_LONG(""), 0 } },
	{ "delete_module", SYS_delete_module, { AS_LONG("cordon_none"), 0 } },
	{ "reboot", SYS_reboot, { 1, 2, 3, 0 } },
	{ "syslog", SYS_syslog, { 10, 0, 0 } },
	{ "swapoff", SYS_swapoff, { AS_LONG("/cordon-none") } },
};

/* NAME: the call reaches the kernel. */
enum answer try_call(char **arguments)
{
	memset(buffer, !strcmp(arguments[0], "bpf") ? 0xff : 0, 64);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const long *a = calls[i].arguments;
		if (strcmp(calls[i].name, arguments[0]))
			continue;
		long first = a[0] == OWN_PID ? getpid() : a[0], second = a[1] == OWN_PID ? getpid() : a[1];
		long result = syscall(calls[i].number, first, second, a[2], a[3], a[4], a[5]);
		return escaped_if(result >= 0 || (errno != EPERM && errno != ENOSYS));
	}
	note("no such call in the table");
	return BROKEN;
}

/* The 32-bit entry point: getpid is 20 there. */
enum answer try_int80(char **arguments)
{
	(void)arguments;
#ifdef __x86_64__
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return result == getpid() ? ESCAPED : CONTAINED;
#else
	return BROKEN;
#endif
}

enum answer try_x32(char **arguments)
{
	(void)arguments;
#ifdef __x86_64__
	return escaped_if(syscall(0x40000000L | SYS_getpid) == getpid());
#else
	return BROKEN;
#endif
}

enum answer try_personality(char **arguments)
{
	(void)arguments;
	return escaped_if(personality(READ_IMPLIES_EXEC) != -1 && personality(0xffffffff) & READ_IMPLIES_EXEC);
}

enum answer try_line_discipline(char **arguments)
{
	(void)arguments;
	int discipline = 0;
	int fd = posix_openpt(O_RDWR | O_NOCTTY);
	if (fd < 0)
		return escaped_if(false);
	return escaped_if(ioctl(fd, TIOCSETD, &discipline) == 0);
}

/* PATH: what a disk quota goes by is set (to what it is). */
enum answer try_quota_project(char **arguments)
{
	struct fsxattr attributes;
	int fd = open(arguments[0], O_RDONLY | O_CREAT, 0644);
	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return broken(arguments[0]);
	return escaped_if(ioctl(fd, FS_IOC_FSSETXATTR, &attributes) == 0);
}

/* PATH: a flag of the file (here the one that keeps it from backups) is set. */
enum answer try_file_flags(char **arguments)
{
	unsigned flags, changed = 0;
	int fd = open(arguments[0], O_RDONLY | O_CREAT, 0644);
	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return broken(arguments[0]);
	flags ^= FS_NODUMP_FL;
	return escaped_if(ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0 && ioctl(fd, FS_IOC_GETFLAGS, &changed) == 0 &&
	                  changed == flags);
}

/* NUMBER: the kernel is asked for this, on a descriptor that is none, which is what it then says. */
enum answer try_request(char **arguments)
{
	return escaped_if(syscall(SYS_ioctl, -1, strtoul(arguments[0], NULL, 0), NULL) < 0 && errno == EBADF);
}

/* PATH: a setting of the kernel's is written (what it is already). */
enum answer try_write_setting(char **arguments)
{
	char value[256];
	int in = open(arguments[0], O_RDONLY), out = open(arguments[0], O_WRONLY);
	ssize_t length = in < 0 ? -1 : read(in, value, sizeof(value));
	if (length <= 0)
		return broken(arguments[0]);
	return escaped_if(out >= 0 && write(out, value, (size_t)length) == length);
}

/* NAME TEXT: puts a key into a session of its own, then becomes the program that follows. Not an attempt: it runs
 * outside. */
enum answer try_with_key(char **arguments)
{
	/* A user may have 200 keys. Those of sandboxes that have ended count until the kernel has collected them. */
	for (int tries = 0;; tries++) {
		if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 &&
		    syscall(SYS_add_key, "user", arguments[0], arguments[1], strlen(arguments[1]),
		            KEY_SPEC_SESSION_KEYRING) >= 0)
			break;
		if (errno != EDQUOT || tries == 300)
			return broken("add_key");
		usleep(100000);
	}
	execv(arguments[2], arguments + 2);
	return broken(arguments[2]);
}

/* NAME TEXT: a key of the caller's session. */
enum answer try_key(char **arguments)
{
	char bytes[64] = "";
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", arguments[0], 0);
	long length = key < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, key, bytes, sizeof(bytes) - 1);
	return escaped_if(length > 0 && !strcmp(bytes, arguments[1]));
}
