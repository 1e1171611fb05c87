/* Any bytes as a file of settings: a change can be read back, leaves every other value as it was, and can be taken away
 * again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "door/setup/jsonc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static const char *const nothing[] = { NULL }, *const path[] = { "ours", "inner", NULL },
			 *const list[] = { "list", NULL };

/* All values but those under our own keys; NULL: the text is invalid. */
static json_t *others(const char *text)
{
	json_t *whole = jsonc_get(text, nothing);
	json_object_del(whole, "ours");
	json_object_del(whole, "list");
	return whole;
}

static void change(struct arena *arena, const char *text)
{
	const char *set, *appended, *gone;
	struct cordon_error err;
	json_t *value = json_pack("{s:s, s:[b]}", "a", "b", "c", 1), *before = others(text), *now;
	if (jsonc_set(arena, text, path, value, &set, &err) == 0) {
		now = jsonc_get(set, path);
		must(json_equal(now, value));
		json_decref(now);
		if (before)
			must(json_equal(before, now = others(set)));
		if (before)
			json_decref(now);
		must(jsonc_remove(arena, set, path, NULL, &gone, &err) == 0 && !jsonc_get(gone, path));
	}
	if (jsonc_append(arena, text, list, value, &appended, &err) == 0) {
		must(jsonc_remove(arena, appended, list, value, &gone, &err) == 0);
		if (before)
			must(json_equal(before, now = others(gone)));
		if (before)
			json_decref(now);
	}
	json_decref(value);
	json_decref(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	change(&arena, text);
	free(text);
	arena_free(&arena);
	return 0;
}
