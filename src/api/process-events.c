/* The events of a process (see process.h) as a handle takes them: what was told of it, and the output from the place
 * where the handle is, in parts that break no character. */
#include "api/process.h"

#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

/* Not the half of a character, unless there will be no more; then 0, where it is all there is. */
static size_t whole_characters(const struct process *process, int which, const char *part, uint64_t from, size_t length)
{
	bool more = process->state != PROCESS_ENDED || from + length < process->streams[which].end;
	return length - (more ? utf8_cut_tail(part, length) : 0);
}

static bool has_output(const struct cordon_process *handle, int which)
{
	char last[4];
	const struct process_stream *stream = &handle->process->streams[which];
	uint64_t from = handle->at[which] > stream->from ? handle->at[which] : stream->from, left = stream->end - from;
	return left >= sizeof(last) || (left && whole_characters(handle->process, which, last, from,
	                                                         process_copy_output(stream, from, last, left)));
}

static json_t *output_event(struct cordon_process *handle, int which)
{
	struct process_stream *stream = &handle->process->streams[which];
	uint64_t from = handle->at[which] > stream->from ? handle->at[which] : stream->from;
	size_t most = PROCESS_PART < stream->end - from ? PROCESS_PART : (size_t)(stream->end - from);
	auto_free char *part = malloc(most + 1);
	if (!part)
		return NULL;
	size_t length = process_copy_output(stream, from, part, most);
	length = whole_characters(handle->process, which, part, from, length);
	json_t *event = json_pack("{s:s, s:s, s:I, s:I, s:o}", "event", "output", "stream",
	                          which == CORDON_STDERR ? "stderr" : "stdout", "offset", (json_int_t)from, "missed",
	                          (json_int_t)(from - handle->at[which]), "data", value_bytes(part, length));
	if (event)
		handle->at[which] = from + length;
	return event;
}

static struct process_event *find_event(struct cordon_process *handle)
{
	struct process_event *event = handle->process->events;
	while (event && event->number <= handle->seen)
		event = event->next;
	return event;
}

static bool is_end(const struct process_event *event)
{
	return !strcmp(value_member(event->tree, "event"), "ended");
}

/* Under the lock. *ret_some: there was one. NULL then: memory is short. The end comes after all output. */
static json_t *take_event(struct cordon_process *handle, bool *ret_some)
{
	struct process *process = handle->process;
	struct process_event *event = find_event(handle);
	*ret_some = true;
	if (event && !is_end(event)) {
		handle->seen = event->number;
		return json_incref(event->tree);
	}
	if (handle->has_room) {
		handle->has_room = false;
		return json_pack("{s:s}", "event", "room");
	}
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++)
		if (has_output(handle, stream)) {
			json_t *output = output_event(handle, stream);
			if (process->streams[stream].held)
				process_poke(process);
			return output;
		}
	*ret_some = event != NULL;
	if (event)
		handle->seen = event->number;
	return event ? json_incref(event->tree) : NULL;
}

int cordon_process_next(struct cordon_process *process, struct cordon_value **ret_event, struct cordon_error *err)
{
	uint64_t count;
	bool some;
	if (call_check(err, process, ret_event) < 0 || process_check_owner(process, err) < 0)
		return -1;
	pthread_mutex_lock(&process->process->lock);
	json_t *event = take_event(process, &some);
	if (!some)
		(void)!read(process->fd, &count, sizeof(count));
	pthread_mutex_unlock(&process->process->lock);
	if (some)
		return value_take(event, ret_event, err);
	*ret_event = NULL;
	return 0;
}
