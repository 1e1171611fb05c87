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
#include <unistd.h>

static struct cordon_error *err;

static int failed(void)
{
	fprintf(stderr, "%s: %s\n", cordon_error_text(err, "class"), cordon_error_text(err, "reason"));
	return 1;
}

/* The rows of one command, the oldest first. */
static int show(struct cordon *cordon, const char *id)
{
	struct cordon_value *found = NULL;
	char params[128], path[64];
	snprintf(params, sizeof(params), "{\"id\": \"%s\"}", id);
	if (cordon_call(cordon, "audit.query", params, &found, err) < 0)
		return -1;
	for (size_t i = 0; i < cordon_value_count(found, "rows"); i++) {
		snprintf(path, sizeof(path), "rows.%zu.row", i);
		printf("%s\n", cordon_value_text(found, path, NULL));
	}
	cordon_value_unref(found);
	return 0;
}

int main(void)
{
	struct cordon *cordon = NULL;
	struct cordon_request *request = NULL;
	struct cordon_value *result = NULL, *checked = NULL;
	const char *const argv[] = { "true", NULL };
	char here[4096];

	if (!(err = cordon_error_new()) || !getcwd(here, sizeof(here)))
		return 1;
	if (cordon_open(NULL, &cordon, err) < 0 || cordon_request_new(&request, err) < 0 ||
	    cordon_request_set(request, "workspace", here, err) < 0 ||
	    cordon_request_command(request, argv, err) < 0 || cordon_run(cordon, request, &result, err) < 0 ||
	    cordon_call(cordon, "audit.verify", NULL, &checked, err) < 0)
		return failed();

	char *report = cordon_value_json(checked, "report");
	if (cordon_value_int(checked, "intact"))
		printf("the ledger is intact\n");
	else
		printf("the ledger was changed: %s\n", report);
	free(report);
	if (show(cordon, cordon_value_text(result, "audit_id", NULL)) < 0)
		return failed();

	cordon_value_unref(checked);
	cordon_value_unref(result);
	cordon_request_unref(request);
	cordon_unref(cordon);
	cordon_error_free(err);
	return 0;
}
