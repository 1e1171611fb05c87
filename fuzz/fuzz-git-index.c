/* An index of git: what is found has the path that was asked for, whatever the bytes are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "paths/index/git-index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t hash_size = 20; hash_size <= 32; hash_size += 12) {
		struct git_index_entry entries[] = { { .path = ".env" },
			                             { .path = "a/.env.test" },
			                             { .path = "dir/x.pem" } };
		git_index_find(data, size, hash_size, entries, 3);
		for (size_t i = 0; i < 3; i++)
			if (entries[i].found && (size < 12 || memcmp(data, "DIRC", 4) != 0))
				abort();
	}
	return 0;
}
