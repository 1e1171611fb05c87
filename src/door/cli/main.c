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
#include "door/cli/shell.h"

#define HEAP_KEPT (1 << 20)
#define HEAP_STEP (1 << 18)

static int (*const functions[COMMAND_MAX])(char **words) = {
#define COMMAND(id, name, function, ...) [COMMAND_##id] = function,
#include "door/cli/commands.def"
#undef COMMAND
};

/* A descriptor 0, 1 or 2 that is closed would be taken by the next file opened, and written to by mistake. Writes to
 * standard output must fail as if it were closed; if standard error is closed, the caller asked for no messages. */
static bool ensure_descriptors(void)
{
	static const int modes[] = {
		[STDIN_FILENO] = O_RDONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY
	};
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
			return false;
	return true;
}

/* Without HOME, the user's entry in /etc/passwd says where it is; without an entry, commands that need HOME say so. */
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

/* `cordon --host SOCKET COMMAND …` is `cordon COMMAND --host SOCKET …`; where the command has actions, after the
 * action. */
static void put_host_behind(char **words)
{
	size_t count = !words[0] || !words[1] ? 0 : !strcmp(words[0], "--host") ? 2 : !strncmp(words[0], "--host=", 7);
	if (!count || !words[count])
		return;
	enum command_id id = command_find(words[count]);
	bool has_action = id != COMMAND_RUN && id != COMMAND_PROFILE && words[count + 1] && *words[count + 1] != '-';
	char *first[] = { words[count], words[count + has_action] };
	memmove(words + 1 + has_action, words, count * sizeof(*words));
	memcpy(words, first, (1 + has_action) * sizeof(*words));
}

static int dispatch(char **words)
{
	static const struct {
		const char *option;
		enum command_id id;
	} spelled_as_options[] = {
		{ "--help", COMMAND_HELP },
		{ "-h", COMMAND_HELP },
		{ "--version", COMMAND_VERSION },
		{ "-V", COMMAND_VERSION },
	};
	put_host_behind(words);
	if (!*words) {
		/* Help that was not asked for is a message, not output. */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		cli_print_help(COMMAND_MAX);
		return STATUS_USAGE;
	}
	if (shell_is_meant(words)) {
		int count = 0;
		while (words[count])
			count++;
		return shell_by_name(count, words);
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
	/* Most of what this program does ends with it: memory is not given back in between, and not asked for bit by
	 * bit. */
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	mallopt(M_TOP_PAD, HEAP_STEP);
	static char message[4096];
	setvbuf(stderr, message, _IOFBF, sizeof(message));
	bool is_shell = argc > 0 && !strcmp(basename(argv[0]), SHELL_NAME);
	int status = is_shell ? shell_by_name(argc - 1, argv + 1) : dispatch(argv + (argc > 0));
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return STATUS_SIGNAL + SIGPIPE;
	perror("cordon: writing to standard output");
	return STATUS_REFUSED;
}
