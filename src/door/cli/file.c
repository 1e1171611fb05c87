/* `cordon file`: a row per tool. Content goes to standard output as it is, and everything that is no content to
 * standard error or into the object of --json: the two cannot be taken for each other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/visible.h"
#include "door/cli/action.h"
#include "door/cli/json-read.h"
#include "door/cli/report.h"
#include "door/cli/request.h"

#define CONTENT_MAX (64u << 20)         /* that the library takes; one byte more is read, to be refused by it */
#define GLOBS_MAX 64

struct call {
	struct cordon *cordon;
	const struct options *options;
	struct cordon_file file;
	const char *globs[GLOBS_MAX + 1];
};

static int take_number(const struct options *options, const char *name, uint64_t *ret_number, struct cordon_error *err)
{
	const char *text = options_value(options, name);
	if (!text || text_parse_number(text, INT64_MAX, ret_number))
		return 0;
	return fail(err, CORDON_E_INVALID_REQUEST, 0, text, "--%s: must be a number", name);
}

static int fill(struct call *call, struct cordon_error *err)
{
	const struct options *options = call->options;
	struct cordon_file *file = &call->file;
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {
		{ "bytes", &file->bytes },           { "numbers", &file->numbers },
		{ "create", &file->create },         { "all", &file->all },
		{ "recursive", &file->recursive },   { "replace", &file->replace },
		{ "fixed", &file->fixed },           { "ignore-case", &file->ignore_case },
		{ "names-only", &file->names_only }, { "json", &file->content_in_json },
		{ "skip", &file->skip },
	};
	size_t globs = 0;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		*flags[i].flag = options_flag(options, flags[i].name);
	for (size_t i = 0; i < options->given_count; i++) {
		if (strcmp(options->given[i].option->name, "glob") != 0)
			continue;
		if (globs == GLOBS_MAX)
			return fail(err, CORDON_E_INVALID_REQUEST, 0, options->given[i].value,
			            "--glob: more than %d of them", GLOBS_MAX);
		call->globs[globs++] = options->given[i].value;
	}
	file->globs = globs ? call->globs : NULL;
	file->version = options_value(options, "if-version");
	file->type = options_value(options, "type");
	return take_number(options, "offset", &file->offset, err) < 0 ||
	                       take_number(options, "limit", &file->limit, err) < 0
	               ? -1
	               : take_number(options, "depth", &file->depth, err);
}

/* ---- what is printed -------------------------------------------------------------------------------------------- */

static void print_word(const char *text)
{
	visible_quote(stdout, text);
}

static void print_denials(const json_t *json)
{
	for JSON_EACH(denial, json_object_get(json, "denials")) {
		fputs("cordon: ", stderr);
		report_untrusted(stderr, json_read_text(denial, "what"));
		fprintf(stderr, ": %s; to see it: %s\n", json_read_text(denial, "note"),
			json_read_text(denial, "grant"));
	}
}

static void print_notes(const json_t *json)
{
	if (json_read_true(json, "more"))
		fprintf(stderr, "cordon: there are more than were asked for: --limit\n");
	if (json_read_number(json, "others_left_out"))
		fprintf(stderr, "cordon: %ld entries that are neither file, directory nor link were left out\n",
		        json_read_number(json, "others_left_out"));
	for JSON_EACH(note, json_object_get(json, "notes"))
		fprintf(stderr, "cordon: %s\n", json_read_string(note));
	print_denials(json);
}

static void print_entries(const json_t *json)
{
	for JSON_EACH(entry, json_object_get(json, "entries")) {
		const char *path = json_read_text(entry, "path");
		if (!*path)
			printf("%-9s %12ld  ", json_read_text(entry, "type"), json_read_number(entry, "size"));
		print_word(*path ? path : json_read_text(entry, "name"));
		putchar('\n');
	}
	print_notes(json);
}

static void print_tree(const json_t *json)
{
	for JSON_EACH(entry, json_object_get(json, "entries")) {
		printf("%-9s %12ld  ", json_read_text(entry, "type"), json_read_number(entry, "size"));
		print_word(json_read_text(entry, "path"));
		putchar('\n');
	}
	print_notes(json);
}

static void print_imported(const json_t *json)
{
	for JSON_EACH(entry, json_object_get(json, "left_out")) {
		fputs("cordon: left out: ", stderr);
		report_untrusted(stderr, json_read_text(entry, "path"));
		fprintf(stderr, " %s\n", json_read_text(entry, "why"));
	}
	printf("%ld files, %ld directories, %ld links\n", json_read_number(json, "files"),
	       json_read_number(json, "directories"), json_read_number(json, "links"));
}

static void print_matches(const json_t *json)
{
	for JSON_EACH(match, json_object_get(json, "matches")) {
		print_word(json_read_text(match, "path"));
		printf(":%ld:", json_read_number(match, "line"));
		report_untrusted(stdout, json_read_text(match, "text"));
		putchar('\n');
	}
	for JSON_EACH(file, json_object_get(json, "files")) {
		print_word(json_read_string(file));
		putchar('\n');
	}
	print_notes(json);
}

static void print_stat(const json_t *json)
{
	print_word(json_read_text(json, "path"));
	printf(": %s, %ld bytes, mode %s, modified %s\n", json_read_text(json, "type"), json_read_number(json, "size"),
	       json_read_text(json, "mode"), json_read_text(json, "modified"));
}

static int print_content(const struct cordon_file_result *result, struct cordon_error *err)
{
	auto_json json_t *json = json_read(result->json);
	if (fwrite(result->data, 1, result->length, stdout) != result->length || fflush(stdout) != 0)
		return fail(err, CORDON_E_INTERNAL, errno, "standard output", "the content could not be written");
	print_notes(json);
	long next = json_read_number(json, "next");
	if (json_read_true(json, "cut"))
		fprintf(stderr, "cordon: the line is longer than what is shown of it: --bytes\n");
	if (next)
		fprintf(stderr, "cordon: the file has more: --offset %ld\n", next);
	return 0;
}

static int call_tool(struct call *call, const char *tool, void (*print)(const json_t *json), struct cordon_error *err)
{
	struct cordon_request *request = NULL;
	struct cordon_file_result *result = NULL;
	if (request_file_settings(call->options, &request, err) < 0)
		return -1;
	int done = cordon_file_do(call->cordon, request, tool, &call->file, &result, err);
	cordon_request_unref(request);
	if (done < 0)
		return -1;
	if (options_flag(call->options, "json"))
		puts(result->json);
	else if (result->data)
		done = print_content(result, err);
	else if (print)
		json_read_say(result->json, false, print);
	cordon_file_result_unref(result);
	return done;
}

/* ---- the tools -------------------------------------------------------------------------------------------------- */

static int act(struct cordon *cordon, const struct options *options, const char *tool, const char *path,
               void (*print)(const json_t *json), struct cordon_error *err)
{
	struct call call = { .cordon = cordon, .options = options, .file = { .path = path } };
	return fill(&call, err) < 0 ? -1 : call_tool(&call, tool, print, err);
}

static int act_read(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "read", path, NULL, err);
}

static int act_send(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "send", path, NULL, err);
}

static int act_list(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "list", path, print_entries, err);
}

static int act_find(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "find", path, print_entries, err);
}

static int act_stat(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "stat", path, print_stat, err);
}

static int act_remove(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "remove", path, NULL, err);
}

static int act_mkdir(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "mkdir", path, NULL, err);
}

static int act_grep(struct cordon *cordon, const struct options *options, const char *pattern, struct cordon_error *err)
{
	struct call call = { .cordon = cordon,
		             .options = options,
		             .file = { .pattern = pattern, .path = options->operands[2] } };
	return fill(&call, err) < 0 ? -1 : call_tool(&call, "grep", print_matches, err);
}

static int act_walk(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "walk", path, print_tree, err);
}

static int act_export(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	return act(cordon, options, "export", path, NULL, err);
}

static int act_copy(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	struct call call = { .cordon = cordon,
		             .options = options,
		             .file = { .path = path, .to = options->operands[2] } };
	return fill(&call, err) < 0 ? -1 : call_tool(&call, "copy", NULL, err);
}

static int act_rename(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	struct call call = { .cordon = cordon,
		             .options = options,
		             .file = { .path = path, .to = options->operands[2] } };
	return fill(&call, err) < 0 ? -1 : call_tool(&call, "rename", NULL, err);
}

static int act_edit(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	struct call call = { .cordon = cordon, .options = options, .file = { .path = path } };
	const char *old = options_value(options, "old"), *new = options_value(options, "new");
	if (!old || !new) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, old ? "--new" : "--old", "the text is missing");
		return fail_remedy(err, "give both: --old TEXT --new TEXT");
	}
	call.file.old = old;
	call.file.old_length = strlen(old);
	call.file.data = new;
	call.file.length = strlen(new);
	return fill(&call, err) < 0 ? -1 : call_tool(&call, "edit", NULL, err);
}

/* All of standard input, as far as it can be content. */
static char *read_input(size_t *ret_length, struct cordon_error *err)
{
	size_t size = 65536, length = 0;
	char *data = malloc(size);
	for (ssize_t got = 1; data && got && length <= CONTENT_MAX;) {
		if (length == size) {
			char *larger = realloc(data, size *= 2);
			if (!larger)
				free(data);
			data = larger;
			continue;
		}
		got = read(STDIN_FILENO, data + length, size - length);
		if (got < 0 && errno != EINTR) {
			free(data);
			fail(err, CORDON_E_INVALID_REQUEST, errno, "standard input", "the content cannot be read");
			return NULL;
		}
		length += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	if (!data)
		fail_oom(err);
	*ret_length = length;
	return data;
}

static int act_write(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	struct call call = { .cordon = cordon, .options = options, .file = { .path = path } };
	const char *content = options_value(options, "content");
	auto_free char *input = NULL;
	call.file.data = content;
	call.file.length = content ? strlen(content) : 0;
	if (!content && !(call.file.data = input = read_input(&call.file.length, err)))
		return -1;
	return fill(&call, err) < 0 ? -1 : call_tool(&call, "write", NULL, err);
}

static int act_import(struct cordon *cordon, const struct options *options, const char *path, struct cordon_error *err)
{
	struct call call = { .cordon = cordon, .options = options, .file = { .path = path } };
	auto_free char *input = read_input(&call.file.length, err);
	call.file.data = input;
	return !input || fill(&call, err) < 0 ? -1 : call_tool(&call, "import", print_imported, err);
}

int cli_file(char **words)
{
	static const struct action actions[] = {
		{ "read", "the path", true, "offset limit bytes numbers", act_read },
		{ "write", "the path", true, "content create if-version", act_write },
		{ "edit", "the path", true, "old new all if-version", act_edit },
		{ "list", "", true, "limit", act_list },
		{ "find", "", true, "glob type all limit", act_find },
		{ "grep", "the pattern\n", true, "glob all limit fixed ignore-case names-only", act_grep },
		{ "stat", "", true, NULL, act_stat },
		{ "remove", "the path", true, "recursive", act_remove },
		{ "mkdir", "the path", true, NULL, act_mkdir },
		{ "rename", "the path\nthe new path", true, "replace", act_rename },
		{ "copy", "the path\nthe new path", true, "recursive replace", act_copy },
		{ "send", "the path", true, NULL, act_send },
		{ "walk", "", true, "depth all offset limit", act_walk },
		{ "export", "", true, "all", act_export },
		{ "import", "", true, "skip", act_import },
	};
	return action_run(COMMAND_FILE, actions, ARRAY_SIZE(actions), words);
}
