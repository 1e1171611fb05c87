/* Any bytes as what a client sends: what is taken for a frame lies within them, and the strings of a HELLO in its body.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "door/wire/wire-read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void look_at_hello(const struct wire_frame *frame)
{
	const char *end = frame->body + frame->head.length;
	struct wire_words words;
	if (!wire_hello(frame->body, frame->head.length, &words))
		return;
	const char *at = frame->body + sizeof(struct wire_hello);
	for (size_t i = 0; words.words[i]; at += strlen(words.words[i++]) + 1)
		must(words.words[i] == at);
	for (size_t i = 0; words.environment[i]; at += strlen(words.environment[i++]) + 1)
		must(words.environment[i] == at);
	must(words.cwd == at && at + strlen(at) + 1 == end);
	free(words.words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct wire_frame frame;
	while (wire_next(bytes, size, true, &frame) == WIRE_WHOLE) {
		must(frame.size <= size && frame.size > 0 && frame.body + frame.head.length == bytes + frame.size);
		if (frame.head.kind == WIRE_HELLO)
			look_at_hello(&frame);
		bytes += frame.size;
		size -= frame.size;
	}
	return 0;
}
