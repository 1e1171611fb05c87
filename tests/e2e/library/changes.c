/* Whatever changes between two commands of one session in one process counts for the very next, however soon it comes;
 * what is not changed counts once more. PLACE becomes the home. Each row: what a shell does outside, what the command
 * does, what it then prints. */
#include "embed.h"

static const struct {
	const char *change, *command, *printed;
} rows[] = {
	{ ":", "echo first", "first\n" },
	{ "printf secret >$WORKSPACE/.env", "cat .env", "" },
	{ "rm $WORKSPACE/.env; printf open >$WORKSPACE/env", "cat env; ls -A", "openenv\n" },
	{ "mkdir -p $WORKSPACE/a/b; printf secret >$WORKSPACE/a/b/.env", "cat a/b/.env", "" },
	{ "mv $WORKSPACE/a $WORKSPACE/c", "cat c/b/.env; ls -A", "c\nenv\n" },
	{ "mv $WORKSPACE/c/b/.env $WORKSPACE/c/b/plain", "cat c/b/plain", "secret" },
	{ "rm -r $WORKSPACE/c", "ls -A", "env\n" },
	{ "mkdir $WORKSPACE/.git; printf x >$WORKSPACE/.git/config", "echo y >.git/config 2>/dev/null; cat .git/config",
	  "x" },
	{ "rm -r $WORKSPACE/.git", "ls -A", "env\n" },
	{ "printf '[user]\\nname = Anna\\n' >$HOME/.gitconfig", "grep -o Anna /etc/gitconfig", "Anna\n" },
	{ "printf '[user]\\nname = Bert\\n' >$HOME/.gitconfig", "grep -o Bert /etc/gitconfig", "Bert\n" },
	{ "printf '[user]\\nname = Cleo\\n' >$HOME/new; mv $HOME/new $HOME/.gitconfig", "grep -o Cleo /etc/gitconfig",
	  "Cleo\n" },
	{ "mkdir -p $HOME/.cargo/bin; printf '#!/bin/sh\\necho tool\\n' >$HOME/.cargo/bin/tool; chmod +x "
	  "$HOME/.cargo/bin/*",
	  "$OUTSIDE/.cargo/bin/tool", "tool\n" },
	{ "rm -r $HOME/.cargo", "test -e $OUTSIDE/.cargo/bin/tool || echo gone", "gone\n" },
	{ "mkdir -p $XDG_CONFIG_HOME/cordon; printf '[env]\\nset = { COLOUR = \"red\" }\\n' "
	  ">$XDG_CONFIG_HOME/cordon/config.toml",
	  "echo $COLOUR", "red\n" },
	{ "printf '[env]\\nset = { COLOUR = \"tan\" }\\n' >$XDG_CONFIG_HOME/cordon/config.toml", "echo $COLOUR",
	  "tan\n" },
	{ "rm $XDG_CONFIG_HOME/cordon/config.toml", "echo none $COLOUR", "none\n" },
	{ "printf '[limits]\\nprocesses = 17\\n' >$WORKSPACE/.cordon.toml", "cat .cordon.toml | wc -l", "2\n" },
	{ "rm $WORKSPACE/.cordon.toml", "ls -A", "env\n" },
};

static void run(struct cordon *cordon, const char *command, const char *printed)
{
	struct cordon_error err;
	struct cordon_result *result;
	char outside[4200];
	struct cordon_request *request = shell(command);
	snprintf(outside, sizeof(outside), "OUTSIDE=%s", getenv("HOME"));
	MUST(cordon_request_set(request, "session", "changes", &err));
	MUST(cordon_request_set(request, "env", outside, &err));
	MUST(cordon_result_run(cordon, request, &result, &err));
	if (strcmp(result->stdout_data, printed)) {
		fprintf(stderr, "%s: printed \"%s\", not \"%s\" (%s)\n", command, result->stdout_data, printed,
		        result->stderr_data);
		exit(1);
	}
	cordon_result_unref(result);
	cordon_request_unref(request);
}

static void refused(struct cordon *cordon, int class)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = shell("true");
	MUST(cordon_request_set(request, "session", "changes", &err));
	CHECK(cordon_result_run(cordon, request, &result, &err) < 0 && err.class == class);
	cordon_request_unref(request);
}

/* What a command leaves is judged after it, and no more of it than is new. */
static void judged(struct cordon *cordon)
{
	static const struct {
		const char *command;
		size_t denials;
	} commands[] = {
		{ "true", 0 },
		{ "mkdir -p x/.git/hooks; echo '#!/bin/sh' >x/.git/hooks/pre-commit; chmod +x x/.git/hooks/*", 1 },
		{ "true", 0 },
		{ "touch x/y", 0 },
		{ "mkdir -p z/.git/hooks; cp /bin/true z/.git/hooks/post-merge", 1 },
		{ "true", 0 },
	};
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		struct cordon_error err;
		struct cordon_result *result;
		struct cordon_request *request = shell(commands[i].command);
		MUST(cordon_request_set(request, "session", "changes", &err));
		MUST(cordon_result_run(cordon, request, &result, &err));
		if (!result->denial_count != !commands[i].denials) {
			fprintf(stderr, "%s: %zu denials\n", commands[i].command, result->denial_count);
			exit(1);
		}
		cordon_result_unref(result);
		cordon_request_unref(request);
	}
}

int main(void)
{
	struct cordon *cordon, *other;
	struct cordon_error err;
	/* Nobody's own. */
	CHECK(getenv("PLACE") && !setenv("HOME", getenv("PLACE"), 1));
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_open(NULL, &other, &err));
	for (int i = 0; i < 3; i++)
		run(cordon, "true", "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		CHECK(system(rows[i].change) == 0);
		for (int time = 0; time < 2; time++)
			run(cordon, rows[i].command, rows[i].printed);
	}
	for (int time = 0; time < 3; time++) {
		MUST(cordon_session_pause(other, "changes", "why", &err));
		refused(cordon, CORDON_E_SESSION_PAUSED);
		MUST(cordon_session_resume(other, "changes", &err));
		run(cordon, "echo again", "again\n");
	}
	judged(cordon);
	MUST(cordon_session_end(other, "changes", false, &err));
	refused(cordon, CORDON_E_SESSION_ENDED);
	MUST(cordon_session_remove(other, "changes", &err));
	run(cordon, "echo anew", "anew\n");
	cordon_unref(other);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}
