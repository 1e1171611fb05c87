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

static struct cordon_error *err;

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		exit(1);
}

/* One whose `from` names our file is not a default. */
static void show_ours(const struct cordon_value *shown, const char *directory)
{
	for (size_t i = 0; i < cordon_value_count(shown, "settings"); i++) {
		char path[64];
		snprintf(path, sizeof(path), "settings.%zu", i);
		char *json = cordon_value_json(shown, path), *from = json ? strstr(json, directory) : NULL;
		if (from)
			printf("%.*s%s\n", (int)(from - json), json, from + strlen(directory));
		free(json);
	}
}

int main(void)
{
	struct cordon *cordon;
	struct cordon_value *shown = NULL, *checked = NULL;
	struct cordon_options *options = cordon_options_new();
	char here[4000], good[4096], misspelt[4096], params[4200];
	if (!options || !(err = cordon_error_new()) || !getcwd(here, sizeof(here) - 1))
		return 1;
	strcat(here, "/");
	snprintf(good, sizeof(good), "%sgood.toml", here);
	snprintf(misspelt, sizeof(misspelt), "%smisspelt.toml", here);
	write_file(good, "[limits]\nmemory = \"512M\"\n");
	write_file(misspelt, "[limits]\nmemroy = \"512M\"\n");

	/* This file instead of the system's and the user's. */
	if (cordon_options_set(options, "config", good, err) < 0 || cordon_open(options, &cordon, err) < 0 ||
	    cordon_call(cordon, "config.show", NULL, &shown, err) < 0) {
		fprintf(stderr, "%s: %s\n", cordon_error_text(err, "class"), cordon_error_text(err, "reason"));
		return 1;
	}
	show_ours(shown, here);
	snprintf(params, sizeof(params), "{\"file\": \"%s\"}", misspelt);
	if (cordon_call(cordon, "config.check", params, &checked, err) < 0)
		printf("%s: %s; %s\n", cordon_error_text(err, "class"), cordon_error_text(err, "reason"),
		       cordon_error_text(err, "remediation"));
	cordon_value_unref(shown);
	cordon_unref(cordon);
	cordon_options_free(options);
	cordon_error_free(err);
	return 0;
}
