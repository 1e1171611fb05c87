/* Reading frames: see wire-read.h. */
#include "door/wire/wire-read.h"

#include <stdlib.h>
#include <string.h>

static const struct kind {
	uint8_t kind;
	bool from_client;
	uint32_t least, most;
} kinds[] = {
	{ WIRE_HELLO, true, sizeof(struct wire_hello), WIRE_HELLO_MAX },
	{ WIRE_STDIN, true, 0, WIRE_BODY_MAX },
	{ WIRE_SIGNAL, true, sizeof(uint32_t), sizeof(uint32_t) },
	{ WIRE_ANSWER, true, sizeof(struct wire_answer), sizeof(struct wire_answer) },
	{ WIRE_DECLINE, false, 0, 0 },
	{ WIRE_MORE, false, sizeof(uint32_t), sizeof(uint32_t) },
	{ WIRE_STDOUT, false, 0, WIRE_BODY_MAX },
	{ WIRE_STDERR, false, 0, WIRE_BODY_MAX },
	{ WIRE_ASK, false, sizeof(struct wire_ask) + 1, WIRE_ASK_MAX },
	{ WIRE_SETTLED, false, 0, 0 },
	{ WIRE_SAY_OUT, false, 0, WIRE_BODY_MAX },
	{ WIRE_SAY_ERR, false, 0, WIRE_BODY_MAX },
	{ WIRE_TAKEN, false, sizeof(uint64_t), sizeof(uint64_t) },
	{ WIRE_END, false, sizeof(uint32_t), sizeof(uint32_t) },
};

static bool is_allowed(const struct wire_head *head, bool from_client)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].kind == head->kind)
			return kinds[i].from_client == from_client && head->length >= kinds[i].least &&
			       head->length <= kinds[i].most;
	return false;
}

enum wire_state wire_next(const char *bytes, size_t length, bool from_client, struct wire_frame *ret_frame)
{
	struct wire_frame frame;
	if (length < sizeof(frame.head))
		return WIRE_PARTIAL;
	memcpy(&frame.head, bytes, sizeof(frame.head));
	if (!is_allowed(&frame.head, from_client))
		return WIRE_BROKEN;
	frame.size = sizeof(frame.head) + frame.head.length;
	if (length < frame.size)
		return WIRE_PARTIAL;
	frame.body = bytes + sizeof(frame.head);
	*ret_frame = frame;
	return WIRE_WHOLE;
}

/* The next string before `end`; NULL: there is none. */
static const char *take_string(const char **at, const char *end)
{
	const char *string = *at, *nul = memchr(string, '\0', (size_t)(end - string));
	if (!nul)
		return NULL;
	*at = nul + 1;
	return string;
}

static bool take_strings(const char **at, const char *end, const char **strings, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!(strings[i] = take_string(at, end)))
			return false;
	strings[count] = NULL;
	return true;
}

bool wire_hello(const char *body, size_t length, struct wire_words *ret_words)
{
	struct wire_hello hello;
	if (length < sizeof(hello))
		return false;
	memcpy(&hello, body, sizeof(hello));
	const char *at = body + sizeof(hello), *end = body + length;
	/* Each string takes a byte at least: what is claimed beyond that costs no memory. */
	size_t room = length - sizeof(hello);
	if (hello.version != WIRE_VERSION || hello.word_count > room ||
	    hello.environment_count > room - hello.word_count)
		return false;
	struct wire_words words = { .flags = hello.flags, .umask = hello.umask };
	words.words = calloc((size_t)hello.word_count + hello.environment_count + 2, sizeof(*words.words));
	if (!words.words)
		return false;
	words.environment = words.words + hello.word_count + 1;
	if (!take_strings(&at, end, words.words, hello.word_count) ||
	    !take_strings(&at, end, words.environment, hello.environment_count) ||
	    !(words.cwd = take_string(&at, end)) || at != end) {
		free(words.words);
		return false;
	}
	*ret_words = words;
	return true;
}

bool wire_number(const struct wire_frame *frame, uint32_t *ret_number)
{
	if (frame->head.length != sizeof(*ret_number))
		return false;
	memcpy(ret_number, frame->body, sizeof(*ret_number));
	return true;
}
