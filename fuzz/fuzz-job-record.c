/* Any bytes as a job's record: what is taken, written and read again, is the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "session/jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct job_record record, again;
	if (job_record_read(&arena, (const char *)data, size, &record) == 0) {
		char *first = job_record_write(&record);
		if (!first || job_record_read(&arena, first, strlen(first), &again) < 0)
			abort();
		char *second = job_record_write(&again);
		if (!second || strcmp(first, second))
			abort();
		free(first);
		free(second);
	}
	arena_free(&arena);
	return 0;
}
