/* What is up of a session, for people. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "sandbox/live.h"

#define WORDS_MAX 32            /* of a command */
#define WORD_MAX 512

/* As it is known inside, and all that it has started. */
static void write_usage(struct json *json, const struct sandbox_place *place)
{
	struct running_usage usage = { 0 };
	if (place->running)
		place->running->ops->usage(place->running, &usage);
	json_key_int(json, "pid", usage.pid);
	json_key_uint(json, "processes", usage.processes);
	json_key_uint(json, "memory_kb", usage.memory_kb);
}

/* As much of it as tells which it is. */
static void write_command(struct json *json, const struct strings *argv)
{
	json_key_string(json, "program", argv->items[0]);
	json_key(json, "command");
	json_array_begin(json);
	for (size_t i = 0; i < argv->count && i < WORDS_MAX; i++) {
		char word[WORD_MAX];
		snprintf(word, sizeof(word), "%s", argv->items[i]);
		json_text(json, word);
	}
	json_array_end(json);
}

static void write_places(struct json *json, const struct live *live)
{
	json_key(json, "running");
	json_array_begin(json);
	for (const struct sandbox_place *place = live->places; place; place = place->next) {
		json_object_begin(json);
		json_key_string(json, "audit_id", place->audit_id);
		write_command(json, place->argv);
		json_key_bool(json, "job", place->is_job);
		json_key_uint(json, "running_ms", (uint64_t)(clock_ms() - place->since_ms));
		write_usage(json, place);
		json_object_end(json);
	}
	json_array_end(json);
}

void sandboxes_write_json(struct sandboxes *sandboxes, struct json *json, const char *session_id)
{
	struct live *live = live_hold(sandboxes, session_id);
	json_key(json, "sandbox");
	if (!live) {
		json_nil(json);
		return;
	}
	pthread_mutex_lock(&live->lock);
	json_object_begin(json);
	json_key_bool(json, "up", live->sandbox && live->sandbox->driver->keeping->is_up(live->sandbox));
	json_key_uint(json, "up_ms", live->sandbox ? (uint64_t)(clock_ms() - live->raised_ms) : 0);
	write_places(json, live);
	publish_write_json(json, live->publish);
	json_key(json, "ports");
	json_array_begin(json);
	live_write_ports(json, live);
	json_array_end(json);
	json_object_end(json);
	pthread_mutex_unlock(&live->lock);
	live_release(sandboxes, live);
}
