/* A byte of options, then text, old and new, with a 0 byte between them: what an edit makes is what replacing by hand
 * makes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/edit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct edited edited;
	struct cordon_error err;
	const char *text = (const char *)data + 1, *end = (const char *)data + size;
	const char *old = size > 1 ? memchr(text, 0, size - 1) : NULL;
	const char *new = old ? memchr(old + 1, 0, (size_t)(end - old - 1)) : NULL;
	if (!new)
		return 0;
	const struct edit edit = { old + 1, new + 1, (size_t)(new - old - 1), (size_t)(end - new - 1), data[0] & 1 };
	size_t length = (size_t)(old - text);
	if (edit_apply(text, length, &edit, "fuzz", &edited, &err) < 0)
		return 0;
	/* With line ends that are added, each replacement may be longer or shorter by those. */
	if (!edited.count || (!edit.all && edited.count != 1) || edited.data[edited.length] ||
	    edited.length > length + edited.count * 2 * edit.new_length)
		abort();
	if (!memchr(text, '\r', length) &&
	    edited.length != length + edited.count * edit.new_length - edited.count * edit.old_length)
		abort();
	free(edited.data);
	return 0;
}
