/* Any bytes as the strings of a row, one up to each NUL: with secrets taken out it is JSON still, with as many strings,
 * and none of them has an own secret in it. And the same bytes as a text that is no JSON, which only must not be
 * overrun. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "secrets/screen.h"

#define OWN "correct7horse+battery"
#define GIVEN "pass\"word\\of\nmine7"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void look_at(json_t *value)
{
	size_t i;
	json_t *one;
	json_array_foreach(value, i, one) {
		must(json_is_string(one));
		must(!memmem(json_string_value(one), json_string_length(one), OWN, strlen(OWN)));
		must(!memmem(json_string_value(one), json_string_length(one), GIVEN, strlen(GIVEN)));
	}
}

static void screen_strings(struct secret_screen *screen, const char *bytes, size_t length)
{
	struct json json;
	size_t count = 0;
	json_init(&json);
	json_array_begin(&json);
	for (size_t at = 0, part; at < length; at += part + 1, count++) {
		part = strnlen(bytes + at, length - at);
		json_bytes(&json, bytes + at, part);
	}
	json_array_end(&json);
	must(!secret_screen_json(screen, &json));
	json_t *value = json_loadb(json.text, json.length, 0, NULL);
	must(value && json_array_size(value) == count);
	look_at(value);
	json_decref(value);
	json_free(&json);
}

static void screen_bytes(struct secret_screen *screen, const char *bytes, size_t length)
{
	struct json json;
	char *array = malloc(length + 1);
	json_init(&json);
	json.text = malloc(length + 1);
	must(array && json.text);
	memcpy(json.text, bytes, length);
	memcpy(array, bytes, length);
	json.text[length] = array[length] = '\0';
	json.length = length;
	json.capacity = length + 1;
	must(!secret_screen_json(screen, &json));
	must(!secret_screen_array(screen, array, length + 1));
	json_free(&json);
	free(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct secret_policy policy;
	struct secret_screen screen;
	struct secret_set *set = secret_set_new();
	must(set && secret_set_add(set, "MY_TOKEN", OWN, strlen(OWN)) == 1);
	must(secret_set_exempt(set, "GIVEN_TOKEN", GIVEN, strlen(GIVEN), true) == 1);
	secret_policy_set(&policy, SECRET_REDACT);
	secret_screen_init(&screen, set, &policy);
	screen.with_given = true;
	screen_strings(&screen, (const char *)data, size);
	screen_bytes(&screen, (const char *)data, size);
	secret_screen_free(&screen);
	secret_set_unref(set);
	return 0;
}
