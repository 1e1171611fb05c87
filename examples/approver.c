/* Being asked: what goes beyond a session's baseline comes to a function of the program's own.
 *
 *     cc approver.c -o approver $(pkg-config --cflags --libs cordon) && ./approver
 *
 * A session may read no directory but its own and has no network. The first command asks to read the current directory,
 * which is approved once; the second asks for the network, which is denied. Prints the two answers and what came of
 * them:
 *
 *     asked about a directory: approved
 *     first: exit code 0
 *     asked about the network: denied
 *     second: capability_denied, denied by a human: the network is not needed for this
 */
#include <cordon.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct cordon_error *err;

/* The card's text is what a person should see. A program decides by its JSON, never by what the command is called. */
static enum cordon_answer answer(void *arg, const struct cordon_card *card, char reason[256])
{
	int *questions = arg;
	bool network = strstr(cordon_card_text(card, "json"), "\"network\":\"all\"") != NULL;
	++*questions;
	printf("asked about %s: %s\n", network ? "the network" : "a directory", network ? "denied" : "approved");
	if (!network)
		return CORDON_APPROVED_ONCE;
	snprintf(reason, 256, "the network is not needed for this");
	return CORDON_DENIED;
}

static void ask(struct cordon *cordon, const char *what, const char *id, const char *key, const char *value)
{
	const char *const argv[] = { "true", NULL };
	struct cordon_request *request = NULL;
	struct cordon_value *result = NULL;
	if (cordon_request_new(&request, err) < 0 || cordon_request_set(request, "session", id, err) < 0 ||
	    cordon_request_set(request, key, value, err) < 0 || cordon_request_command(request, argv, err) < 0 ||
	    cordon_run(cordon, request, &result, err) < 0)
		printf("%s: %s, %s\n", what, cordon_error_text(err, "class"), cordon_error_text(err, "reason"));
	else
		printf("%s: exit code %d\n", what, (int)cordon_value_int(result, "exit_code"));
	cordon_value_unref(result);
	cordon_request_unref(request);
}

int main(void)
{
	struct cordon *cordon;
	char here[4096], id[64];
	int questions = 0;
	if (!(err = cordon_error_new()) || !getcwd(here, sizeof(here)) || cordon_open(NULL, &cordon, err) < 0)
		return 1;
	snprintf(id, sizeof(id), "example-%d", getpid());
	cordon_approver(cordon, answer, &questions);
	ask(cordon, "first", id, "read", here);
	ask(cordon, "second", id, "net", "all");
	cordon_unref(cordon);
	cordon_error_free(err);
	return questions == 2 ? 0 : 1;
}
