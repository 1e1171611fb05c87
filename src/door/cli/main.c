/* The program `cordon`: a table of commands. */
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/passwd.h"
#include "door/cli/cli.h"
#include "door/cli/report.h"

#define HEAP_KEPT (1 << 20)
#define HEAP_STEP (1 << 18)

static int (*const functions[COMMAND_MAX])(char **words) = {
#define COMMAND(id, name, function, ...) [COMMAND_##id] = function,
#include "door/cli/commands.def"
#undef COMMAND
};

/* A descriptor 0, 1 or 2 that is closed would be taken by the next file opened, and written to as if it were ours. What is
 * written to standard output is to fail as if nothing were there; who closes standard error wants no messages. */
static bool ensure_descriptors(void)
{
	static const int modes[] = { [STDIN_FILENO] = O_RDONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY };
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
			return false;
	return true;
}

/* Without HOME, the user's entry in /etc/passwd says where it is; a user who has none is told to set it where it matters. */
static void ensure_home(void)
{
	char home[PATH_MAX];
	const char *given = getenv("HOME");
	if ((!given || !*given) && passwd_home(PASSWD_FILE, geteuid(), home, sizeof(home)))
		setenv("HOME", home, 1);
}

static int refuse_word(const char *word)
{
	struct cordon_error err;
	const char *nearest = command_nearest(word);
	fail(&err, CORDON_E_INVALID_REQUEST, 0, word, *word == '-' ? "unknown option" : "unknown command");
	if (nearest)
		fail_remedy(&err, "did you mean cordon %s? To run a program: cordon run -- PROGRAM", nearest);
	else
		fail_remedy(&err, "see cordon help. To run a program: cordon run -- PROGRAM");
	report_error(&err, false);
	return STATUS_USAGE;
}

static int dispatch(char **words)
{
	static const struct {
		const char *option;
		enum command_id id;
	} spelled_as_options[] = {
		{ "--help", COMMAND_HELP }, { "-h", COMMAND_HELP }, { "--version", COMMAND_VERSION }, { "-V", COMMAND_VERSION },
	};
	if (!*words) {
		/* Help that nobody asked for is a message, not output. */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		cli_print_help(COMMAND_MAX);
		return STATUS_USAGE;
	}
	enum command_id id = command_find(*words);
	for (size_t i = 0; i < ARRAY_SIZE(spelled_as_options); i++)
		if (!strcmp(*words, spelled_as_options[i].option))
			id = spelled_as_options[i].id;
	return id == COMMAND_MAX ? refuse_word(*words) : functions[id](words + 1);
}

int main(int argc, char **argv)
{
	if (!ensure_descriptors())
		return STATUS_REFUSED;
	ensure_home();
	/* Most of what this program does ends with it: memory is not given back in between, and not asked for bit by bit. */
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	mallopt(M_TOP_PAD, HEAP_STEP);
	static char message[4096];
	setvbuf(stderr, message, _IOFBF, sizeof(message));
	int status = dispatch(argv + (argc > 0));
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return STATUS_SIGNAL + SIGPIPE;
	perror("cordon: writing to standard output");
	return STATUS_REFUSED;
}
