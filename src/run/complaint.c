/* Complaints: see complaint.h. */
#include "run/complaint.h"

#include <string.h>

/* As libc, shells, Python, Node, Java, Go and Rust say it. */
static const struct {
	const char *words;
	enum complaint complaint;
} complaints[] = {
	{ "oo many open files", COMPLAINT_FILES },
	{ "EMFILE", COMPLAINT_FILES },
	{ "annot fork", COMPLAINT_PROCESSES },
	{ "fork: retry", COMPLAINT_PROCESSES },
	{ "fork failed", COMPLAINT_PROCESSES },
	{ "spawn EAGAIN", COMPLAINT_PROCESSES },
	{ "an't start new thread", COMPLAINT_PROCESSES },
	{ "nable to create native thread", COMPLAINT_PROCESSES },
	{ "pthread_create failed", COMPLAINT_PROCESSES },
	{ "failed to spawn thread", COMPLAINT_PROCESSES },
	{ "esource temporarily unavailable", COMPLAINT_PROCESSES },
	{ "isk quota exceeded", COMPLAINT_SPACE },
	{ "o space left on device", COMPLAINT_SPACE },
	{ "ENOSPC", COMPLAINT_SPACE },
	{ "EDQUOT", COMPLAINT_SPACE },
	{ "annot allocate memory", COMPLAINT_MEMORY },
	{ "MemoryError", COMPLAINT_MEMORY },
	{ "std::bad_alloc", COMPLAINT_MEMORY },
	{ "ut of memory", COMPLAINT_MEMORY },
	{ "ENOMEM", COMPLAINT_MEMORY },
};

enum complaint complaint_find(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(complaints) / sizeof(*complaints); i++)
		if (memmem(text, length, complaints[i].words, strlen(complaints[i].words)))
			return complaints[i].complaint;
	return COMPLAINT_NONE;
}
