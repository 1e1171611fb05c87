/* The ledger: everything that was decided and done, in a chain that shows whether a row was changed.
 *
 *     cc audit.c -o audit $(pkg-config --cflags --libs cordon) && ./audit
 *
 * Runs one command, checks the whole chain, and reads the two rows of that command back. Prints:
 *
 *     the ledger is intact
 *     intent
 *     result
 */
#include <cordon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const struct cordon_error *err)
{
	fprintf(stderr, "%s: %s (%s)\n", cordon_class_name(err->class), err->reason, err->subject);
	return 1;
}

/* A row is one line of JSON, not ended by NUL; here only its kind is looked at. Anything but 0 would stop the reading. */
static int show(void *arg, const char *row, size_t length)
{
	char begin[64];
	(void)arg;
	snprintf(begin, sizeof(begin), "%.*s", (int)length, row);
	const char *kind = strstr(begin, "\"row\":\"");
	if (kind)
		printf("%.*s\n", (int)strcspn(kind + 7, "\""), kind + 7);
	return 0;
}

int main(void)
{
	struct cordon *cordon = NULL;
	struct cordon_request *request = NULL;
	struct cordon_result *result = NULL;
	struct cordon_error err;
	const char *const argv[] = { "true", NULL };
	char here[4096], *json = NULL;
	bool intact = false;

	if (!getcwd(here, sizeof(here)))
		return 1;
	if (cordon_open(NULL, &cordon, &err) < 0 || cordon_request_new(&request, &err) < 0 ||
	    cordon_request_set(request, "workspace", here, &err) < 0 ||
	    cordon_request_command(request, argv, &err) < 0 || cordon_run(cordon, request, &result, &err) < 0)
		return failed(&err);

	if (cordon_audit_verify(cordon, &json, &intact, &err) < 0)
		return failed(&err);
	if (intact)
		printf("the ledger is intact\n");
	else
		printf("the ledger was changed: %s\n", json);

	const struct cordon_audit_filter filter = { .id = result->audit_id };
	if (cordon_audit_read(cordon, &filter, show, NULL, &err) < 0)
		return failed(&err);

	free(json);
	cordon_result_unref(result);
	cordon_request_unref(request);
	cordon_unref(cordon);
	return 0;
}
