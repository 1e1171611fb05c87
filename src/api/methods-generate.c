/* Not part of the library: run by the build to make what is written about the table of methods.
 *
 *     methods-generate schema                        the value of rpc.discover, which is installed
 *     methods-generate text docs/PROTOCOL.md.in      docs/PROTOCOL.md: the lines @METHODS@, @NOTICES@ and @ERRORS@ are
 * replaced by the tables */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/methods.h"
#include "base/cleanup.h"
#include "base/json.h"

static int print_schema(void)
{
	struct json json;
	json_init(&json);
	json.pretty = true;
	methods_write(&json);
	auto_free char *text = json_take(&json);
	return text && puts(text) >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void print_param(const struct method_param *param)
{
	static const char *const types[] = {
		[METHOD_TEXT] = "text",          [METHOD_BYTES] = "bytes",         [METHOD_PATH] = "bytes, no NUL",
		[METHOD_COUNT] = "number",       [METHOD_FLAG] = "true or false",  [METHOD_LIST] = "list of texts",
		[METHOD_WORDS] = "list of bytes, no NUL", [METHOD_SETTINGS] = "object", [METHOD_CHOICE] = "choice",
	};
	printf("| `%s` | %s%s | ", param->name, types[param->type], param->needed ? ", needed" : "");
	if (param->type == METHOD_CHOICE)
		printf("one of: %s", param->values);
	else if (param->type == METHOD_FLAG || param->most == INT64_MAX)
		printf("-");
	else
		printf("%lld", (long long)param->most);
	printf(" | %s |\n", param->summary);
}

static void print_method(const struct method *method)
{
	printf("### %s\n\n%s.", method->name, method->summary);
	printf("%s%s%s%s\n\n", method->flags & METHOD_QUICK ? " Never waits." : "",
	       method->flags & METHOD_WAITS ? " May wait for a human's answer, or for an end." : "",
	       method->flags & METHOD_READS ? " Changes nothing." : "",
	       method->flags & METHOD_STREAMS ? " Notices follow." : "");
	if (method->flags & (METHOD_DESTROYS | METHOD_AGAIN))
		printf("%s%s\n\n", method->flags & METHOD_DESTROYS ? "What was there may be gone after it. " : "",
		       method->flags & METHOD_AGAIN ? "Twice is as once." : "");
	if (method->params[0].name)
		printf("| parameter | type | at most | |\n|---|---|---|---|\n");
	for (const struct method_param *param = method->params; param->name; param++)
		print_param(param);
	printf("%sResult: %s%s%s.\n\n", method->params[0].name ? "\n" : "", *method->result ? "`" : "an empty object",
	       method->result, *method->result ? "`" : "");
}

static void print_notices(void)
{
	printf("| method | after | | parameters |\n|---|---|---|---|\n");
	for (size_t i = 0; i < notice_count; i++)
		printf("| `%s` | %s | %s | `%s` |\n", notices[i].name, notices[i].after, notices[i].summary,
		       notices[i].shape);
	printf("\n| event of a process | | members |\n|---|---|---|\n");
	for (size_t i = 0; i < event_count; i++)
		printf("| `%s` | %s | `%s` |\n", events[i].name, events[i].summary, events[i].shape);
}

static void print_errors(void)
{
	printf("| code | class | retriable | |\n|---|---|---|---|\n");
#define CORDON_CLASS(number, id, name, retriable, meaning)                                                             \
	printf("| %d | `%s` | %s | %s |\n", number, name, (retriable) ? "yes" : "no", meaning);
#include "cordon-codes.def"
#undef CORDON_CLASS
}

static int print_text(const char *path)
{
	char line[1024];
	FILE *template = fopen(path, "re");
	if (!template) {
		perror(path);
		return EXIT_FAILURE;
	}
	while (fgets(line, sizeof(line), template)) {
		if (!strcmp(line, "@ERRORS@\n"))
			print_errors();
		else if (!strcmp(line, "@NOTICES@\n"))
			print_notices();
		else if (strcmp(line, "@METHODS@\n") != 0)
			fputs(line, stdout);
		for (size_t i = 0; !strcmp(line, "@METHODS@\n") && i < method_count; i++)
			print_method(&methods[i]);
	}
	int failed = ferror(template);
	fclose(template);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int status = EXIT_FAILURE;
	if (argc == 2 && !strcmp(argv[1], "schema"))
		status = print_schema();
	else if (argc == 3 && !strcmp(argv[1], "text"))
		status = print_text(argv[2]);
	else
		fprintf(stderr, "usage: methods-generate schema | text TEMPLATE\n");
	return fflush(stdout) ? EXIT_FAILURE : status;
}
