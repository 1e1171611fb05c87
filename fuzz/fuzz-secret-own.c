/* Any bytes as an environment, a variable up to each NUL; the first says how many of them are passed on by name. Each
 * own secret is a part of the value of one of them, or that as JSON writes it; and it is found where it stands. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "secrets/own.h"
#include "secrets/scan.h"

#define VARIABLES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool is_part(char *const *environment, const struct secret_own *own)
{
	for (; *environment; environment++) {
		const char *value = strchr(*environment, '=');
		if (value && memmem(value + 1, strlen(value + 1), own->bytes, own->length))
			return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *environment[VARIABLES_MAX + 1] = { NULL };
	const char *names[VARIABLES_MAX + 1] = { NULL };
	struct strings passed = { .items = names };
	if (!size)
		return 0;
	size_t count = 0, given = data[0];
	for (size_t at = 1; at < size && count < VARIABLES_MAX; at += strlen(environment[count++]) + 1) {
		size_t length = strnlen((const char *)data + at, size - at);
		environment[count] = calloc(1, length + 1);
		must(environment[count] != NULL);
		memcpy(environment[count], data + at, length);
		if (count < given)
			names[passed.count++] = strndup(environment[count], strcspn(environment[count], "="));
	}
	struct secret_set *set = secret_set_new();
	must(set && !own_exempt(set, &(struct strings){ .items = (const char **)environment,
	                                                .count = given % 2 ? count : 0 }));
	must(!own_add_environment(set, environment, &passed));
	struct secret_scanner scanner;
	secret_scanner_init(&scanner, set, (const unsigned char *)"a key of the fuzzer's, 32 bytes.");
	for (size_t i = 0; i < secret_set_count(set); i++) {
		const struct secret_own *own = secret_set_own(set, i);
		must(own->length >= SECRET_OWN_MIN && (own->is_escaped || is_part(environment, own)));
		must(!secret_scan(&scanner, own->bytes, own->length, true) && scanner.found_count > 0);
	}
	secret_scanner_free(&scanner);
	secret_set_unref(set);
	for (size_t i = 0; i < count; i++)
		free(environment[i]);
	for (size_t i = 0; i < passed.count; i++)
		free((char *)(uintptr_t)names[i]);
	return 0;
}
