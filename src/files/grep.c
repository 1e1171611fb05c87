/* Lines that match: see grep.h. A file is read in pieces into one buffer; where the pattern has bytes that every match
 * has, only lines with these are looked at closely. */
#include "files/grep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "files/read.h"
#include "files/screen.h"
#include "files/walk.h"

#define BUFFER_SIZE (2 * FILES_LINE_MAX)

struct searching {
	const struct files *files;
	const struct files_place *place;
	const struct files_grep *grep;
	struct pattern *pattern;
	struct glob *globs;
	struct json *json;
	char *buffer;
	size_t count, limit;
	size_t searched, binary, unreadable;
	int64_t deadline;
	bool more, too_long, short_of_memory;
};

struct file_search {
	const char *path;               /* as it is shown */
	uint64_t line;                  /* of the beginning of what is looked at */
	uint64_t at;                    /* the offset in the file of the buffer's first byte */
	size_t length;                  /* of what is in the buffer */
	bool looked;                    /* that was searched for secrets */
	bool matched;
};

/* The line with secrets replaced. All that is in the buffer is searched with it, since a secret may go over several
 * lines. */
static int screen_line(struct searching *searching, struct file_search *file, const char *text, size_t length,
                       char **ret_shown, size_t *ret_length)
{
	const struct files_screen *screen = searching->files->screen;
	size_t from = (size_t)(text - searching->buffer);
	*ret_shown = NULL;
	if (!screen)
		return 0;
	if (!file->looked && screen->look(screen->arg, searching->buffer, file->length, file->at) < 0)
		return -1;
	file->looked = true;
	return screen->show(screen->arg, from, from + length, ret_shown, ret_length);
}

static int write_match(struct searching *searching, struct file_search *file, const char *text, size_t length)
{
	struct json *json = searching->json;
	auto_free char *shown = NULL;
	size_t shown_length = 0;
	if (screen_line(searching, file, text, length, &shown, &shown_length) < 0)
		return -1;
	if (shown) {
		text = shown;
		length = shown_length;
	}
	if (length && text[length - 1] == '\r')
		length--;
	bool cut = length > FILES_LINE_SHOWN;
	if (cut)
		length = FILES_LINE_SHOWN - utf8_cut_tail(text, FILES_LINE_SHOWN);
	json_object_begin(json);
	json_key_bytes(json, "path", file->path, strlen(file->path));
	json_key_uint(json, "line", file->line);
	json_key_bytes(json, "text", text, length);
	if (cut)
		json_key_bool(json, "cut", true);
	json_object_end(json);
	return 0;
}

/* A file can be named by a secret, too. */
static int screen_path(struct searching *searching, struct file_search *file)
{
	const struct files_screen *screen = searching->files->screen;
	auto_free char *shown = NULL;
	size_t length;
	if (!screen)
		return 0;
	if (screen->look(screen->arg, file->path, strlen(file->path), 0) < 0 ||
	    screen->show(screen->arg, 0, strlen(file->path), &shown, &length) < 0)
		return -1;
	if (shown)
		file->path = arena_strdup(searching->files->arena, shown);
	return file->path ? 0 : -1;
}

/* 1 ends the search in this file. */
static int take_match(struct searching *searching, struct file_search *file, const char *text, size_t length)
{
	if (searching->count == searching->limit) {
		searching->more = true;
		return 1;
	}
	if (!file->matched && screen_path(searching, file) < 0) {
		searching->short_of_memory = true;
		return 1;
	}
	file->matched = true;
	searching->count++;
	if (searching->grep->names_only) {
		json_text(searching->json, file->path);
		return 1;
	}
	searching->short_of_memory = write_match(searching, file, text, length) < 0;
	return searching->short_of_memory;
}

/* Where the next line is that may match; lines before it are counted. */
static const char *skip_to(const struct searching *searching, struct file_search *file, const char *at, const char *end)
{
	size_t length;
	const char *required = pattern_required(searching->pattern, &length);
	const char *found = required ? memmem(at, (size_t)(end - at), required, length) : at;
	if (!found)
		found = end;
	for (const char *newline; at < found && (newline = memchr(at, '\n', (size_t)(found - at)));) {
		at = newline + 1;
		file->line++;
	}
	return found == end ? end : at;
}

/* Whole lines, the last of which may have no newline. */
static int search_lines(struct searching *searching, struct file_search *file, const char *at, const char *end)
{
	while ((at = skip_to(searching, file, at, end)) < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at), searched = length;
		if (searched && newline && at[searched - 1] == '\r')
			searched--;
		if (pattern_match(searching->pattern, at, searched) && take_match(searching, file, at, length))
			return 1;
		if (pattern_was_ended(searching->pattern)) {
			searching->too_long = true;
			return 1;
		}
		file->line += newline != NULL;
		at += length + (newline != NULL);
	}
	return 0;
}

static bool is_late(const void *arg)
{
	const struct searching *searching = arg;
	return clock_ms() > searching->deadline;
}

static int search_file(struct searching *searching, int fd, const char *path)
{
	struct file_search file = { .path = path, .line = 1 };
	char *buffer = searching->buffer;
	size_t kept = 0;
	bool first = true;
	for (;;) {
		ssize_t got = read(fd, buffer + kept, BUFFER_SIZE - kept);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			searching->unreadable++;
			return 0;
		}
		if (first && files_is_binary(buffer, (size_t)got)) {
			searching->binary++;
			return 0;
		}
		first = false;
		size_t length = kept + (size_t)got;
		file.length = length;
		file.looked = false;
		if (!got)
			return length ? search_lines(searching, &file, buffer, buffer + length) : 0;
		const char *newline = memrchr(buffer, '\n', length);
		/* A line that continues is kept, unless it is too long. */
		size_t whole = newline ? (size_t)(newline - buffer) + 1 : length >= FILES_LINE_MAX ? length : 0;
		if (whole && search_lines(searching, &file, buffer, buffer + whole))
			return 1;
		kept = length - whole;
		file.at += whole;
		memmove(buffer, buffer + whole, kept);
		if (clock_ms() > searching->deadline) {
			searching->too_long = true;
			return 1;
		}
	}
}

static bool is_over(const struct searching *searching)
{
	return searching->more || searching->too_long || searching->short_of_memory;
}

static int grep_entry(void *arg, const struct files_entry *entry, struct cordon_error *err)
{
	struct searching *searching = arg;
	struct stat info;
	if (!S_ISREG(entry->info.st_mode) ||
	    !files_globs_match(searching->globs, searching->grep->glob_count, entry->path))
		return 0;
	/* What is behind the name may be another by now, so it is opened as a place first. */
	auto_close int place_fd = openat(entry->directory_fd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place_fd < 0 || fstat(place_fd, &info) < 0 || !S_ISREG(info.st_mode))
		return 0;
	auto_close int fd = files_reopen(place_fd, O_RDONLY);
	if (fd < 0) {
		searching->unreadable++;
		return 0;
	}
	struct arena arena = { 0 };
	const char *shown = files_shown(&arena, searching->place, entry->path);
	searching->searched++;
	if (shown)
		(void)!search_file(searching, fd, shown);
	arena_free(&arena);
	return shown ? is_over(searching) : fail_oom(err);
}

static int search(struct searching *searching, struct files_walked *ret_walked, struct cordon_error *err)
{
	const struct files_walk walk = { .ignore = !searching->grep->all, .visit = grep_entry, .arg = searching };
	if (S_ISDIR(searching->place->info.st_mode))
		return files_walk(searching->files, searching->place, &walk, ret_walked, err);
	if (files_require_regular(searching->place, err) < 0)
		return -1;
	auto_close int fd = files_reopen(searching->place->fd, O_RDONLY);
	if (fd < 0)
		return files_fail(err, -fd, searching->place->given, "cannot read this file");
	searching->searched = 1;
	(void)!search_file(searching, fd, searching->place->given);
	return 0;
}

int files_grep(const struct files *files, const struct files_place *place, const struct files_grep *grep,
               struct json *json, struct cordon_error *err)
{
	struct files_walked walked = { .too_deep = false };
	size_t limit = !grep->limit ? FILES_LIST_USUAL : grep->limit < FILES_LIST_MAX ? grep->limit : FILES_LIST_MAX;
	auto_free char *buffer = malloc(BUFFER_SIZE);
	struct searching searching = { .files = files,
		                       .place = place,
		                       .grep = grep,
		                       .json = json,
		                       .buffer = buffer,
		                       .limit = limit,
		                       .deadline = clock_ms() + FILES_TIME_MS };
	if (!buffer)
		return fail_oom(err);
	if (pattern_compile(files->arena, grep->pattern, grep->pattern_length, grep->options, &searching.pattern, err) <
	            0 ||
	    files_globs_compile(files->arena, grep->globs, grep->glob_count, &searching.globs, err) < 0)
		return -1;
	pattern_set_end(searching.pattern, is_late, &searching);
	json_key_bytes(json, "path", place->path, strlen(place->path));
	json_key(json, grep->names_only ? "files" : "matches");
	json_array_begin(json);
	if (search(&searching, &walked, err) < 0)
		return -1;
	if (searching.short_of_memory)
		return fail_oom(err);
	json_array_end(json);
	json_key_bool(json, "more", searching.more);
	json_key_uint(json, "searched", searching.searched);
	json_key_uint(json, "binary", searching.binary);
	walked.too_long |= searching.too_long;
	walked.unreadable += searching.unreadable;
	files_walked_write(json, &walked);
	return 0;
}
