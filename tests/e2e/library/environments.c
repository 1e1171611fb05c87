/* Requests of several people in one process: each is run with the environment that a file of the command line has, one
 * after the other and then all once more, and the first time is what is printed. */
#include "embed.h"

static struct cordon_request *ask(const char *block, size_t length)
{
	struct cordon_error err;
	struct cordon_request *request;
	const char *environment[64] = { NULL }, *home = NULL;
	char declared[4096];
	size_t count = 0;
	for (size_t at = 0; at < length && count < 63; at += strlen(block + at) + 1) {
		environment[count++] = block + at;
		if (!strncmp(block + at, "HOME=", 5))
			home = block + at + 5;
	}
	CHECK(home);
	snprintf(declared, sizeof(declared), "%s/declared", home);
	const char *const argv[] = { "/bin/sh", "-c", getenv("SEEN"), "sh", declared, NULL };
	MUST(cordon_request_new(&request, &err));
	MUST(cordon_request_set(request, "workspace", getenv("WORKSPACE"), &err));
	MUST(cordon_request_set(request, "pass-env", "COLOUR", &err));
	if (strcmp(home, "/nonexistent"))
		MUST(cordon_request_set(request, "manifest", getenv("MANIFEST"), &err));
	MUST(cordon_request_command(request, argv, &err));
	MUST(cordon_request_environment(request, environment, &err));
	return request;
}

static void check_bounds(void)
{
	struct cordon_error err;
	struct cordon_request *request;
	static const char *many[(6 << 20) / 8 + 2];
	static char huge[(6 << 20) + 1];
	const char *const one[] = { huge, NULL }, *const none[] = { NULL };
	memset(huge, 'x', sizeof(huge) - 1);
	for (size_t i = 0; i + 1 < sizeof(many) / sizeof(*many); i++)
		many[i] = "";
	MUST(cordon_request_new(&request, &err));
	CHECK(cordon_request_environment(request, one, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	CHECK(cordon_request_environment(request, many, &err) < 0 && err.class == CORDON_E_INVALID_REQUEST);
	MUST(cordon_request_environment(request, none, &err));
	cordon_request_unref(request);
}

int main(int argc, char **argv)
{
	struct cordon *cordon;
	struct cordon_error err;
	check_bounds();
	MUST(cordon_open(NULL, &cordon, &err));
	for (int i = 0; i < 2 * (argc - 1); i++) {
		char block[16384];
		struct cordon_result *result;
		FILE *file = fopen(argv[1 + i % (argc - 1)], "r");
		CHECK(file);
		size_t length = fread(block, 1, sizeof(block) - 1, file);
		block[length] = '\0';
		fclose(file);
		struct cordon_request *request = ask(block, length);
		memset(block, 'x', length);
		MUST(cordon_result_run(cordon, request, &result, &err));
		if (i < argc - 1)
			fwrite(result->stdout_data, 1, result->stdout_length, stdout);
		cordon_result_unref(result);
		cordon_request_unref(request);
	}
	cordon_unref(cordon);
	return 0;
}
