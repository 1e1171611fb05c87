/* The settings in force, where each comes from, and what is wrong with a file.
 *
 *     cc config.c -o config $(pkg-config --cflags --libs cordon) && ./config
 *
 * Writes two files into the current directory, one good and one misspelt, and prints what the first sets, without the
 * directory in its name, and what the second has to hear:
 *
 *     {"key":"limits.memory","value":"512M","default":"2G","from":"good.toml:2:1"}
 *     config_invalid: there is no key "memroy" in [limits]; did you mean memory?
 */
#include <cordon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		exit(1);
}

/* The settings are a list of objects; one whose `from` names our file is not a default. */
static void show_ours(char *json, const char *directory)
{
	for (char *key = strstr(json, "{\"key\":"); key; key = strstr(key + 1, "{\"key\":")) {
		char *end = strchr(key, '}'), *from = strstr(key, directory);
		if (end && from && from < end)
			printf("%.*s%.*s\n", (int)(from - key), key, (int)(end + 1 - from - strlen(directory)),
			       from + strlen(directory));
	}
}

int main(void)
{
	struct cordon *cordon;
	struct cordon_error err;
	char here[4000], good[4096], misspelt[4096], *json;
	if (!getcwd(here, sizeof(here) - 1))
		return 1;
	strcat(here, "/");
	snprintf(good, sizeof(good), "%sgood.toml", here);
	snprintf(misspelt, sizeof(misspelt), "%smisspelt.toml", here);
	write_file(good, "[limits]\nmemory = \"512M\"\n");
	write_file(misspelt, "[limits]\nmemroy = \"512M\"\n");

	/* This file instead of the system's and the user's. */
	const struct cordon_options options = { .config = good };
	if (cordon_open(&options, &cordon, &err) < 0 || cordon_config_show(cordon, NULL, &json, &err) < 0) {
		fprintf(stderr, "%s: %s (%s)\n", cordon_class_name(err.class), err.reason, err.subject);
		return 1;
	}
	show_ours(json, here);
	free(json);
	if (cordon_config_check(cordon, misspelt, &err) < 0)
		printf("%s: %s; %s\n", cordon_class_name(err.class), err.reason, err.remediation);
	cordon_unref(cordon);
	return 0;
}
