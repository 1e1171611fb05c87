/* The tools for files: each is a call of the library's file tool of another name. */
#include "door/mcp/mcp-file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "door/mcp/mcp-run.h"

/* An argument of an MCP tool, and where struct cordon_file has it. */
struct argument {
	struct rpc_param param;
	enum { FIELD_TEXT, FIELD_FLAG, FIELD_COUNT, FIELD_DATA, FIELD_OLD, FIELD_GLOBS } field;
	size_t offset;
};

#define NEEDS(name, type, field, member)                                                                               \
	{                                                                                                              \
		{ (name), RPC_##type, true, NULL }, FIELD_##field, offsetof(struct cordon_file, member)                \
	}
#define TAKES(name, type, field, member)                                                                               \
	{                                                                                                              \
		{ (name), RPC_##type, false, NULL }, FIELD_##field, offsetof(struct cordon_file, member)               \
	}
#define ARGUMENTS_MAX 8

static const struct {
	const char *tool, *file_tool;
	struct argument arguments[ARGUMENTS_MAX];       /* ended by one without a name */
} rows[] = {
	{ "read_file",
	  "read",
	  { NEEDS("path", TEXT, TEXT, path), TAKES("offset", COUNT, COUNT, offset), TAKES("limit", COUNT, COUNT, limit),
	    TAKES("line_numbers", FLAG, FLAG, numbers) } },
	{ "write_file",
	  "write",
	  { NEEDS("path", TEXT, TEXT, path), NEEDS("content", TEXT, DATA, data),
	    TAKES("create_only", FLAG, FLAG, create), TAKES("if_version", TEXT, TEXT, version) } },
	{ "edit_file",
	  "edit",
	  { NEEDS("path", TEXT, TEXT, path), NEEDS("old_text", TEXT, OLD, old), NEEDS("new_text", TEXT, DATA, data),
	    TAKES("all", FLAG, FLAG, all), TAKES("if_version", TEXT, TEXT, version) } },
	{ "list_directory", "list", { TAKES("path", TEXT, TEXT, path), TAKES("limit", COUNT, COUNT, limit) } },
	{ "find_files",
	  "find",
	  { TAKES("path", TEXT, TEXT, path), TAKES("globs", TEXTS, GLOBS, globs), TAKES("type", TEXT, TEXT, type),
	    TAKES("limit", COUNT, COUNT, limit), TAKES("include_ignored", FLAG, FLAG, all) } },
	{ "grep",
	  "grep",
	  { NEEDS("pattern", TEXT, TEXT, pattern), TAKES("path", TEXT, TEXT, path), TAKES("globs", TEXTS, GLOBS, globs),
	    TAKES("ignore_case", FLAG, FLAG, ignore_case), TAKES("fixed", FLAG, FLAG, fixed),
	    TAKES("names_only", FLAG, FLAG, names_only), TAKES("limit", COUNT, COUNT, limit) } },
};

/* Everything is borrowed from the arguments, but for the list of globs, which is to be free()d. */
static int set_field(struct cordon_file *file, const struct argument *argument, json_t *value, const char ***globs,
                     struct cordon_error *err)
{
	void *at = (char *)file + argument->offset;
	size_t index;
	json_t *each;
	switch (argument->field) {
	case FIELD_TEXT:
		*(const char **)at = json_string_value(value);
		return strlen(json_string_value(value)) == json_string_length(value) ?
		               0 :
		               fail(err, CORDON_E_INVALID_REQUEST, 0, argument->param.name,
		                    "the parameter %s has a NUL in it", argument->param.name);
	case FIELD_FLAG:
		*(bool *)at = json_is_true(value);
		return 0;
	case FIELD_COUNT:
		*(uint64_t *)at = (uint64_t)json_integer_value(value);
		return 0;
	case FIELD_DATA:
		file->data = json_string_value(value);
		file->length = json_string_length(value);
		return 0;
	case FIELD_OLD:
		file->old = json_string_value(value);
		file->old_length = json_string_length(value);
		return 0;
	case FIELD_GLOBS:
		*globs = calloc(json_array_size(value) + 1, sizeof(**globs));
		if (!*globs)
			return fail_oom(err);
		json_array_foreach(value, index, each)
			(*globs)[index] = json_string_value(each);
		file->globs = *globs;
		return 0;
	}
	return 0;
}

static int read_arguments(struct mcp_call *call, const struct argument *arguments, struct cordon_file *file,
                          const char ***globs, struct cordon_error *err)
{
	struct rpc_param params[ARGUMENTS_MAX + 1] = { 0 };
	for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i].param.name; i++)
		params[i] = arguments[i].param;
	if (mcp_check(call, params, err) < 0)
		return -1;
	for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i].param.name; i++) {
		json_t *value = json_object_get(call->arguments, arguments[i].param.name);
		if (value && set_field(file, &arguments[i], value, globs, err) < 0)
			return -1;
	}
	return 0;
}

/* The library's result, to be free()d; its denials, where there are any, in words for a model. NULL when memory is
 * short. */
static char *reword(const char *result)
{
	if (!strstr(result, "\"denials\":"))
		return strdup(result);
	json_t *whole = json_loads(result, 0, NULL);
	char *text =
		whole && mcp_reword_denials(json_object_get(whole, "denials")) ? json_dumps(whole, JSON_COMPACT) : NULL;
	json_decref(whole);
	return text;
}

static int call_tool(struct mcp_call *call, const char *file_tool, const struct cordon_file *file, char **ret_json,
                     struct cordon_error *err)
{
	struct cordon_request *request = NULL;
	struct cordon_file_result *result = NULL;
	if (mcp_request(call, &request, err) < 0)
		return -1;
	int status = cordon_file_do(call->server->cordon, request, file_tool, file, &result, err);
	if (status == 0 && !(*ret_json = reword(result->json)))
		status = fail_oom(err);
	cordon_file_result_unref(result);
	cordon_request_unref(request);
	return status;
}

int mcp_file(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err)
{
	struct cordon_file file = { .content_in_json = true, .untold = true };
	auto_free const char **globs = NULL;
	size_t row = 0;
	(void)ret_failed;
	while (strcmp(rows[row].tool, call->tool->name) != 0)
		row++;
	if (read_arguments(call, rows[row].arguments, &file, &globs, err) < 0)
		return -1;
	if (!file.path)
		file.path = ".";
	return call_tool(call, rows[row].file_tool, &file, ret_json, err);
}
