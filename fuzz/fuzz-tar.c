/* An archive. What is read of it lies in it or in the reader, and is written and read again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct tar_writer *writer, const struct tar_entry *entry)
{
	static struct tar_reader reader;
	struct tar_entry told;
	const char *why;
	reader.at = writer->data;
	reader.end = writer->data + writer->length;
	if (tar_next(&reader, &told, &why) != 1 || told.type != entry->type || strcmp(told.path, entry->path) != 0 ||
	    (entry->type == TAR_LINK && strcmp(told.target, entry->target) != 0) || told.length != entry->length ||
	    (told.length && memcmp(told.data, entry->data, told.length) != 0) || tar_next(&reader, &told, &why) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tar_reader reader;
	struct tar_entry entry;
	const char *why;
	reader.at = (const char *)data;
	reader.end = reader.at + size;
	while (tar_next(&reader, &entry, &why) > 0) {
		const char *end = (const char *)data + size;
		if (entry.data < (const char *)data || entry.data > end || entry.length > (size_t)(end - entry.data) ||
		    strlen(entry.path) >= PATH_MAX || strlen(entry.target) >= PATH_MAX)
			abort();
		struct tar_writer writer = { .most = size + ((size_t)1 << 16) };
		/* What was a directory by a slash at its end alone is one by its kind when it is written. */
		if (entry.type != TAR_OTHER && tar_add(&writer, &entry) && tar_finish(&writer))
			again(&writer, &entry);
		free(writer.data);
	}
	return 0;
}
