/* The program that tries to get out: attempt [--inline] NAME ARGUMENT… [-- NAME ARGUMENT…]…
 *
 * Each attempt runs in a process of its own, so that one cannot disturb the next (--inline: in this one, for where no
 * process can be made). One line is printed for each: NAME, tab, escaped | contained | broken, tab, a note. The status
 * is that of the last: 0 escaped, 1 contained, 2 broken. */
#define _GNU_SOURCE
#include "attempt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 10

static const struct {
	const char *name;
	int least;
	enum answer (*function)(char **arguments);
} attempts[] = {
#define ATTEMPT(name, least, function) { name, least, function },
#include "attempts.def"
#undef ATTEMPT
};

pid_t init_pid;
const char *self_path;
static char *text; /* shared with the children */

void note(const char *format, ...)
{
	va_list arguments;
	size_t length = strlen(text);
	va_start(arguments, format);
	vsnprintf(text + length, 1000 - length, format, arguments);
	va_end(arguments);
}

enum answer broken(const char *what)
{
	note("%s: %s", what, strerror(errno));
	return BROKEN;
}

enum answer escaped_if(bool escaped)
{
	if (!escaped)
		note("%s", strerror(errno));
	return escaped ? ESCAPED : CONTAINED;
}

enum answer escaped_if_fd(int fd)
{
	enum answer answer = escaped_if(fd >= 0);
	if (fd >= 0)
		close(fd);
	return answer;
}

enum answer escaped_if_made(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, __WALL);
	return escaped_if(pid > 0);
}

bool fd_contains(int fd, const char *wanted)
{
	static char bytes[65536];
	size_t length = 0, size = strlen(wanted);
	/* Files of /proc are read in parts, and some are longer than this buffer: its end may hold the beginning of
	 * `wanted`. */
	for (ssize_t more; (more = read(fd, bytes + length, sizeof(bytes) - length)) > 0;) {
		length += (size_t)more;
		if (memmem(bytes, length, wanted, size))
			return true;
		if (length > size) {
			memmove(bytes, bytes + length - size, size);
			length = size;
		}
	}
	return false;
}

pid_t fork_quietly(void)
{
	fflush(NULL);
	return fork();
}

enum answer run_child(int (*function)(void *), void *argument)
{
	int status;
	pid_t pid = fork_quietly();
	if (pid < 0)
		return broken("fork");
	if (pid == 0)
		_exit(function(argument));
	if (waitpid(pid, &status, __WALL) < 0)
		return broken("waitpid");
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ESCAPED : CONTAINED;
}

static enum answer call(char **words, int count)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		if (!strcmp(attempts[i].name, words[0])) {
			if (count - 1 < attempts[i].least) {
				note("too few arguments");
				return BROKEN;
			}
			errno = 0;
			return attempts[i].function(words + 1);
		}
	note("no such attempt");
	return BROKEN;
}

/* Waits by a descriptor: an attempt may have changed how signals come. */
static enum answer call_apart(char **words, int count)
{
	int ends[2], status;
	if (pipe(ends) < 0)
		return broken("pipe");
	pid_t pid = fork_quietly();
	if (pid < 0)
		return broken("fork");
	if (pid == 0) {
		close(ends[0]);
		_exit(call(words, count));
	}
	close(ends[1]);
	struct pollfd end = { .fd = ends[0], .events = POLLIN };
	bool late = false;
	for (int waited = 0; waitpid(pid, &status, WNOHANG | __WALL) == 0; waited++) {
		if (waited == SECONDS * 1000) {
			kill(pid, SIGKILL);
			late = true;
		}
		if (end.fd >= 0 && poll(&end, 1, 1) > 0)
			end.fd = -1;
		else if (end.fd < 0)
			usleep(200);
	}
	close(ends[0]);
	if (late) {
		note("no end after %d s", SECONDS);
		return BROKEN;
	}
	if (!WIFEXITED(status)) {
		note("ended by signal %d", WTERMSIG(status));
		return BROKEN;
	}
	return WEXITSTATUS(status) <= BROKEN ? (enum answer)WEXITSTATUS(status) : BROKEN;
}

int main(int argc, char **argv)
{
	static const char *const answers[] = { "escaped", "contained", "broken" };
	int first = 1, answer = BROKEN;
	bool outside = argc > 1 && !strcmp(argv[1], "with-key"); /* the words after it are not ours to split */
	bool in_line = argc > 1 && !strcmp(argv[1], "--inline");
	if (argc > 1 && !strcmp(argv[1], "hello"))
		return 0; /* what the attempts to execute something execute */
	if (argc > 1 && !strcmp(argv[1], "pause")) {
		pause();
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "victim")) { /* what the attempts on other processes are aimed at */
		printf("%p\n", (void *)strdup(argv[2]));
		fflush(stdout);
		pause();
		return 0;
	}
	first += in_line;
	in_line |= outside;
	self_path = argv[0];
	init_pid = getppid();
	signal(SIGXFSZ, SIG_IGN);
	text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (text == MAP_FAILED)
		return BROKEN;
	for (int start = first; start < argc;) {
		int end = start;
		while (end < argc && (outside || strcmp(argv[end], "--")))
			end++;
		argv[end] = NULL;
		text[0] = '\0';
		answer = in_line ? call(argv + start, end - start) : call_apart(argv + start, end - start);
		for (char *at = text; *at; at++)
			if (*at == '\n' || *at == '\t')
				*at = ' ';
		printf("%s\t%s\t%s\n", argv[start], answers[answer], text);
		fflush(stdout);
		start = end + 1;
	}
	return answer;
}
