/* process/read: the output that is kept, and who waits for more. */
#include <stdio.h>
#include <stdlib.h>

#include "door/exec/exec-process.h"

#define WAIT_MAX_MS 600000

static const char *stream_name(const struct exec_process *process, enum cordon_stream stream)
{
	return process->tty ? "pty" : stream == CORDON_STDERR ? "stderr" : "stdout";
}

void exec_put_chunk(struct json *json, const struct exec_process *process, const struct chunk *chunk)
{
	json_key_uint(json, "seq", chunk->seq);
	json_key_string(json, "stream", stream_name(process, chunk->stream));
	exec_key_base64(json, "chunk", chunk->data, chunk->length);
}

static bool has_news(const struct exec_process *process, uint64_t after)
{
	return process->exited || process->next_seq - 1 > after;
}

static void answer_read(struct exec_process *process, const char *id, uint64_t after, uint64_t max)
{
	struct json json;
	uint64_t next = process->next_seq, size = 0;
	exec_result_begin(&json, id);
	json_object_begin(&json);
	json_key(&json, "chunks");
	json_array_begin(&json);
	for (const struct chunk *chunk = process->chunks; chunk; chunk = chunk->next) {
		if (chunk->seq <= after)
			continue;
		if (size && size + chunk->length > max) {
			next = chunk->seq;
			break;
		}
		size += chunk->length;
		json_object_begin(&json);
		exec_put_chunk(&json, process, chunk);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_key_uint(&json, "nextSeq", next);
	json_key_bool(&json, "exited", process->exited);
	json_key(&json, "exitCode");
	if (process->exited)
		json_int(&json, process->exit_code);
	else
		json_nil(&json);
	json_key_bool(&json, "closed", process->exited);
	json_key(&json, "failure");
	json_nil(&json);
	json_key_bool(&json, "sandboxDenied", process->denied);
	json_object_end(&json);
	exec_end(process->server, &json);
}

void exec_answer_waiters(struct exec_process *process)
{
	uint64_t now = exec_now_ms();
	for (struct waiter **at = &process->waiters; *at;) {
		struct waiter *waiter = *at;
		if (!has_news(process, waiter->after) && now < waiter->until_ms) {
			at = &waiter->next;
			continue;
		}
		*at = waiter->next;
		answer_read(process, waiter->id, waiter->after, waiter->max);
		free(waiter);
	}
}

static uint64_t count_of(json_t *params, const char *key, uint64_t otherwise)
{
	json_t *value = json_object_get(params, key);
	return json_is_integer(value) && json_integer_value(value) >= 0 ? (uint64_t)json_integer_value(value) :
	                                                                  otherwise;
}

void exec_read_call(struct exec_server *server, const char *id, json_t *params)
{
	struct exec_process *process = exec_process_find(server, exec_text(params, "processId"));
	uint64_t after = count_of(params, "afterSeq", 0), max = count_of(params, "maxBytes", UINT64_MAX),
		 wait = count_of(params, "waitMs", 0);
	if (!process)
		return exec_refuse(server, id, EXEC_INVALID, "there is no such process");
	struct waiter *waiter = wait && !has_news(process, after) ? malloc(sizeof(*waiter)) : NULL;
	if (!waiter)
		return answer_read(process, id, after, max);
	*waiter = (struct waiter){ .next = process->waiters, .after = after, .max = max,
	                           .until_ms = exec_now_ms() + (wait < WAIT_MAX_MS ? wait : WAIT_MAX_MS) };
	snprintf(waiter->id, sizeof(waiter->id), "%s", id);
	process->waiters = waiter;
}
