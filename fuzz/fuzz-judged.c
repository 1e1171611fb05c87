/* Any bytes as the record of a tree, its checksum made right first: either refused, or safe to use and the same when
 * written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "paths/planted/judged.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the checksum ends, and what it is over begins. */
#define SUM_OFFSET 8
#define SUMMED 40

static size_t use(const struct judged_record *record)
{
	size_t sum = 0;
	for (size_t i = 0; i < record->names.count; i++)
		sum += strlen(record->names.items[i].path) + judged_is_told(record, record->names.items[i].path);
	for (size_t i = 0; i < record->planted.count; i++) {
		const struct git_config_before *config = record->planted.seen[i].config;
		sum += strlen(record->planted.seen[i].path);
		for (size_t j = 0; config && j < config->count; j++)
			sum += config->facts[j].hash[0];
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct judged_record record, again;
	size_t written_size;
	unsigned char *bytes = malloc(size ? size : 1);
	if (!bytes)
		abort();
	memcpy(bytes, data, size);
	if (size > SUMMED)
		sha256(bytes + SUM_OFFSET, bytes + SUMMED, size - SUMMED);
	if (judged_parse(&arena, bytes, size, &record)) {
		size_t sum = use(&record);
		unsigned char *written = judged_write(&record, &written_size);
		if (!written || !judged_parse(&arena, written, written_size, &again) || use(&again) != sum)
			abort();
		free(written);
	}
	arena_free(&arena);
	free(bytes);
	return 0;
}
