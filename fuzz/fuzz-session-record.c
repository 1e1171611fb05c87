/* Any bytes as a session's record: what is taken, written and read again, is the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "session/registry-json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct session_record record, again;
	const char *why = NULL;
	if (record_read(&arena, (const char *)data, size, &record, &why) == 0) {
		char *first = record_write(&record);
		if (!first || record_read(&arena, first, strlen(first), &again, &why) < 0)
			abort();
		char *second = record_write(&again);
		if (!second || strcmp(first, second))
			abort();
		free(first);
		free(second);
	} else if (!why) {
		abort();
	}
	arena_free(&arena);
	return 0;
}
