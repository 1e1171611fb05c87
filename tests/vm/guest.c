/* What a guest without an interpreter needs besides a shell: guest COMMAND ARGUMENT…
 *
 *     root PROGRAM…                has a root that is not the kernel's first one, which no process can leave behind
 *     as UID PROGRAM…              drops to an ordinary user
 *     world BASE TEXT UNIQUE PORT  the listeners, queues and the process that attempts are aimed at; says their names
 *     look PATH…                   what is at each path, a line each
 *     list DIRECTORY
 *     left MARK…                   who carries a mark, and ends them; a line each
 *     kill-when-marked MARK PROGRAM…
 *     terminal PROGRAM…            from a terminal of its own; what was typed there comes as errors
 *     with-descriptors PATH PROGRAM…
 *     capable FILE                 gives it a capability
 *     hog KIND MEGABYTES           takes memory: anonymous, shared, memfd, or a file
 *     hold KIND MEGABYTES          has the kernel keep what nobody reads: pipes, unix, tcp
 *     crowd NUMBER                 makes processes, and says how many it could
 *     bomb                         makes processes that make processes, 255 in all
 *     busy MILLISECONDS            uses a processor
 *     end STATUS                   ends the machine
 *
 * Statically linked, and used as the tests' workload as well. */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif

#define MB (1L << 20)

void give_up(const char *what)
{
	fprintf(stderr, "guest: %s: %s\n", what, strerror(errno));
	exit(99);
}

long checked(long result, const char *what)
{
	if (result < 0)
		give_up(what);
	return result;
}

void become(char **words)
{
	execvp(words[0], words);
	give_up(words[0]);
}

static int root(char **words)
{
	checked(mkdir("/root-mount", 0755), "mkdir");
	checked(mount("/", "/root-mount", NULL, MS_BIND, NULL), "bind");
	checked(chdir("/root-mount"), "chdir");
	checked(mount(".", "/", NULL, MS_MOVE, NULL), "move");
	checked(chroot("."), "chroot");
	become(words);
}

static int as(char **words)
{
	unsigned id = (unsigned)atoi(words[0]);
	checked(setgroups(0, NULL), "setgroups");
	checked(setresgid(id, id, id), "setresgid");
	checked(setresuid(id, id, id), "setresuid");
	become(words + 1);
}

static int with_descriptors(char **words)
{
	static const int numbers[] = { 9, 50, 199 };
	int fd = (int)checked(open(words[0], O_RDONLY), words[0]);
	for (size_t i = 0; i < 3; i++)
		dup2(fd, numbers[i]);
	become(words + 1);
}

/* CAP_NET_RAW, effective: struct vfs_cap_data, version 2. */
static int capable(char **words)
{
	static const unsigned char value[20] = { 1, 0, 0, 2, 0, 32 };
	return (int)checked(setxattr(words[0], "security.capability", value, sizeof(value), 0), words[0]);
}

/* ---- workloads --------------------------------------------------------------------------------------------------- */

static int hog(char **words)
{
	static char chunk[MB];
	const char *kind = words[0];
	long size = atol(words[1]) * MB;
	memset(chunk, 'x', sizeof(chunk));
	bool anonymous = !strcmp(kind, "anonymous"), shared = !strcmp(kind, "shared");
	char *memory = anonymous || shared ? mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
	                                          MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0) : NULL;
	int fd = memory ? -1 : !strcmp(kind, "memfd") ? memfd_create("hog", 0) : open(kind, O_RDWR | O_CREAT, 0600);
	if (memory == MAP_FAILED || (!memory && fd < 0))
		give_up(kind);
	for (long at = 0; at < size; at += MB) {
		if (memory)
			memcpy(memory + at, chunk, MB);
		else
			checked(write(fd, chunk, MB), kind);
		/* What is not on the disk yet is no cache that could be let go, and a slow disk must not decide. */
		if (!memory && at % (4 * MB) == 0)
			fdatasync(fd);
	}
	/* For so many seconds, if that is said. */
	if (words[2])
		sleep((unsigned)atoi(words[2]));
	puts("had it");
	if (!memory)
		unlink(kind);
	return 0;
}

static void make_pair(const char *kind, int listener, int ends[2])
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	if (!strcmp(kind, "pipes")) {
		checked(pipe(ends), kind);
		fcntl(ends[1], F_SETPIPE_SZ, MB);
	} else if (!strcmp(kind, "unix")) {
		checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), kind);
	} else {
		checked(getsockname(listener, (struct sockaddr *)&address, &length), kind);
		ends[1] = (int)checked(socket(AF_INET, SOCK_STREAM, 0), kind);
		checked(connect(ends[1], (struct sockaddr *)&address, length), kind);
		ends[0] = (int)checked(accept(listener, NULL, NULL), kind);
	}
}

static int hold(char **words)
{
	static char chunk[MB / 16];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	long wanted = atol(words[1]) * MB, had = 0;
	int listener = (int)checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
	checked(bind(listener, (struct sockaddr *)&address, sizeof(address)), "bind");
	checked(listen(listener, 8), "listen");
	for (int pairs = 0; pairs < 400 && had < wanted; pairs++) {
		int ends[2];
		make_pair(words[0], listener, ends);
		fcntl(ends[1], F_SETFL, O_NONBLOCK);
		for (ssize_t length; had < wanted && (length = write(ends[1], chunk, sizeof(chunk))) > 0;)
			had += length;
	}
	puts(had < wanted ? "had less" : "had it");
	return had < wanted;
}

static int bomb(char **words)
{
	(void)words;
	for (int left = 7; left && fork() >= 0 && fork() >= 0; left--)
		;
	pause();
	return 0;
}

/* What may not be made now may be made in a moment: a limit is one for longer. */
static pid_t fork_at_last(void)
{
	pid_t pid = fork();
	for (int tries = 0; pid < 0 && tries < 20; tries++) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		pid = fork();
	}
	return pid;
}

static int crowd(char **words)
{
	int wanted = atoi(words[0]), count = 0;
	pid_t *made = calloc((size_t)wanted, sizeof(*made));
	for (; made && count < wanted && (made[count] = fork_at_last()) >= 0; count++)
		if (made[count] == 0) {
			pause();
			_exit(0);
		}
	printf("%d\n", count);
	while (count > 0)
		kill(made[--count], SIGKILL);
	free(made);
	return 0;
}

static int busy(char **words)
{
	while (clock() < atol(words[0]) * (CLOCKS_PER_SEC / 1000))
		;
	return 0;
}

/* qemu ends with 2 * STATUS + 1; where it has no such device, it is turned off. */
static int end(char **words)
{
	sync();
#ifdef __x86_64__
	if (ioperm(0xf4, 4, 1) == 0)
		outl((unsigned)atoi(words[0]), 0xf4);
#else
	(void)words;
#endif
	return (int)checked(reboot(RB_POWER_OFF), "reboot");
}

static const struct {
	const char *name;
	int least;
	int (*function)(char **words);
} commands[] = {
	{ "root", 1, root },
	{ "as", 2, as },
	{ "world", 4, world },
	{ "look", 0, look },
	{ "list", 1, list },
	{ "left", 0, left },
	{ "kill-when-marked", 2, kill_when_marked },
	{ "terminal", 1, terminal },
	{ "with-descriptors", 2, with_descriptors },
	{ "capable", 1, capable },
	{ "hog", 2, hog },
	{ "crowd", 1, crowd },
	{ "busy", 1, busy },
	{ "hold", 2, hold },
	{ "bomb", 0, bomb },
	{ "end", 1, end },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, argv[1]) && argc - 2 >= commands[i].least)
			return commands[i].function(argv + 2);
	fputs("guest: no such command, or too few words\n", stderr);
	return 99;
}
