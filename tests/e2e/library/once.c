/* A process that runs one command is not to pay for what the next would have of it: nothing is watched before the
 * second. */
#include <dirent.h>
#include <unistd.h>

#include "embed.h"

static bool watches(void)
{
	char target[256];
	bool found = false;
	DIR *own = opendir("/proc/self/fd");
	CHECK(own);
	for (struct dirent *entry; (entry = readdir(own));) {
		ssize_t length = readlinkat(dirfd(own), entry->d_name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		found |= strstr(target, "inotify") != NULL;
	}
	closedir(own);
	return found;
}

static void run(struct cordon *cordon)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = shell("echo $COLOUR");
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(!strcmp(result->stdout_data, "red\n"));
	cordon_result_unref(result);
	cordon_request_unref(request);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	char config[4200];
	snprintf(config, sizeof(config), "%s.toml", getenv("INPUT"));
	FILE *file = fopen(config, "we");
	CHECK(file && fputs("[env]\nset = { COLOUR = \"red\" }\n", file) >= 0 && fclose(file) == 0);
	MUST(cordon_open(&(struct cordon_options){ .config = config }, &cordon, &err));
	run(cordon);
	CHECK(!watches());
	run(cordon);
	run(cordon);
	CHECK(watches());
	cordon_unref(cordon);
	puts("fine");
	return 0;
}
