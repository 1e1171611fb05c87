/* Lines for a shell, run one after the other in a session: `shells NAME FILE`, where FILE has them separated by NULs.
 * For each, "EXIT SIGNAL OUT ERR" and the bytes of the two streams. */
#include <fcntl.h>
#include <unistd.h>

#include "embed.h"

static struct cordon_result *run(struct cordon *cordon, const char *name, const char *line)
{
	struct cordon_error err;
	struct cordon_request *request;
	struct cordon_result *result;
	const char *const argv[] = { name, "-c", line, NULL };
	int input = open(getenv("INPUT"), O_RDONLY | O_CLOEXEC);
	CHECK(input >= 0);
	MUST(cordon_request_new(&request, &err));
	MUST(cordon_request_set(request, "session", "shells", &err));
	MUST(cordon_request_command(request, argv, &err));
	cordon_request_stdin(request, input);
	MUST(cordon_result_run(cordon, request, &result, &err));
	cordon_request_unref(request);
	close(input);
	return result;
}

static void tell(struct cordon *cordon, const char *name, const char *line)
{
	struct cordon_result *result = run(cordon, name, line);
	printf("%d %d %zu %zu\n", result->exit_code, result->signal, result->stdout_length, result->stderr_length);
	fwrite(result->stdout_data, 1, result->stdout_length, stdout);
	fwrite(result->stderr_data, 1, result->stderr_length, stdout);
	cordon_result_unref(result);
}

int main(int argc, char **argv)
{
	static char text[1 << 20];
	struct cordon *cordon;
	struct cordon_error err;
	struct cordon_request *settings;
	char *json;
	CHECK(argc == 3);
	FILE *file = fopen(argv[2], "r");
	CHECK(file);
	size_t length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	MUST(cordon_open(NULL, &cordon, &err));
	MUST(cordon_request_new(&settings, &err));
	MUST(cordon_request_set(settings, "workspace", getenv("WORKSPACE"), &err));
	MUST(cordon_session_new(cordon, "shells", settings, &json, &err));
	free(json);
	cordon_request_unref(settings);
	for (size_t at = 0; at < length; at += strlen(text + at) + 1)
		tell(cordon, argv[1], text + at);
	MUST(cordon_session_end(cordon, "shells", false, &err));
	cordon_unref(cordon);
	return 0;
}
