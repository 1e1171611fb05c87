/* Any bytes as what an agent asks of a hook: an answer is one line of JSON, and a command in it is the very command
 * that was asked about, quoted, behind words of cordon's own. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "door/agent/hook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* What a shell makes of the last word. */
static char *last_word(const char *text)
{
	static const char before[] = " -- -c -- '";
	const char *at = strstr(text, before);
	must(at != NULL);
	at += sizeof(before) - 1;
	char *word = calloc(1, strlen(at) + 1), *end = word;
	for (;;) {
		size_t length = strcspn(at, "'");
		memcpy(end, at, length);
		end += length;
		at += length + 1;
		if (!*at)
			return word;
		must(!strncmp(at, "\\''", 3));
		*end++ = '\'';
		at += 3;
	}
}

static void look_at(json_t *asked, json_t *answer)
{
	json_t *specific = json_object_get(answer, "hookSpecificOutput");
	json_t *input = json_object_get(specific, "updatedInput");
	if (!input)
		input = json_object_get(specific, "tool_input");
	if (!input)
		return;
	const char *command = json_string_value(json_object_get(json_object_get(asked, "tool_input"), "command"));
	const char *text = json_string_value(json_object_get(input, "command"));
	must(command && text && !strncmp(text, "'/opt/cordon' shell --agent=", strlen("'/opt/cordon' shell --agent=")));
	/* An id that holds the words themselves would be found first. */
	const char *id = json_string_value(json_object_get(asked, "session_id"));
	if (strstr(id, " -- -c -- "))
		return;
	char *word = last_word(text);
	must(!strcmp(word, command));
	free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hook_facts facts = { .agent = AGENT_MAX, .shell = "/opt/cordon", .project = "/src" };
	struct arena arena = { 0 };
	struct cordon_error err = { 0 };
	const char *text = NULL;
	if (hook_answer(&arena, (const char *)data, size, &facts, &text, &err) == 0) {
		json_t *answer = json_loads(text, 0, NULL),
		       *asked = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
		must(json_is_object(answer) && !strchr(text, '\n'));
		look_at(asked, answer);
		json_decref(answer);
		json_decref(asked);
	} else {
		must(err.class != CORDON_OK && *err.reason);
	}
	arena_free(&arena);
	return 0;
}
