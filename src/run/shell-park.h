/* A shell that has started, and waits for its line.
 *
 * The program is `SHELL -c PLACE`, started as always, where PLACE is a long word that begins on a page of its own. Its
 * parent traces it and takes PLACE's pages away; the shell initialises until it first needs the line, and the kernel stops
 * it before it has read a byte. There it is left standing. Later the line is written where PLACE was, and the shell is
 * let go: it goes on at the very instruction, and is `SHELL -c LINE` by construction, not by imitation.
 *
 * What a shell does look at before is the first byte, for a sign of an option: therefore a line that begins with '-' or
 * '+' is not for a parked one. Anything unexpected on the way (another stop, another place, an end) is a failure, and the
 * shell is killed: whoever parks is then where it was. Environment, directory and descriptors are those it started with.
 *
 * Freestanding, for init. Declines where the architecture is not known here. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "run/sys.h"

#define SHELL_PAGE 4096
/* Whole pages that the line may fill; PLACE goes on to where the environment begins. */
#define SHELL_LINE_PAGES 8
#define SHELL_LINE_MAX (SHELL_LINE_PAGES * SHELL_PAGE - 1)
/* With its NUL, it is never longer. */
#define SHELL_PLACE_MAX ((SHELL_LINE_PAGES + 1) * SHELL_PAGE)

/* What PR_SET_MM_MAP takes. */
struct shell_memory {
	uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack;
	uint64_t arg_start, arg_end, env_start, env_end;
	uint64_t auxv;
	uint32_t auxv_size, exe_fd;
};

struct parked_shell {
	long pid;
	uint64_t line;                  /* where it goes, in the shell's memory */
	uint64_t call;                  /* an instruction there that makes a system call */
	/* Where it keeps when it was started, a word of seconds and a struct timeval; 0: it does not. Set when it is let go. */
	uint64_t seconds_at, time_at;
	struct shell_memory memory;
	struct user_regs_struct registers;      /* as it stands */
};

/* How long PLACE must be, with its NUL, to begin on a page where execve() gets this path and environment. The kernel puts
 * these at the end of the stack, downwards from a word before a page's end: the path, the environment, the arguments.
 * Where it really begins is looked at when the shell is parked. */
static inline size_t shell_place_size(const char *path, const char *const *environment)
{
	size_t above = sizeof(void *) + sys_strlen(path) + 1;
	for (; *environment; environment++)
		above += sys_strlen(*environment) + 1;
	return SHELL_LINE_PAGES * SHELL_PAGE + (SHELL_PAGE - above % SHELL_PAGE) % SHELL_PAGE;
}

/* `pid` is a child that asked to be traced by its parent, the caller, and then executes the shell; `there`: it was seen to stop
 * there, before the shell's first instruction. Waits until it stands where it needs its line. 0, or a negative errno: then it is
 * gone, and reaped. `judge`, unless it is NULL, is asked before the program's first instruction, and refuses it by a negative errno.
 * One that makes a process is no shell to be parked; that process is stopped, and the caller's to end. */
long shell_park(long pid, bool there, long (*judge)(long pid), struct parked_shell *ret_shell);
/* Gives it this line, which has no NUL in it; it stands where it stood. 0, or a negative errno: then the shell is gone, and reaped. */
long shell_write(struct parked_shell *shell, const char *line, size_t length);
/* Lets it go: from now on it runs its line, and is traced by nobody. Negative where it is no more. */
long shell_go(const struct parked_shell *shell);

/* A file of its /proc directory; `name` begins with '/'. A descriptor or a negative errno. x86_64 only. */
long shell_open(long pid, const char *name, int flags);
/* Of parking; the program's headers are where the kernel told it. */
long shell_find_clock(struct parked_shell *shell, uint64_t headers, uint64_t count);
