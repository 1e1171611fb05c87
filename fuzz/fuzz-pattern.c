/* A byte of options, a pattern, a 0 byte, then a line: what matches has the bytes that are required. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "files/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct pattern *pattern;
	struct cordon_error err;
	const uint8_t *zero = size > 1 ? memchr(data + 1, 0, size - 1) : NULL;
	size_t length, line_length = zero ? size - (size_t)(zero - data) - 1 : 0;
	if (zero && line_length < 8192 &&
	    pattern_compile(&arena, (const char *)data + 1, (size_t)(zero - data) - 1, data[0] & 3, &pattern, &err) ==
	            0) {
		const char *line = (const char *)zero + 1, *required = pattern_required(pattern, &length);
		bool found = pattern_match(pattern, line, line_length);
		if (found && required && !memmem(line, line_length, required, length))
			abort();
		/* Asked again, it says the same. */
		if (pattern_match(pattern, line, line_length) != found)
			abort();
	}
	arena_free(&arena);
	return 0;
}
