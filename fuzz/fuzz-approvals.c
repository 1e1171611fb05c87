/* Questions and answers as they lie on disk: whatever is read back is what would be written. Both readers get the
 * input. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "approval/approvals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_question(struct arena *arena, const char *text, size_t length)
{
	struct approval_question first, second;
	if (approval_question_read(arena, text, length, &first) < 0)
		return;
	auto_free char *once = approval_question_write(&first);
	if (!once || approval_question_read(arena, once, strlen(once), &second) < 0)
		abort();
	auto_free char *twice = approval_question_write(&second);
	if (!twice || strcmp(once, twice))
		abort();
}

static void try_answer(struct arena *arena, const char *text, size_t length)
{
	struct approval_answer first, second;
	if (approval_answer_read(arena, text, length, &first) < 0)
		return;
	auto_free char *once = approval_answer_write(&first);
	if (!once || approval_answer_read(arena, once, strlen(once), &second) < 0 || first.outcome != second.outcome)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	try_question(&arena, (const char *)data, size);
	try_answer(&arena, (const char *)data, size);
	arena_free(&arena);
	return 0;
}
