/* Finding a row: see find.h. */
#include "audit/find.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "audit/ledger.h"
#include "base/arena.h"
#include "base/error.h"

#define SUFFIX ".jsonl"

/* A whole row; of a torn line, what it was going to say does not count. */
static bool is_row(const char *line, size_t length, const char *text)
{
	if (!memmem(line, length, text, strlen(text)))
		return false;
	json_t *row = json_loadb(line, length, 0, NULL);
	json_decref(row);
	return row != NULL;
}

/* Reads on after what is there already. The number of bytes, 0 at the end, -1 and errno. */
static ssize_t fill(int fd, char *buffer, size_t size)
{
	ssize_t got;
	do
		got = read(fd, buffer, size);
	while (got < 0 && errno == EINTR);
	return got;
}

/* 1, 0, or -1 and errno. A line that is longer than any row is none. */
static int search(int fd, const char *text)
{
	auto_free char *buffer = malloc(LEDGER_LINE_MAX);
	size_t filled = 0;
	ssize_t got = 0;
	if (!buffer)
		return -1;
	while ((got = fill(fd, buffer + filled, LEDGER_LINE_MAX - filled)) > 0) {
		const char *line = buffer, *end = buffer + filled + got, *newline;
		for (; (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1)
			if (is_row(line, (size_t)(newline - line), text))
				return 1;
		filled = (size_t)(end - line);
		if (filled == LEDGER_LINE_MAX)
			filled = 0;
		memmove(buffer, line, filled);
	}
	return (int)got;
}

static int newest_first(const void *a, const void *b)
{
	return -strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the days; none where there is no ledger. */
static int list_files(struct arena *arena, int fd, struct strings *ret_names)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), result = 0;
	DIR *listing = own < 0 ? NULL : fdopendir(own);
	if (!listing) {
		cleanup_close(&own);
		return -1;
	}
	for (struct dirent *entry; result == 0 && (entry = readdir(listing));) {
		size_t length = strlen(entry->d_name);
		if (length > sizeof(SUFFIX) - 1 && !strcmp(entry->d_name + length - (sizeof(SUFFIX) - 1), SUFFIX))
			result = strings_add(arena, ret_names, arena_strdup(arena, entry->d_name));
	}
	closedir(listing);
	if (ret_names->count)
		qsort(ret_names->items, ret_names->count, sizeof(*ret_names->items), newest_first);
	return result;
}

int ledger_find(const char *data_dir, const char *kind, const char *id, bool *ret_found, struct cordon_error *err)
{
	char path[PATH_MAX], text[128];
	struct arena arena = { 0 };
	struct strings names = { 0 };
	snprintf(path, sizeof(path), "%s/ledger", data_dir);
	snprintf(text, sizeof(text), "\"row\":\"%s\",\"id\":\"%s\"", kind, id);
	auto_close int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int found = directory >= 0 ? list_files(&arena, directory, &names) : errno == ENOENT ? 0 : -1;
	for (size_t i = 0; found == 0 && i < names.count; i++) {
		auto_close int fd = openat(directory, names.items[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		found = fd < 0 ? -1 : search(fd, text);
	}
	arena_free(&arena);
	if (found < 0) {
		fail(err, CORDON_E_AUDIT_UNAVAILABLE, errno, path, "the ledger cannot be searched");
		return fail_boundary(err, "ledger");
	}
	*ret_found = found;
	return 0;
}
