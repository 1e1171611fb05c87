/* `cordon completion`: a script for the shell named. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "door/cli/cli.h"
#include "door/cli/completion.h"
#include "door/cli/report.h"

static const struct {
	const char *name;
	void (*print)(void);
} shells[] = { { "bash", completion_print_bash }, { "zsh", completion_print_zsh }, { "fish", completion_print_fish } };

static int print_for(const char *shell, struct cordon_error *err)
{
	for (size_t i = 0; shell && i < ARRAY_SIZE(shells); i++) {
		if (strcmp(shells[i].name, shell))
			continue;
		shells[i].print();
		return 0;
	}
	fail(err, CORDON_E_INVALID_REQUEST, 0, shell, shell ? "no completion for this shell" : "no shell was named");
	return fail_remedy(err, "name bash, zsh or fish");
}

int cli_completion(char **words)
{
	struct options options;
	struct cordon_error err;
	int status;
	if (!cli_options(COMMAND_COMPLETION, words, 1, &options, &status))
		return status;
	status = 0;
	if (print_for(options.operands[0], &err) < 0) {
		report_error(&err, false);
		status = STATUS_USAGE;
	}
	options_free(&options);
	return status;
}
