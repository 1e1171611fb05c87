/* The methods process/…: commands of the session, their output in numbered pieces, their input, and who waits for
 * them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "door/cli/report.h"
#include "door/exec/exec-process.h"

#define INPUT_MAX (4u << 20)            /* that the command has not read yet */

struct exec_process *exec_process_find(struct exec_server *server, const char *name)
{
	struct exec_process *process = server->processes;
	while (process && (!name || strcmp(process->name, name) != 0))
		process = process->next;
	return process;
}

/* ---- output ---------------------------------------------------------------------------------------------------- */

static void notify_begin(const struct exec_process *process, const char *method, struct json *json)
{
	exec_notice_begin(json, method);
	json_object_begin(json);
	json_key_string(json, "processId", process->name);
}

static void notify_end(const struct exec_process *process, struct json *json)
{
	json_object_end(json);
	exec_end(process->server, json);
}

static void notify_chunk(const struct exec_process *process, const struct chunk *chunk)
{
	struct json json;
	notify_begin(process, "process/output", &json);
	exec_put_chunk(&json, process, chunk);
	notify_end(process, &json);
}

static void drop_oldest(struct exec_process *process)
{
	struct chunk *oldest = process->chunks;
	process->chunks = oldest->next;
	process->kept -= oldest->length;
	if (!process->chunks)
		process->last = &process->chunks;
	free(oldest);
}

void exec_process_output(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	struct exec_process *process = arg;
	struct chunk *chunk = length ? malloc(sizeof(*chunk) + length) : NULL;
	if (!chunk) {
		process->server->broken |= length != 0;
		return;
	}
	*chunk = (struct chunk){ .seq = process->next_seq++, .stream = stream, .length = length };
	memcpy(chunk->data, data, length);
	*process->last = chunk;
	process->last = &chunk->next;
	process->kept += length;
	notify_chunk(process, chunk);
	while (process->kept > EXEC_KEPT_BYTES && process->chunks->next)
		drop_oldest(process);
}

void exec_process_say(struct exec_process *process, const char *text)
{
	exec_process_output(process, CORDON_STDERR, text, strlen(text));
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

void exec_process_free(struct exec_process *process)
{
	exec_start_free(process);
	cordon_execution_unref(process->execution);
	cordon_request_unref(process->request);
	cleanup_close(&process->input_fd);
	cleanup_close(&process->source_fd);
	while (process->chunks)
		drop_oldest(process);
	for (struct waiter *waiter; (waiter = process->waiters); free(waiter))
		process->waiters = waiter->next;
	free(process->input);
	free(process);
}

static void conclude(struct exec_process *process, int exit_code)
{
	struct json json;
	process->exit_code = exit_code;
	notify_begin(process, "process/exited", &json);
	json_key_uint(&json, "seq", process->next_seq++);
	json_key_int(&json, "exitCode", exit_code);
	json_key_bool(&json, "sandboxDenied", process->denied);
	notify_end(process, &json);
	notify_begin(process, "process/closed", &json);
	json_key_uint(&json, "seq", process->next_seq++);
	notify_end(process, &json);
	process->exited = true;
	process->state = EXEC_ENDED;
	cordon_execution_unref(process->execution);
	process->execution = NULL;
	close_fd(&process->input_fd);
	close_fd(&process->source_fd);
	exec_answer_waiters(process);
}

/* To the model: why it was refused, and what it can ask its user for. */
void exec_process_refused(struct exec_process *process, const struct cordon_error *err)
{
	auto_free char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	if (out) {
		report_error_to(out, err, false);
		fclose(out);
		exec_process_say(process, text);
	}
	process->denied = err->class == CORDON_E_CAPABILITY_DENIED;
	conclude(process, EXEC_STATUS_NOT_RUN);
}

/* Names that are hidden from every command, say, explain no failure. The client may ask its user, and repeat the
 * command without its own sandbox: it is decided here all the same. */
static bool has_denial(const struct cordon_result *result)
{
	static const enum cordon_wall walls[] = { CORDON_WALL_FILESYSTEM, CORDON_WALL_NETWORK, CORDON_WALL_PROTECTED };
	for (size_t i = 0; i < result->denial_count; i++)
		for (size_t j = 0; j < ARRAY_SIZE(walls); j++)
			if (!strcmp(result->denials[i].wall, cordon_wall_name(walls[j])))
				return true;
	return false;
}

static void conclude_result(struct exec_process *process)
{
	struct cordon_result *result = NULL;
	struct cordon_error err;
	auto_free char *text = NULL;
	size_t length = 0;
	if (cordon_execution_result(process->execution, &result, &err) < 0 && !result)
		return exec_process_refused(process, &err);
	FILE *out = open_memstream(&text, &length);
	if (out) {
		report_remarks(out, result, &(struct report_place){ .is_for_agent = true });
		report_note(out, result);
		if (*process->left_out && report_result_status(result))
			fprintf(out, "cordon: these variables are refused and were left out: %s\n", process->left_out);
		fclose(out);
		exec_process_say(process, text);
	}
	int status = report_result_status(result);
	process->denied = status != 0 && has_denial(result);
	cordon_result_unref(result);
	conclude(process, status);
}

/* ---- input and signals ----------------------------------------------------------------------------------------- */

static void pump_input(struct exec_process *process)
{
	size_t done = 0;
	while (process->input_fd >= 0 && done < process->input_length) {
		ssize_t written = write(process->input_fd, process->input + done, process->input_length - done);
		if (written > 0)
			done += (size_t)written;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			close_fd(&process->input_fd);
	}
	process->input_length -= done;
	if (done)
		memmove(process->input, process->input + done, process->input_length);
}

static const char *take_input(struct exec_process *process, const char *data, size_t length)
{
	if (process->state == EXEC_ENDED || process->input_fd < 0)
		return "stdinClosed";
	char *larger = process->input_length + length > INPUT_MAX
	               ? NULL : realloc(process->input, process->input_length + length + 1);
	if (!larger)
		return "stdinClosed";
	process->input = larger;
	memcpy(larger + process->input_length, data, length);
	process->input_length += length;
	pump_input(process);
	return "accepted";
}

/* A write that is repeated, since its answer was lost, is not written twice. */
static bool was_written(const struct exec_process *process, const char *write)
{
	for (unsigned i = 0; i < EXEC_WRITES_KEPT; i++)
		if (*write && !strcmp(process->written[i], write))
			return true;
	return false;
}

static const char *take_write(struct exec_process *process, const char *write, const char *data, size_t length)
{
	if (was_written(process, write))
		return "accepted";
	const char *status = take_input(process, data, length);
	if (*write && !strcmp(status, "accepted"))
		snprintf(process->written[process->next_written++ % EXEC_WRITES_KEPT], EXEC_NAME_SIZE, "%s", write);
	return status;
}

static void call_write(struct exec_server *server, const char *id, json_t *params)
{
	struct exec_process *process = exec_process_find(server, exec_text(params, "processId"));
	json_t *chunk = json_object_get(params, "chunk"), *write = json_object_get(params, "writeId");
	const char *name = exec_text(params, "writeId");
	size_t length = 0;
	auto_free char *data = exec_from_base64(json_string_value(chunk), json_string_length(chunk), &length);
	struct json json;
	if (!data)
		return exec_refuse(server, id, EXEC_BAD_PARAMS, "chunk is no base64");
	if (write && !json_is_null(write) && (!name || strlen(name) >= EXEC_NAME_SIZE))
		return exec_refuse(server, id, EXEC_BAD_PARAMS, "writeId is no text, or too long");
	const char *status = process ? take_write(process, name ? name : "", data, length) : "unknownProcess";
	exec_result_begin(&json, id);
	json_object_begin(&json);
	json_key_string(&json, "status", status);
	json_object_end(&json);
	exec_end(server, &json);
}

static void call_signal(struct exec_server *server, const char *id, json_t *params)
{
	struct exec_process *process = exec_process_find(server, exec_text(params, "processId"));
	const char *name = exec_text(params, "signal");
	struct json json;
	if (!name || strcmp(name, "interrupt") != 0)
		return exec_refuse(server, id, EXEC_BAD_PARAMS, "the signal must be interrupt");
	if (!process)
		return exec_refuse(server, id, EXEC_INVALID, "there is no such process");
	if (process->state == EXEC_STARTING)
		exec_start_cancel(process);
	else if (process->execution)
		cordon_execution_signal(process->execution, SIGINT);
	exec_result_begin(&json, id);
	json_verbatim(&json, "{}");
	exec_end(server, &json);
}

static void call_terminate(struct exec_server *server, const char *id, json_t *params)
{
	struct exec_process *process = exec_process_find(server, exec_text(params, "processId"));
	struct json json;
	bool running = process && process->state != EXEC_ENDED;
	if (running && process->state == EXEC_STARTING)
		exec_start_cancel(process);
	else if (running)
		cordon_execution_signal(process->execution, SIGKILL);
	exec_result_begin(&json, id);
	json_object_begin(&json);
	json_key_bool(&json, "running", running);
	json_object_end(&json);
	exec_end(server, &json);
}

bool exec_process_call(struct exec_server *server, const char *method, const char *id, json_t *params)
{
	static const struct {
		const char *method;
		void (*call)(struct exec_server *server, const char *id, json_t *params);
	} rows[] = {
		{ "process/start", exec_start_call },    { "process/read", exec_read_call },
		{ "process/write", call_write },         { "process/signal", call_signal },
		{ "process/terminate", call_terminate },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].method, method)) {
			rows[i].call(server, id, params);
			return true;
		}
	return false;
}

/* ---- the loop -------------------------------------------------------------------------------------------------- */

size_t exec_process_poll(struct exec_server *server, struct pollfd *fds)
{
	size_t count = 0;
	for (const struct exec_process *process = server->processes; process; process = process->next) {
		if (process->state == EXEC_ENDED)
			continue;
		fds[count++] = (struct pollfd){ .fd = process->state == EXEC_STARTING ? exec_start_fd(process) :
		                                      cordon_execution_fd(process->execution), .events = POLLIN };
		if (process->input_length && process->input_fd >= 0)
			fds[count++] = (struct pollfd){ .fd = process->input_fd, .events = POLLOUT };
	}
	return count;
}

int exec_process_timeout(const struct exec_server *server)
{
	uint64_t now = exec_now_ms(), least = UINT64_MAX;
	for (const struct exec_process *process = server->processes; process; process = process->next)
		for (const struct waiter *waiter = process->waiters; waiter; waiter = waiter->next)
			if (waiter->until_ms < least)
				least = waiter->until_ms;
	return least == UINT64_MAX ? -1 : least <= now ? 0 : (int)(least - now);
}

void exec_process_step_all(struct exec_server *server)
{
	for (struct exec_process *process = server->processes; process; process = process->next) {
		bool finished = false;
		struct cordon_error err;
		pump_input(process);
		if (process->state == EXEC_STARTING)
			exec_start_step(process);
		if (process->execution && cordon_execution_step(process->execution, &finished, &err) < 0)
			exec_process_refused(process, &err);
		else if (process->execution && finished)
			conclude_result(process);
		exec_answer_waiters(process);
	}
}

void exec_process_end_all(struct exec_server *server)
{
	for (struct exec_process *process = server->processes; process; process = process->next)
		exec_start_cancel(process);
	for (struct exec_process *process; (process = server->processes); exec_process_free(process))
		server->processes = process->next;
}
