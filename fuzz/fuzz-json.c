/* Any sequence of well-formed calls of the JSON writer with any bytes: another parser must read it.
 * Input: one byte chooses a call, and where it takes text, the next byte is its length. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEPTH = 64 };

struct walk {
	struct json json;
	char open[DEPTH];       /* '{' or '[' */
	int depth;
	unsigned keys;          /* keys are made different, so that the parser may refuse double ones */
};

static void open_one(struct walk *walk, char bracket)
{
	if (walk->depth == DEPTH)
		return json_nil(&walk->json);
	if (bracket == '{')
		json_object_begin(&walk->json);
	else
		json_array_begin(&walk->json);
	walk->open[walk->depth++] = bracket;
}

static void close_one(struct walk *walk)
{
	if (walk->open[--walk->depth] == '{')
		json_object_end(&walk->json);
	else
		json_array_end(&walk->json);
}

static void value(struct walk *walk, unsigned call, const uint8_t *text, size_t length)
{
	switch (call) {
	case 0: open_one(walk, '{'); break;
	case 1: open_one(walk, '['); break;
	case 2: json_int(&walk->json, (int64_t)length - 100); break;
	case 3: json_uint(&walk->json, length); break;
	case 4: json_bool(&walk->json, length & 1); break;
	case 5: json_text(&walk->json, NULL); break;
	default: json_bytes(&walk->json, (const char *)text, length); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct walk walk = { .depth = 0 };
	json_init(&walk.json);
	bool pretty = walk.json.pretty = size & 1;
	open_one(&walk, '[');
	for (size_t at = 0; at + 1 < size;) {
		unsigned call = data[at] % 10;
		size_t length = data[at + 1] < size - at - 2 ? data[at + 1] : size - at - 2;
		if (call == 9 && walk.depth > 1) {
			close_one(&walk);
			at++;
			continue;
		}
		if (walk.open[walk.depth - 1] == '{') {
			char key[16] = { (char)('a' + walk.keys % 26), data[at] ? (char)data[at] : 'x' };
			for (unsigned rest = walk.keys++, i = 2; rest; rest /= 26)
				key[i++] = (char)('a' + rest % 26);
			json_key(&walk.json, key);
		}
		value(&walk, call, data + at + 2, length);
		at += 2 + length;
	}
	while (walk.depth)
		close_one(&walk);
	char *text = json_take(&walk.json);
	json_t *root = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
	/* A row of the ledger is one line. */
	if (!root || (!pretty && strchr(text, '\n')))
		abort();
	json_decref(root);
	free(text);
	return 0;
}
