/* A path, a 0 byte, then a .gitignore. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "files/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct ignore ignore;
	const uint8_t *zero = memchr(data, 0, size);
	if (zero && zero - data < 4096 &&
	    ignore_parse(&arena, (const char *)zero + 1, size - (size_t)(zero - data) - 1, &ignore) == 0) {
		if (ignore.count > IGNORE_PATTERNS_MAX)
			abort();
		(void)ignore_judge(&ignore, (const char *)data, false);
		(void)ignore_judge(&ignore, (const char *)data, true);
	}
	arena_free(&arena);
	return 0;
}
