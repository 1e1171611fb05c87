/* One call of a file tool: see call.h. A row per tool. */
#include "files/call.h"

#include <sodium/utils.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "files/archive.h"
#include "files/grep.h"
#include "files/list.h"
#include "files/read.h"
#include "files/write.h"

/* Writes members of the result's object; content goes to *ret_result. */
typedef int (*act_fn)(const struct files *files, const struct files_call *call, struct json *json,
                      struct files_result *ret_result, struct cordon_error *err);

struct files_tool {
	const char *name;
	unsigned how;                           /* its path is opened */
	bool has_usual;                         /* without a path it is the cwd */
	bool changes;
	act_fn act;
};

static void write_path(struct json *json, const struct files_call *call)
{
	json_key_bytes(json, "path", call->place.path, strlen(call->place.path));
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

static int write_base64(struct json *json, const struct files_content *content, struct cordon_error *err)
{
	size_t size = sodium_base64_ENCODED_LEN(content->length, sodium_base64_VARIANT_ORIGINAL);
	auto_free char *text = malloc(size);
	if (!text)
		return fail_oom(err);
	sodium_bin2base64(text, size, (const unsigned char *)content->data, content->length,
	                  sodium_base64_VARIANT_ORIGINAL);
	json_key_string(json, "encoding", "base64");
	json_key_string(json, "content", text);
	return 0;
}

static void take_content(struct files_result *result, const struct files_content *content)
{
	result->data = content->data;
	result->length = content->length;
}

static int act_read(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	const struct cordon_file *arguments = call->arguments;
	const struct files_read how = { arguments->offset, arguments->limit, arguments->bytes, arguments->numbers,
		                        files->screen };
	struct files_content content;
	if (files_read(&call->place, &how, &content, err) < 0)
		return -1;
	write_path(json, call);
	json_key_uint(json, "size", content.size);
	json_key_uint(json, "first", content.first);
	if (!arguments->bytes)
		json_key_uint(json, "lines", content.lines);
	if (*content.note) {
		json_key(json, "notes");
		json_array_begin(json);
		json_text(json, content.note);
		json_array_end(json);
	}
	json_key_uint(json, "next", content.next);
	json_key_bool(json, "cut", content.cut);
	json_key_bool(json, "utf8", content.is_utf8);
	json_key_string(json, "version", content.version);
	if (arguments->content_in_json) {
		json_key(json, "content");
		json_bytes(json, content.data, content.length);
	}
	take_content(ret_result, &content);
	return 0;
}

static int act_send(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	struct files_content content;
	if (files_send(&call->place, files->screen, &content, err) < 0)
		return -1;
	write_path(json, call);
	const char *name = strrchr(call->place.path, '/') + 1;
	json_key_bytes(json, "name", name, strlen(name));
	json_key_string(json, "type", content.type);
	json_key_uint(json, "size", content.size);
	json_key_string(json, "version", content.version);
	take_content(ret_result, &content);
	return call->arguments->content_in_json ? write_base64(json, &content, err) : 0;
}

static void write_written(struct json *json, const struct files_call *call, const struct files_written *written)
{
	write_path(json, call);
	json_key_bool(json, "created", written->created);
	json_key_uint(json, "size", written->size);
	json_key_string(json, "version", written->version);
}

static int act_write(const struct files *files, const struct files_call *call, struct json *json,
                     struct files_result *ret_result, struct cordon_error *err)
{
	const struct cordon_file *arguments = call->arguments;
	const struct files_write write = { .data = arguments->data ? arguments->data : "",
		                           .length = arguments->data ? arguments->length : 0,
		                           .create = arguments->create,
		                           .version = arguments->version,
		                           .screen = files->screen };
	struct files_written written;
	(void)ret_result;
	if (files_write(files, &call->place, &write, &written, err) < 0)
		return -1;
	write_written(json, call, &written);
	return 0;
}

static int act_edit(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	const struct cordon_file *arguments = call->arguments;
	const struct edit edit = { arguments->old ? arguments->old : "", arguments->data ? arguments->data : "",
		                   arguments->old ? arguments->old_length : 0, arguments->data ? arguments->length : 0,
		                   arguments->all };
	struct files_written written;
	(void)ret_result;
	if (files_edit(files, &call->place, &edit, arguments->version, &written, err) < 0)
		return -1;
	write_written(json, call, &written);
	json_key_uint(json, "replaced", written.count);
	json_key_uint(json, "line", written.line);
	return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static int act_stat(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	(void)files;
	(void)ret_result;
	(void)err;
	files_stat(json, &call->place);
	return 0;
}

static int act_list(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	(void)ret_result;
	return files_list(files, &call->place, (size_t)call->arguments->limit, json, err);
}

static size_t count_globs(const char *const *globs)
{
	size_t count = 0;
	while (globs && globs[count])
		count++;
	return count;
}

static int act_find(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	const struct cordon_file *arguments = call->arguments;
	const char *type = arguments->type;
	struct files_find find = { arguments->globs, count_globs(arguments->globs), 0, arguments->all,
		                   (size_t)arguments->limit };
	(void)ret_result;
	if (type) {
		find.kind = !strcmp(type, "file")      ? 'f' :
		            !strcmp(type, "directory") ? 'd' :
		            !strcmp(type, "link")      ? 'l' :
		                                         0;
		if (!find.kind) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, type, "type: must be file, directory or link");
			return fail_boundary(err, "request");
		}
	}
	return files_find(files, &call->place, &find, json, err);
}

static int act_grep(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	const struct cordon_file *arguments = call->arguments;
	const char *pattern = arguments->pattern ? arguments->pattern : "";
	const struct files_grep grep = {
		.pattern = pattern,
		.pattern_length = strlen(pattern),
		.options =
			(arguments->ignore_case ? PATTERN_FOLD_CASE : 0u) | (arguments->fixed ? PATTERN_LITERAL : 0u),
		.globs = arguments->globs,
		.glob_count = count_globs(arguments->globs),
		.all = arguments->all,
		.names_only = arguments->names_only,
		.limit = (size_t)arguments->limit,
	};
	(void)ret_result;
	return files_grep(files, &call->place, &grep, json, err);
}

static int act_remove(const struct files *files, const struct files_call *call, struct json *json,
                      struct files_result *ret_result, struct cordon_error *err)
{
	(void)ret_result;
	write_path(json, call);
	return files_remove(files, &call->place, call->arguments->recursive, err);
}

static int act_mkdir(const struct files *files, const struct files_call *call, struct json *json,
                     struct files_result *ret_result, struct cordon_error *err)
{
	(void)ret_result;
	write_path(json, call);
	return files_mkdir(files, &call->place, err);
}

static int act_rename(const struct files *files, const struct files_call *call, struct json *json,
                      struct files_result *ret_result, struct cordon_error *err)
{
	(void)ret_result;
	write_path(json, call);
	json_key_bytes(json, "to", call->to.path, strlen(call->to.path));
	return files_rename(files, &call->place, &call->to, call->arguments->replace, err);
}

static int act_walk(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	const struct cordon_file *arguments = call->arguments;
	const struct files_tree tree = { arguments->all, (size_t)arguments->depth, arguments->offset,
		                         (size_t)arguments->limit };
	(void)ret_result;
	return files_tree(files, &call->place, &tree, json, err);
}

static int act_copy(const struct files *files, const struct files_call *call, struct json *json,
                    struct files_result *ret_result, struct cordon_error *err)
{
	(void)ret_result;
	write_path(json, call);
	json_key_bytes(json, "to", call->to.path, strlen(call->to.path));
	return files_copy(files, &call->place, &call->to, call->arguments->recursive, call->arguments->replace, json,
	                  err);
}

static int act_export(const struct files *files, const struct files_call *call, struct json *json,
                      struct files_result *ret_result, struct cordon_error *err)
{
	struct files_content content;
	if (files_export(files, &call->place, call->arguments->all, json, &content, err) < 0)
		return -1;
	take_content(ret_result, &content);
	return call->arguments->content_in_json ? write_base64(json, &content, err) : 0;
}

static int act_import(const struct files *files, const struct files_call *call, struct json *json,
                      struct files_result *ret_result, struct cordon_error *err)
{
	const struct cordon_file *arguments = call->arguments;
	const struct files_import import = { arguments->data ? arguments->data : "",
		                             arguments->data ? arguments->length : 0, arguments->skip };
	(void)ret_result;
	return files_import(files, &call->place, &import, json, err);
}

/* Its caller acts, as long as there is something to tell. */
static int act_watch(const struct files *files, const struct files_call *call, struct json *json,
                     struct files_result *ret_result, struct cordon_error *err)
{
	(void)ret_result;
	if (call->watch)
		return call->watch(call->watch_arg, files, &call->place, json, err);
	fail(err, CORDON_E_INVALID_REQUEST, 0, "watch", "watching is more than one call");
	fail_boundary(err, "request");
	return fail_remedy(err, "use the methods fs.watch and fs.changes");
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const struct files_tool tools[] = {
	{ "copy", 0, false, true, act_copy },
	{ "edit", FILES_WRITE, false, true, act_edit },
	{ "export", 0, true, false, act_export },
	{ "find", 0, true, false, act_find },
	{ "grep", 0, true, false, act_grep },
	{ "import", 0, true, true, act_import },
	{ "list", 0, true, false, act_list },
	{ "mkdir", FILES_WRITE | FILES_NO_FOLLOW | FILES_MAY_MISS, false, true, act_mkdir },
	{ "read", 0, false, false, act_read },
	{ "remove", FILES_WRITE | FILES_NO_FOLLOW, false, true, act_remove },
	{ "rename", FILES_WRITE | FILES_NO_FOLLOW, false, true, act_rename },
	{ "send", 0, false, false, act_send },
	{ "stat", 0, true, false, act_stat },
	{ "walk", 0, true, false, act_walk },
	{ "watch", 0, true, false, act_watch },
	{ "write", FILES_WRITE | FILES_MAY_MISS, false, true, act_write },
};

const struct files_tool *files_tool_find(const char *name, const char **ret_nearest)
{
	const char *names[ARRAY_SIZE(tools)];
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if (!strcmp(tools[i].name, name))
			return &tools[i];
		names[i] = tools[i].name;
	}
	*ret_nearest = text_nearest(name, names, ARRAY_SIZE(names));
	return NULL;
}

bool files_tool_writes(const struct files_tool *tool)
{
	return tool->changes;
}

bool files_tool_may_miss(const struct files_tool *tool)
{
	return tool->how & FILES_MAY_MISS || files_tool_has_to(tool);
}

bool files_tool_has_to(const struct files_tool *tool)
{
	return tool->act == act_rename || tool->act == act_copy;
}

bool files_tool_reads_first(const struct files_tool *tool)
{
	return tool->act == act_copy;
}

bool files_tool_returns_names(const struct files_tool *tool)
{
	return tool->act != act_read && tool->act != act_send && tool->act != act_export && tool->act != act_grep;
}

int files_call_open(struct files *files, const struct files_tool *tool, const struct cordon_file *arguments,
                    const char *audit_id, struct files_call *ret_call, struct cordon_error *err)
{
	const char *path = arguments->path ? arguments->path : tool->has_usual ? "." : "";
	*ret_call = (struct files_call){
		.tool = tool, .arguments = arguments, .audit_id = audit_id,
		.place = { .fd = -1, .parent_fd = -1 }, .to = { .fd = -1, .parent_fd = -1 },
	};
	files->tool = tool->name;
	if (files_place_open(files, path, tool->how, &ret_call->place, err) < 0)
		return -1;
	if (!files_tool_has_to(tool))
		return 0;
	return files_place_open(files, arguments->to ? arguments->to : "",
	                        FILES_WRITE | FILES_NO_FOLLOW | FILES_MAY_MISS, &ret_call->to, err);
}

int files_call_act(const struct files *files, const struct files_call *call, struct files_result *ret_result,
                   struct cordon_error *err)
{
	struct files_result result = { .data = NULL };
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "tool", call->tool->name);
	json_key_string(&json, "audit_id", call->audit_id);
	int acted = call->tool->act(files, call, &json, &result, err);
	json_object_end(&json);
	result.json = json_take(&json);
	if (acted == 0 && !result.json)
		acted = fail_oom(err);
	if (acted < 0) {
		free(result.json);
		free(result.data);
		return -1;
	}
	*ret_result = result;
	return 0;
}

void files_call_close(struct files_call *call)
{
	files_place_close(&call->place);
	files_place_close(&call->to);
}
