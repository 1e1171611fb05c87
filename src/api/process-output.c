/* What a process tells: its events, and its output by places. See process.h. All under the process's lock. */
#include <string.h>

#include "api/process.h"

#define STREAM_LEAST ((size_t)4 << 10)
#define STREAM_MOST ((size_t)16 << 20)          /* for handles that are behind; then what is oldest is lost to them */

void process_wake(struct process *process)
{
	uint64_t one = 1;
	for (struct cordon_process *handle = process->handles; handle; handle = handle->next)
		(void)!write(handle->fd, &one, sizeof(one));
}

static void add(struct process *process, struct process_event *event)
{
	event->number = ++process->event_count;
	*process->last_event = event;
	process->last_event = &event->next;
	process_wake(process);
}

void process_push(struct process *process, json_t *tree)
{
	struct process_event *event = tree ? calloc(1, sizeof(*event)) : NULL;
	if (!event) {
		json_decref(tree);
		return;
	}
	event->tree = tree;
	add(process, event);
}

void process_push_end(struct process *process, json_t *tree)
{
	struct process_event *event = process->last_words;
	process->last_words = NULL;
	if (tree) {
		json_decref(event->tree);
		event->tree = tree;
	}
	add(process, event);
}

uint64_t process_behind(const struct process *process, int stream)
{
	uint64_t most = 0;
	for (const struct cordon_process *handle = process->handles; handle; handle = handle->next)
		if (!handle->waits && handle->at[stream] < process->streams[stream].end &&
		    process->streams[stream].end - handle->at[stream] > most)
			most = process->streams[stream].end - handle->at[stream];
	return most;
}

static void copy(const struct process_stream *stream, uint64_t from, char *buffer, size_t length)
{
	size_t start = (size_t)from & (stream->size - 1),
	       first = length < stream->size - start ? length : stream->size - start;
	memcpy(buffer, stream->bytes + start, first);
	memcpy(buffer + first, stream->bytes, length - first);
}

/* False: memory is short, and it stays as it is. */
static bool grow(struct process_stream *stream, uint64_t wanted)
{
	size_t size = stream->size ? stream->size : STREAM_LEAST;
	while (size < wanted && size < STREAM_MOST)
		size *= 2;
	if (size == stream->size)
		return true;
	char *bytes = malloc(size);
	if (!bytes)
		return stream->size > 0;
	size_t kept = (size_t)(stream->end - stream->from), start = (size_t)stream->from & (size - 1);
	size_t first = kept < size - start ? kept : size - start;
	if (kept) {
		copy(stream, stream->from, bytes + start, first);
		copy(stream, stream->from + first, bytes, kept - first);
	}
	free(stream->bytes);
	stream->bytes = bytes;
	stream->size = size;
	return true;
}

void process_add_output(struct process *process, int which, const char *data, size_t length)
{
	struct process_stream *stream = &process->streams[which];
	uint64_t behind = process_behind(process, which), kept = stream->end - stream->from;
	uint64_t wanted = behind > PROCESS_KEPT ? behind : kept < PROCESS_KEPT ? kept : PROCESS_KEPT;
	if (!grow(stream, wanted + length)) {
		stream->from = stream->end += length;
		return;
	}
	if (length > stream->size) {
		stream->from = stream->end += length - stream->size;
		data += length - stream->size;
		length = stream->size;
	}
	size_t start = (size_t)stream->end & (stream->size - 1),
	       first = length < stream->size - start ? length : stream->size - start;
	memcpy(stream->bytes + start, data, first);
	memcpy(stream->bytes, data + first, length - first);
	stream->end += length;
	if (stream->end - stream->from > stream->size)
		stream->from = stream->end - stream->size;
}

size_t process_copy_output(const struct process_stream *stream, uint64_t from, char *buffer, size_t size)
{
	size_t length = stream->end - from < size ? (size_t)(stream->end - from) : size;
	if (length)
		copy(stream, from, buffer, length);
	return length;
}
