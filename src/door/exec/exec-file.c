/* The methods fs/…: each is a call of a file tool of the session, or a few. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utc.h"
#include "door/exec/exec-file.h"
#include "door/exec/exec-task.h"

#define PARENTS_MAX 64
#define WALK_MAX 50000
#define WALK_DEPTH 64
#define TASKS_MAX 64

/* One call of a file tool. `path` is a file: URI or a path. */
int exec_call_tool(struct exec_server *server, const char *tool, struct cordon_file *file,
                     struct cordon_file_result **ret_result, struct cordon_error *err)
{
	struct cordon_request *request;
	if (exec_request(server, &request, err) < 0)
		return -1;
	int result = cordon_file_do(server->cordon, request, tool, file, ret_result, err);
	cordon_request_unref(request);
	return result;
}

/* The same, its JSON parsed: to be released. NULL: refused. */
static json_t *call_told(struct exec_server *server, const char *tool, struct cordon_file *file,
                         struct cordon_error *err)
{
	struct cordon_file_result *result = NULL;
	if (exec_call_tool(server, tool, file, &result, err) < 0)
		return NULL;
	json_t *told = json_loads(result->json, 0, NULL);
	cordon_file_result_unref(result);
	if (!told)
		fail_oom(err);
	return told;
}

void exec_answer_nothing(const struct exec_asked *asked)
{
	struct json json;
	exec_result_begin(&json, asked->id);
	json_verbatim(&json, "{}");
	exec_end(asked->server, &json);
}

static bool has_type(json_t *told, const char *type)
{
	const char *is = json_string_value(json_object_get(told, "type"));
	return is && !strcmp(is, type);
}

/* ---- looking --------------------------------------------------------------------------------------------------- */

static void get_metadata(const struct exec_asked *asked)
{
	struct cordon_file file = { .path = asked->path };
	struct cordon_error err;
	struct json json;
	int64_t modified = 0;
	json_t *told = call_told(asked->server, "stat", &file, &err);
	if (!told)
		return exec_refuse_error(asked->server, asked->id, &err);
	const char *time = json_string_value(json_object_get(told, "modified"));
	if (!time || !utc_parse(time, &modified))
		modified = 0;
	exec_result_begin(&json, asked->id);
	json_object_begin(&json);
	json_key_bool(&json, "isDirectory", has_type(told, "directory"));
	json_key_bool(&json, "isFile", has_type(told, "file"));
	json_key_bool(&json, "isSymlink", has_type(told, "link"));
	json_key_uint(&json, "size", (uint64_t)json_integer_value(json_object_get(told, "size")));
	json_key_int(&json, "createdAtMs", modified);
	json_key_int(&json, "modifiedAtMs", modified);
	json_object_end(&json);
	json_decref(told);
	exec_end(asked->server, &json);
}

static void canonicalize(const struct exec_asked *asked)
{
	struct cordon_file file = { .path = asked->path };
	struct cordon_error err;
	struct json json;
	json_t *told = call_told(asked->server, "stat", &file, &err);
	if (!told)
		return exec_refuse_error(asked->server, asked->id, &err);
	const char *path = json_string_value(json_object_get(told, "path"));
	auto_free char *uri = path ? exec_uri_of_path(path) : NULL;
	json_decref(told);
	exec_result_begin(&json, asked->id);
	json_object_begin(&json);
	json_key_string(&json, "path", uri);
	json_object_end(&json);
	exec_end(asked->server, &json);
}

static void read_directory(const struct exec_asked *asked)
{
	struct cordon_file file = { .path = asked->path, .limit = WALK_MAX };
	struct cordon_error err;
	struct json json;
	size_t index;
	json_t *each, *told = call_told(asked->server, "list", &file, &err);
	if (!told)
		return exec_refuse_error(asked->server, asked->id, &err);
	exec_result_begin(&json, asked->id);
	json_object_begin(&json);
	json_key(&json, "entries");
	json_array_begin(&json);
	json_array_foreach(json_object_get(told, "entries"), index, each) {
		json_object_begin(&json);
		json_key_string(&json, "fileName", json_string_value(json_object_get(each, "name")));
		json_key_bool(&json, "isDirectory", has_type(each, "directory"));
		json_key_bool(&json, "isFile", has_type(each, "file"));
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	json_decref(told);
	exec_end(asked->server, &json);
}

/* Of a tree only files and directories are told; a link is neither. */
static void put_walked(struct json *json, const char *root, json_t *entry)
{
	const char *path = json_string_value(json_object_get(entry, "path"));
	struct arena arena = { 0 };
	const char *whole = path ? arena_printf(&arena, "%s/%s", strcmp(root, "/") ? root : "", path) : NULL;
	auto_free char *uri = whole ? exec_uri_of_path(whole) : NULL;
	arena_free(&arena);
	if (!uri || (!has_type(entry, "file") && !has_type(entry, "directory")))
		return;
	json_object_begin(json);
	json_key_string(json, "path", uri);
	json_key_string(json, "kind", has_type(entry, "file") ? "file" : "directory");
	json_object_end(json);
}

static uint64_t bound(json_t *options, const char *key, uint64_t most)
{
	json_int_t value = json_integer_value(json_object_get(options, key));
	return value > 0 && (uint64_t)value < most ? (uint64_t)value : most;
}

static void walk_path(const struct exec_asked *asked)
{
	json_t *options = json_object_get(asked->params, "options"), *each;
	struct cordon_file file = { .path = asked->path, .all = true, .limit = bound(options, "maxEntries", WALK_MAX),
		                    .depth = bound(options, "maxDepth", WALK_DEPTH) };
	struct cordon_error err;
	struct json json;
	size_t index;
	json_t *told = call_told(asked->server, "walk", &file, &err);
	if (!told)
		return exec_refuse_error(asked->server, asked->id, &err);
	const char *root = json_string_value(json_object_get(told, "path"));
	exec_result_begin(&json, asked->id);
	json_object_begin(&json);
	json_key(&json, "entries");
	json_array_begin(&json);
	json_array_foreach(json_object_get(told, "entries"), index, each)
		put_walked(&json, root ? root : "", each);
	json_array_end(&json);
	json_key(&json, "errors");
	json_verbatim(&json, "[]");
	json_key_bool(&json, "truncated", json_is_true(json_object_get(told, "more")));
	json_object_end(&json);
	json_decref(told);
	exec_end(asked->server, &json);
}

/* ---- content --------------------------------------------------------------------------------------------------- */

static void read_file(const struct exec_asked *asked)
{
	struct cordon_file file = { .path = asked->path };
	struct cordon_file_result *result = NULL;
	struct cordon_error err;
	struct json json;
	if (exec_call_tool(asked->server, "send", &file, &result, &err) < 0)
		return exec_refuse_error(asked->server, asked->id, &err);
	exec_result_begin(&json, asked->id);
	json_object_begin(&json);
	exec_key_base64(&json, "dataBase64", result->data ? result->data : "", result->length);
	json_object_end(&json);
	cordon_file_result_unref(result);
	exec_end(asked->server, &json);
}

static void write_file(const struct exec_asked *asked)
{
	json_t *given = json_object_get(asked->params, "dataBase64");
	size_t length = 0;
	auto_free char *data = exec_from_base64(json_string_value(given), json_string_length(given), &length);
	struct cordon_file file = { .path = asked->path, .data = data, .length = length };
	struct cordon_error err;
	if (!data)
		return exec_refuse(asked->server, asked->id, EXEC_BAD_PARAMS, "dataBase64 is no base64");
	json_t *told = call_told(asked->server, "write", &file, &err);
	if (!told)
		return exec_refuse_error(asked->server, asked->id, &err);
	json_decref(told);
	exec_answer_nothing(asked);
}

/* ---- changing -------------------------------------------------------------------------------------------------- */

static int make_directory(struct exec_server *server, const char *path, unsigned parents, struct cordon_error *err)
{
	struct cordon_file file = { .path = path };
	struct cordon_error ignored;
	json_t *told = call_told(server, "mkdir", &file, err);
	if (!told && err->class == CORDON_E_NOT_FOUND && parents) {
		const char *slash = strrchr(path, '/');
		char *parent = slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
		int made = parent ? make_directory(server, parent, parents - 1, err) : -1;
		free(parent);
		if (made < 0)
			return -1;
		told = call_told(server, "mkdir", &file, err);
	}
	/* It may be there. */
	if (!told && parents) {
		told = call_told(server, "stat", &file, &ignored);
		if (told && !has_type(told, "directory")) {
			json_decref(told);
			told = NULL;
		}
	}
	json_decref(told);
	return told ? 0 : -1;
}

static void create_directory(const struct exec_asked *asked)
{
	json_t *recursive = json_object_get(asked->params, "recursive");
	struct cordon_error err;
	if (make_directory(asked->server, asked->path, json_is_false(recursive) ? 0 : PARENTS_MAX, &err) < 0)
		return exec_refuse_error(asked->server, asked->id, &err);
	exec_answer_nothing(asked);
}

static void remove_path(const struct exec_asked *asked)
{
	bool recursive = !json_is_false(json_object_get(asked->params, "recursive"));
	bool force = !json_is_false(json_object_get(asked->params, "force"));
	struct cordon_file file = { .path = asked->path, .recursive = recursive };
	struct cordon_error err;
	json_t *told = call_told(asked->server, "remove", &file, &err);
	if (!told && !(force && err.class == CORDON_E_NOT_FOUND))
		return exec_refuse_error(asked->server, asked->id, &err);
	json_decref(told);
	exec_answer_nothing(asked);
}

static void copy_path(const struct exec_asked *asked)
{
	const char *uri = exec_text(asked->params, "destinationPath");
	auto_free char *to = uri ? exec_path_of_uri(uri) : NULL;
	struct cordon_file file = { .path = asked->path, .to = to, .replace = true,
		                    .recursive = json_is_true(json_object_get(asked->params, "recursive")) };
	struct cordon_error err;
	if (!to)
		return exec_refuse(asked->server, asked->id, EXEC_BAD_PARAMS, "destinationPath is no file: URI");
	json_t *told = call_told(asked->server, "copy", &file, &err);
	if (!told)
		return exec_refuse_error(asked->server, asked->id, &err);
	json_decref(told);
	exec_answer_nothing(asked);
}

/* ---- the call --------------------------------------------------------------------------------------------------- */

struct exec_file_task {
	struct exec_task task;
	struct exec_file_task *next;
	struct exec_asked asked;
	void (*call)(const struct exec_asked *asked);
};

static void act(struct exec_task *task)
{
	struct exec_file_task *file = (struct exec_file_task *)task;
	file->call(&file->asked);
}

static void free_task(struct exec_file_task *file)
{
	exec_task_join(&file->task);
	json_decref(file->asked.params);
	free(file->asked.path);
	free(file);
}

void exec_file_step_all(struct exec_server *server)
{
	for (struct exec_file_task **at = &server->tasks; *at;) {
		struct exec_file_task *file = *at;
		if (!exec_task_is_done(&file->task, 0)) {
			at = &file->next;
			continue;
		}
		*at = file->next;
		free_task(file);
	}
}

void exec_file_close_all(struct exec_server *server)
{
	for (struct exec_file_task *file; (file = server->tasks); free_task(file))
		server->tasks = file->next;
	exec_handle_close_all(server);
}

/* Takes `path`. */
static void begin(struct exec_server *server, const char *id, json_t *params, char *path,
                  void (*call)(const struct exec_asked *asked))
{
	struct cordon_error err;
	size_t count = 0;
	exec_file_step_all(server);
	for (const struct exec_file_task *each = server->tasks; each; each = each->next)
		count++;
	struct exec_file_task *file = count < TASKS_MAX ? calloc(1, sizeof(*file)) : NULL;
	if (!file) {
		free(path);
		return exec_refuse(server, id, EXEC_FAILED,
		                   "too many file operations are under way, or memory is short");
	}
	file->task.act = act;
	file->call = call;
	file->asked = (struct exec_asked){ .server = server, .params = json_incref(params), .path = path };
	snprintf(file->asked.id, sizeof(file->asked.id), "%s", id);
	if (exec_task_begin(&file->task, &err) < 0) {
		free_task(file);
		return exec_refuse_error(server, id, &err);
	}
	file->next = server->tasks;
	server->tasks = file;
	/* Most are done at once, and in their turn. */
	if (exec_task_is_done(&file->task, EXEC_PATIENCE_MS))
		exec_file_step_all(server);
}

bool exec_file_call(struct exec_server *server, const char *method, const char *id, json_t *params)
{
	static const struct {
		const char *method, *path;
		void (*call)(const struct exec_asked *asked);
	} rows[] = {
		{ "fs/getMetadata", "path", get_metadata },
		{ "fs/canonicalize", "path", canonicalize },
		{ "fs/readDirectory", "path", read_directory },
		{ "fs/walk", "path", walk_path },
		{ "fs/readFile", "path", read_file },
		{ "fs/writeFile", "path", write_file },
		{ "fs/open", "path", exec_handle_open },
		{ "fs/readBlock", NULL, exec_handle_read },
		{ "fs/close", NULL, exec_handle_close },
		{ "fs/createDirectory", "path", create_directory },
		{ "fs/remove", "path", remove_path },
		{ "fs/copy", "sourcePath", copy_path },
	};
	size_t row = 0;
	while (row < ARRAY_SIZE(rows) && strcmp(rows[row].method, method) != 0)
		row++;
	if (row == ARRAY_SIZE(rows))
		return false;
	const char *uri = rows[row].path ? exec_text(params, rows[row].path) : NULL;
	char *path = uri ? exec_path_of_uri(uri) : NULL;
	if (rows[row].path && !path)
		exec_refuse(server, id, EXEC_BAD_PARAMS, "the path is no file: URI");
	else
		begin(server, id, params, path, rows[row].call);
	return true;
}
