/* Files that are read in blocks: fs/open, fs/readBlock, fs/close. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "door/exec/exec-file.h"

#define HANDLES_MAX 64
#define BLOCK_MAX (8u << 20)

/* A file that is read in blocks: its content when it was opened. */
struct exec_handle {
	struct exec_handle *next;
	char name[EXEC_NAME_SIZE];
	struct cordon_file_result *result;
};

void exec_handle_open(const struct exec_asked *asked)
{
	const char *name = exec_text(asked->params, "handleId");
	struct cordon_file file = { .path = asked->path };
	struct cordon_error err;
	struct json json;
	size_t count = 0;
	pthread_mutex_lock(&asked->server->lock);
	for (const struct exec_handle *each = asked->server->handles; each; each = each->next)
		count++;
	pthread_mutex_unlock(&asked->server->lock);
	if (!name || strlen(name) >= EXEC_NAME_SIZE || count >= HANDLES_MAX)
		return exec_refuse(asked->server, asked->id, EXEC_BAD_PARAMS,
		                   "handleId is missing, or too long, or there are too many");
	struct exec_handle *handle = calloc(1, sizeof(*handle));
	if (!handle)
		return exec_refuse(asked->server, asked->id, EXEC_FAILED, "memory is short");
	if (exec_call_tool(asked->server, "send", &file, &handle->result, &err) < 0) {
		free(handle);
		return exec_refuse_error(asked->server, asked->id, &err);
	}
	snprintf(handle->name, sizeof(handle->name), "%s", name);
	pthread_mutex_lock(&asked->server->lock);
	handle->next = asked->server->handles;
	asked->server->handles = handle;
	pthread_mutex_unlock(&asked->server->lock);
	exec_result_begin(&json, asked->id);
	json_object_begin(&json);
	json_key_string(&json, "handleId", name);
	json_object_end(&json);
	exec_end(asked->server, &json);
}

static struct exec_handle **find_handle(const struct exec_asked *asked)
{
	const char *name = exec_text(asked->params, "handleId");
	struct exec_handle **at = &asked->server->handles;
	while (*at && (!name || strcmp((*at)->name, name) != 0))
		at = &(*at)->next;
	return at;
}

static void read_block(const struct exec_asked *asked)
{
	const struct exec_handle *handle = *find_handle(asked);
	json_int_t offset = json_integer_value(json_object_get(asked->params, "offset")),
		   size = json_integer_value(json_object_get(asked->params, "len"));
	struct json json;
	if (!handle || offset < 0 || size < 0)
		return exec_refuse(asked->server, asked->id, EXEC_INVALID, "there is no such handle, or place in it");
	size_t length = handle->result->length, from = (uint64_t)offset < length ? (size_t)offset : length;
	size_t taken = (uint64_t)size < BLOCK_MAX ? (size_t)size : BLOCK_MAX;
	taken = taken < length - from ? taken : length - from;
	exec_result_begin(&json, asked->id);
	json_object_begin(&json);
	exec_key_base64(&json, "chunk", taken ? (const char *)handle->result->data + from : "", taken);
	json_key_bool(&json, "eof", from + taken >= length);
	json_object_end(&json);
	exec_end(asked->server, &json);
}

void exec_handle_read(const struct exec_asked *asked)
{
	pthread_mutex_lock(&asked->server->lock);
	read_block(asked);
	pthread_mutex_unlock(&asked->server->lock);
}

static void drop_handle(struct exec_handle **at)
{
	struct exec_handle *gone = *at;
	*at = gone->next;
	cordon_file_result_unref(gone->result);
	free(gone);
}

void exec_handle_close(const struct exec_asked *asked)
{
	pthread_mutex_lock(&asked->server->lock);
	struct exec_handle **at = find_handle(asked);
	if (*at)
		drop_handle(at);
	pthread_mutex_unlock(&asked->server->lock);
	exec_answer_nothing(asked);
}

void exec_handle_close_all(struct exec_server *server)
{
	while (server->handles)
		drop_handle(&server->handles);
}
