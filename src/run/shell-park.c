/* A shell parked before its line: see shell-park.h. */
#include "run/shell-park.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "run/sys.h"

static void discard(long pid)
{
	sys_2(SYS_kill, pid, SIGKILL);
	sys_4(SYS_wait4, pid, NULL, __WALL, NULL);
}

#if defined(__x86_64__)
#include <elf.h>
#include <fcntl.h>
#include <linux/ptrace.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>

#define CALL_SIZE 2             /* of the instruction `syscall` */
#define LOOKS_MAX 8
#define LOOKS_APART 256         /* code that looks for options is in one place */
#define WORDS_MAX 65536         /* of environment and auxiliary vector */
/* Beneath what a program may use without moving its stack pointer (128 bytes, says the ABI). */
#define BELOW_STACK 1024
#define AHEAD_MAX (2u << 20)    /* far more than a shell has */

_Static_assert(sizeof(struct shell_memory) == sizeof(struct prctl_mm_map), "as the kernel has it");

static long trace(long request, long pid, uint64_t address, void *data)
{
	return sys_4(SYS_ptrace, request, pid, address, data);
}

static uint64_t peek(long pid, uint64_t address)
{
	uint64_t word;
	return trace(PTRACE_PEEKDATA, pid, address, &word) < 0 ? 0 : word;
}

/* Lets it run by `request` until it stops, which must be for this signal. 1 where it is no more. */
static long resume(long request, long pid, int expected)
{
	int status;
	long result = request ? trace(request, pid, 0, NULL) : 0;
	if (result >= 0)
		result = sys_4(SYS_wait4, pid, &status, __WALL, NULL);
	if (result < 0)
		return result;
	if (!WIFSTOPPED(status))
		return 1;
	return status >> 8 == expected ? 0 : -EPROTO;
}

/* One system call, made by the shell; its registers are `now` before and afterwards. */
static long call(const struct parked_shell *shell, const struct user_regs_struct *now, long number,
                 const uint64_t arguments[4], uint64_t *ret_result)
{
	struct user_regs_struct other = *now;
	other.rip = shell->call;
	other.rax = (unsigned long)number;
	other.orig_rax = ~0UL;
	other.rdi = arguments[0];
	other.rsi = arguments[1];
	other.rdx = arguments[2];
	other.r10 = arguments[3];
	other.r8 = 0;
	long result = trace(PTRACE_SETREGS, shell->pid, 0, &other);
	if (result >= 0)
		result = resume(PTRACE_SINGLESTEP, shell->pid, SIGTRAP);
	if (result == 0)
		result = trace(PTRACE_GETREGS, shell->pid, 0, &other);
	struct user_regs_struct again = *now;
	if (result == 0)
		result = trace(PTRACE_SETREGS, shell->pid, 0, &again);
	if (result == 0)
		*ret_result = other.rax;
	return result;
}

static long protect(const struct parked_shell *shell, const struct user_regs_struct *now, uint64_t protection)
{
	uint64_t failed = 0;
	const uint64_t arguments[4] = { shell->line, SHELL_LINE_PAGES * SHELL_PAGE, protection };
	long result = call(shell, now, SYS_mprotect, arguments, &failed);
	return result ? result : (long)failed;
}

/* What execve() left on the stack: three arguments, the last of which is the line's place, up to the environment. */
static long find_place(struct parked_shell *shell, uint64_t stack)
{
	uint64_t headers = 0, count = 0, at = stack + 5 * 8, end = at + WORDS_MAX * 8;
	if (peek(shell->pid, stack) != 3 || peek(shell->pid, stack + 4 * 8))
		return -EPROTO;
	shell->memory.arg_start = peek(shell->pid, stack + 8);
	shell->line = peek(shell->pid, stack + 3 * 8);
	while (at < end && peek(shell->pid, at))
		at += 8;
	at += 8;
	for (uint64_t kind; at < end && (kind = peek(shell->pid, at)) != AT_NULL; at += 16) {
		if (kind == AT_PHDR)
			headers = peek(shell->pid, at + 8);
		else if (kind == AT_PHNUM)
			count = peek(shell->pid, at + 8);
	}
	return shell->line && shell->line % SHELL_PAGE == 0 ? shell_find_clock(shell, headers, count) : -EPROTO;
}

/* To the first system call of the program's loader, to know an instruction that makes one, and past it. */
static long find_call(struct parked_shell *shell, struct user_regs_struct *now)
{
	long result = resume(PTRACE_SYSCALL, shell->pid, SIGTRAP | 0x80);
	if (result == 0)
		result = trace(PTRACE_GETREGS, shell->pid, 0, now);
	if (result)
		return result;
	shell->call = now->rip - CALL_SIZE;
	result = resume(PTRACE_SYSCALL, shell->pid, SIGTRAP | 0x80);
	if (result == 0)
		result = trace(PTRACE_GETREGS, shell->pid, 0, now);
	/* It has been made: the kernel must not take what it returned for one to be made again. */
	now->orig_rax = ~0UL;
	return result;
}

/* Does the instruction load a single byte: cmp, test, mov, movzx or movsx? */
static bool loads_byte(uint64_t code)
{
	if ((code & 0xf0) == 0x40)
		code >>= 8;     /* REX */
	unsigned first = code & 0xff, second = code >> 8 & 0xff;
	return first == 0x80 || first == 0x8a || first == 0x38 || first == 0x3a || first == 0xf6 ||
	       (first == 0x0f && (second == 0xb6 || second == 0xbe));
}

/* Runs it until it needs the line. Looks at the first byte alone, close together, are for options and are let pass; then
 * whoever reads begins at the first byte again, and has none of it yet. */
static long run_to_line(const struct parked_shell *shell, struct user_regs_struct *now)
{
	uint64_t first_look = 0;
	for (int looks = 0; looks < LOOKS_MAX; looks++) {
		siginfo_t info;
		long result = resume(PTRACE_CONT, shell->pid, SIGSEGV);
		if (result == 0)
			result = trace(PTRACE_GETSIGINFO, shell->pid, 0, &info);
		if (result == 0)
			result = trace(PTRACE_GETREGS, shell->pid, 0, now);
		if (result)
			return result;
		if (info.si_code != SEGV_ACCERR || (uint64_t)(uintptr_t)info.si_addr != shell->line)
			return -EPROTO;
		uint64_t at = now->rip;
		bool near = !first_look || at - first_look + LOOKS_APART < 2 * LOOKS_APART;
		bool look = near && loads_byte(peek(shell->pid, at));
		result = protect(shell, now, PROT_READ | PROT_WRITE);
		if (result || !look)
			return result;
		first_look = first_look ? first_look : at;
		result = resume(PTRACE_SINGLESTEP, shell->pid, SIGTRAP);
		if (result == 0)
			result = trace(PTRACE_GETREGS, shell->pid, 0, now);
		if (result == 0)
			result = protect(shell, now, PROT_NONE);
		if (result)
			return result;
	}
	return -EPROTO;
}

long shell_open(long pid, const char *name, int flags)
{
	char path[64] = "/proc/", digits[24];
	size_t length = 6, count = 0;
	for (long rest = pid; rest; rest /= 10)
		digits[count++] = (char)('0' + rest % 10);
	while (count)
		path[length++] = digits[--count];
	for (; *name && length < sizeof(path) - 1; name++)
		path[length++] = *name;
	path[length] = '\0';
	return sys_4(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

/* The numbers of /proc/PID/stat that the kernel wants told again to be told of a shorter line. */
static long read_memory(struct parked_shell *shell)
{
	struct shell_memory *memory = &shell->memory;
	uint64_t arg_start = 0;
	const struct {
		int field;
		uint64_t *value;
	} wanted[] = { { 26, &memory->start_code }, { 27, &memory->end_code },    { 28, &memory->start_stack },
		       { 45, &memory->start_data }, { 46, &memory->end_data },    { 47, &memory->start_brk },
		       { 48, &arg_start },          { 50, &memory->env_start },   { 51, &memory->env_end } };
	char text[1024];
	long fd = shell_open(shell->pid, "/stat", O_RDONLY);
	long got = fd < 0 ? fd : sys_3(SYS_read, fd, text, sizeof(text));
	if (fd >= 0)
		sys_1(SYS_close, fd);
	if (got <= 0)
		return got < 0 ? got : -EPROTO;
	/* The name, which may hold anything, ends with the last ')'. */
	long at = got;
	while (at > 0 && text[at - 1] != ')')
		at--;
	for (int field = 2; at < got; at++) {
		if (text[at] == ' ') {
			field++;
			continue;
		}
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
			if (wanted[i].field == field)
				*wanted[i].value = *wanted[i].value * 10 + (uint64_t)(text[at] - '0');
	}
	memory->exe_fd = ~0U;
	if (!arg_start || arg_start != memory->arg_start || !memory->start_code)
		return -EPERM;
	uint64_t size = memory->env_start - shell->line;
	return size >= SHELL_LINE_PAGES * SHELL_PAGE && size <= SHELL_PLACE_MAX ? 0 : -EPROTO;
}

static long write_parts(const struct parked_shell *shell, const struct iovec *from, const struct iovec *to, size_t count)
{
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += from[i].iov_len;
	long written = sys6(SYS_process_vm_writev, shell->pid, (long)from, (long)count, (long)to, (long)count, 0);
	return written == (long)size ? 0 : written < 0 ? written : -EFAULT;
}

/* The placeholder's letters go, all of them: what is behind the line is nothing, and takes no memory. */
static long clear_place(const struct parked_shell *shell, const struct user_regs_struct *now)
{
	static char nothing[SHELL_PAGE];
	const uint64_t arguments[4] = { shell->line, SHELL_LINE_PAGES * SHELL_PAGE, MADV_DONTNEED };
	uint64_t failed = 0, rest = shell->line + SHELL_LINE_PAGES * SHELL_PAGE;
	struct iovec from = { nothing, shell->memory.env_start - rest };
	struct iovec to = { (void *)(uintptr_t)rest, from.iov_len };
	long result = call(shell, now, SYS_madvise, arguments, &failed);
	if (result || failed)
		return result ? result : (long)failed;
	return from.iov_len ? write_parts(shell, &from, &to, 1) : 0;
}

/* What it will soon need is there when it goes on: what is left of its heap, and its code. Where the kernel cannot do that, it is
 * there when it is needed. */
static long fetch_ahead(const struct parked_shell *shell, const struct user_regs_struct *now)
{
	const struct shell_memory *memory = &shell->memory;
	uint64_t heap = memory->start_brk & -(uint64_t)SHELL_PAGE, code = memory->start_code & -(uint64_t)SHELL_PAGE, ignored;
	const uint64_t write[4] = { heap, memory->brk - heap, MADV_POPULATE_WRITE };
	const uint64_t read[4] = { code, memory->end_code - code, MADV_POPULATE_READ };
	long result = write[1] > AHEAD_MAX ? 0 : call(shell, now, SYS_madvise, write, &ignored);
	return result || read[1] > AHEAD_MAX ? result : call(shell, now, SYS_madvise, read, &ignored);
}

/* Tells the kernel where the arguments end, so that /proc shows the line and no more. `parts` more are written with it. */
static long set_arguments(struct parked_shell *shell, const struct user_regs_struct *now, size_t length,
                          struct iovec *from, struct iovec *to, size_t parts)
{
	uint64_t below = (now->rsp - BELOW_STACK) & ~15ULL, failed = 0;
	const uint64_t arguments[4] = { PR_SET_MM, PR_SET_MM_MAP, below, sizeof(shell->memory) };
	shell->memory.arg_end = shell->line + length + 1;
	from[parts] = (struct iovec){ &shell->memory, sizeof(shell->memory) };
	to[parts] = (struct iovec){ (void *)(uintptr_t)below, sizeof(shell->memory) };
	long result = write_parts(shell, from, to, parts + 1);
	if (result == 0)
		result = call(shell, now, SYS_prctl, arguments, &failed);
	return result ? result : (long)failed;
}

static long park(struct parked_shell *shell, bool there, long (*judge)(long pid))
{
	struct user_regs_struct now;
	const uint64_t none[4] = { 0 };
	/* A process that it made would go on while it stands. */
	uint64_t options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
	long result = there ? 0 : resume(0, shell->pid, SIGTRAP);
	if (result == 0 && judge)
		result = judge(shell->pid);
	if (result == 0)
		result = trace(PTRACE_SETOPTIONS, shell->pid, 0, (void *)(uintptr_t)options);
	if (result == 0)
		result = trace(PTRACE_GETREGS, shell->pid, 0, &now);
	if (result == 0)
		result = find_place(shell, now.rsp);
	if (result == 0)
		result = read_memory(shell);
	if (result == 0)
		result = find_call(shell, &now);
	if (result == 0)
		result = protect(shell, &now, PROT_NONE);
	if (result == 0)
		result = run_to_line(shell, &now);
	if (result == 0)
		result = call(shell, &now, SYS_brk, none, &shell->memory.brk);
	if (result == 0)
		result = clear_place(shell, &now);
	if (result == 0)
		result = fetch_ahead(shell, &now);
	struct iovec from[1], to[1];
	/* What could be refused is tried now. */
	if (result == 0)
		result = set_arguments(shell, &now, SHELL_LINE_MAX, from, to, 0);
	shell->registers = now;
	return result;
}

long shell_park(long pid, bool there, long (*judge)(long pid), struct parked_shell *ret_shell)
{
	struct parked_shell shell = { .pid = pid };
	long result = park(&shell, there, judge);
	if (result < 0)
		discard(pid);
	if (result == 0)
		*ret_shell = shell;
	return result > 0 ? -ECHILD : result;
}

long shell_write(struct parked_shell *shell, const char *line, size_t length)
{
	struct user_regs_struct now = shell->registers;
	struct timespec clock;
	struct iovec from[4], to[4];
	size_t parts = 0;
	if (length > SHELL_LINE_MAX)
		return discard(shell->pid), -E2BIG;
	from[parts] = (struct iovec){ (void *)(uintptr_t)line, length };
	to[parts++] = (struct iovec){ (void *)(uintptr_t)shell->line, length };
	sys_2(SYS_clock_gettime, CLOCK_REALTIME, &clock);
	int64_t time[2] = { clock.tv_sec, clock.tv_nsec / 1000 };
	if (shell->seconds_at) {
		from[parts] = (struct iovec){ time, sizeof(time[0]) };
		to[parts++] = (struct iovec){ (void *)(uintptr_t)shell->seconds_at, sizeof(time[0]) };
	}
	if (shell->time_at) {
		from[parts] = (struct iovec){ time, sizeof(time) };
		to[parts++] = (struct iovec){ (void *)(uintptr_t)shell->time_at, sizeof(time) };
	}
	long result = set_arguments(shell, &now, length, from, to, parts);
	if (result < 0)
		discard(shell->pid);
	return result > 0 ? -ECHILD : result;
}

long shell_go(const struct parked_shell *shell)
{
	return trace(PTRACE_DETACH, shell->pid, 0, NULL);
}

#else

long shell_park(long pid, bool there, long (*judge)(long pid), struct parked_shell *ret_shell)
{
	(void)there;
	(void)judge;
	(void)ret_shell;
	discard(pid);
	return -ENOSYS;
}

long shell_write(struct parked_shell *shell, const char *line, size_t length)
{
	(void)line;
	(void)length;
	discard(shell->pid);
	return -ENOSYS;
}

long shell_go(const struct parked_shell *shell)
{
	(void)shell;
	return -ENOSYS;
}

#endif
