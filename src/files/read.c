/* Content of files: see read.h. A file is read once, from its beginning, in pieces: memory is bounded by what is
 * returned, whatever the length of the file and of its lines, and time by a deadline. */
#include "files/read.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "files/screen.h"

#define PIECE (64u << 10)
#define LOOKED_AT 8000                  /* as git does */

bool files_is_binary(const char *data, size_t length)
{
	return length && memchr(data, '\0', length < LOOKED_AT ? length : LOOKED_AT) != NULL;
}

static void version_text(crypto_hash_sha256_state *state, char ret_version[FILES_VERSION_SIZE])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	sha256_final(state, hash);
	sodium_bin2hex(ret_version, FILES_VERSION_SIZE, hash, (FILES_VERSION_SIZE - 1) / 2);
}

void files_version(const char *data, size_t length, char ret_version[FILES_VERSION_SIZE])
{
	crypto_hash_sha256_state state;
	crypto_hash_sha256_init(&state);
	sha256_update(&state, data, length);
	version_text(&state, ret_version);
}

/* What is too large to be sent is looked into by a command. */
static int fail_binary(const struct files_place *place, struct cordon_error *err)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, place->given, "this is a binary file of %lld bytes, not text",
	     (long long)place->info.st_size);
	fail_boundary(err, "filesystem");
	return fail_remedy(err, place->info.st_size > FILES_SEND_MAX ?
	                                "look into it with a command: cordon run -- file NAME, head -c, xxd" :
	                                "send it as it is: cordon file send");
}

static int fail_time(const struct files_place *place, struct cordon_error *err)
{
	fail(err, CORDON_E_LIMIT_EXCEEDED, 0, place->given, "reading took longer than %d ms", FILES_TIME_MS);
	fail_boundary(err, "limits");
	return fail_remedy(err, "read by bytes (--bytes --offset N), or search in it: cordon file grep");
}

static int open_regular(const struct files_place *place, int *ret_fd, struct cordon_error *err)
{
	if (files_require_regular(place, err) < 0)
		return -1;
	int fd = files_reopen(place->fd, O_RDONLY);
	if (fd < 0)
		return files_fail(err, -fd, place->given, "cannot read this file");
	*ret_fd = fd;
	return 0;
}

static ssize_t read_piece(int fd, char *piece, size_t size)
{
	ssize_t got;
	do
		got = read(fd, piece, size);
	while (got < 0 && errno == EINTR);
	return got;
}

/* ---- a part ----------------------------------------------------------------------------------------------------- */

struct reading {
	const struct files_read *how;
	struct files_content content;
	uint64_t line;                  /* of the next byte */
	uint64_t at;                    /* its offset */
	uint64_t first_at;              /* the offset of the first byte that was taken */
	size_t numbers;                 /* what the lines' numbers may take */
	uint64_t end;                   /* the first line, or byte, that is not wanted */
	bool full;                      /* no more fits, or is wanted */
	bool line_begins;
};

static uint64_t end_of(uint64_t first, uint64_t limit)
{
	return !limit || first > UINT64_MAX - limit ? UINT64_MAX : first + limit;
}

/* How much of it belongs to lines before the first. */
static size_t skip_lines(struct reading *reading, const char *piece, size_t length)
{
	size_t used = 0;
	while (used < length && reading->line < reading->how->offset) {
		const char *newline = memchr(piece + used, '\n', length - used);
		if (!newline)
			return length;
		used = (size_t)(newline - piece) + 1;
		reading->line++;
	}
	return used;
}

static void append(struct reading *reading, const char *bytes, size_t length)
{
	struct files_content *content = &reading->content;
	memcpy(content->data + content->length, bytes, length);
	content->length += length;
}

/* What is requested of a line that begins or continues here. Returns the length of that part. */
static size_t take_line(struct reading *reading, const char *piece, size_t length)
{
	struct files_content *content = &reading->content;
	const char *newline = memchr(piece, '\n', length);
	size_t wanted = newline ? (size_t)(newline - piece) + 1 : length,
	       room = FILES_READ_MAX - content->length - reading->numbers;
	if (reading->line_begins && reading->line >= reading->end) {
		reading->full = true;
		content->next = reading->line;
		return 0;
	}
	size_t width = reading->line < 1000000 ? FILES_NUMBER_USUAL : FILES_NUMBER_MAX;
	if (reading->line_begins && reading->how->numbers && room > width) {
		reading->numbers += width;
		room -= width;
	}
	if (wanted > room) {
		/* Whole lines only, unless one line is more than all. */
		reading->full = true;
		content->cut = content->lines == 0;
		content->next = content->cut ? reading->line + 1 : reading->line;
		if (content->cut) {
			append(reading, piece, room);
			content->lines = 1;
		}
		return 0;
	}
	append(reading, piece, wanted);
	content->lines += newline != NULL;
	reading->line += newline != NULL;
	reading->line_begins = newline != NULL;
	return wanted;
}

static void take_lines(struct reading *reading, const char *piece, size_t length)
{
	size_t used = reading->full ? length : skip_lines(reading, piece, length);
	if (!reading->content.length)
		reading->first_at = reading->at + used;
	while (used < length && !reading->full)
		used += take_line(reading, piece + used, length - used);
}

static void take_bytes(struct reading *reading, const char *piece, size_t length)
{
	struct files_content *content = &reading->content;
	uint64_t from = reading->how->offset > reading->at ? reading->how->offset - reading->at : 0;
	if (reading->full || from >= length)
		return;
	size_t wanted = length - (size_t)from, room = FILES_READ_MAX - content->length;
	if (reading->end - reading->how->offset - content->length < room)
		room = (size_t)(reading->end - reading->how->offset - content->length);
	if (wanted > room) {
		wanted = room;
		reading->full = true;
		content->next = reading->how->offset + content->length + wanted;
	}
	if (!content->length)
		reading->first_at = reading->at + from;
	append(reading, piece + from, wanted);
}

/* All of the file where it has a version, else as far as is wanted. */
static int read_all(struct reading *reading, const struct files_place *place, int fd, struct cordon_error *err)
{
	uncleared char piece[PIECE];
	crypto_hash_sha256_state state;
	const int64_t deadline = clock_ms() + FILES_TIME_MS;
	const bool whole = place->info.st_size <= FILES_EDIT_MAX;
	ssize_t got;
	crypto_hash_sha256_init(&state);
	while ((got = read_piece(fd, piece, PIECE)) > 0) {
		if (reading->at == 0 && files_is_binary(piece, (size_t)got))
			return fail_binary(place, err);
		(reading->how->bytes ? take_bytes : take_lines)(reading, piece, (size_t)got);
		reading->at += (uint64_t)got;
		if (whole)
			sha256_update(&state, piece, (size_t)got);
		if (reading->full && (!whole || reading->at > FILES_EDIT_MAX))
			break;
		if (clock_ms() > deadline)
			return fail_time(place, err);
	}
	if (got < 0)
		return files_fail(err, errno, place->given, "cannot read this file");
	if (whole && reading->at <= FILES_EDIT_MAX)
		version_text(&state, reading->content.version);
	return 0;
}

static void finish(struct reading *reading)
{
	struct files_content *content = &reading->content;
	/* A sequence is not cut in two: the next read has it whole. */
	size_t tail = content->next && content->length ? utf8_cut_tail(content->data, content->length) : 0;
	if (tail && tail < content->length) {
		content->length -= tail;
		if (reading->how->bytes)
			content->next -= tail;
	}
	content->data[content->length] = '\0';
	content->is_utf8 = utf8_valid(content->data, content->length);
	if (!reading->how->bytes && !reading->line_begins && !content->cut && !reading->full)
		content->lines++;
	/* Nothing may be there, or nothing from there on. */
	if (!content->length && !content->next && reading->how->offset > !reading->how->bytes) {
		bool is_bytes = reading->how->bytes;
		uint64_t has = is_bytes ? content->size : reading->line - reading->line_begins;
		snprintf(content->note, sizeof(content->note), "the file ends before that: it has %llu %s%s",
		         (unsigned long long)has, is_bytes ? "byte" : "line", has == 1 ? "" : "s");
	}
}

int files_read(const struct files_place *place, const struct files_read *how, struct files_content *ret_content,
               struct cordon_error *err)
{
	auto_close int fd = -1;
	if (open_regular(place, &fd, err) < 0)
		return -1;
	struct reading reading = { .how = how,
		                   .line = 1,
		                   .line_begins = true,
		                   .end = end_of(how->offset + (!how->bytes && !how->offset), how->limit),
		                   .content = { .size = (uint64_t)place->info.st_size,
		                                .first = how->offset ? how->offset : !how->bytes } };
	auto_free char *data = malloc(FILES_READ_MAX + 1);
	if (!data)
		return fail_oom(err);
	reading.content.data = data;
	/* By bytes there is nothing to count before the first. */
	if (how->bytes && how->offset && reading.content.size > FILES_EDIT_MAX) {
		if (lseek(fd, (off_t)how->offset, SEEK_SET) < 0)
			return files_fail(err, errno, place->given, "cannot read from there");
		reading.at = how->offset;
	}
	if (read_all(&reading, place, fd, err) < 0)
		return -1;
	if (memchr(data, '\0', reading.content.length))
		return fail_binary(place, err);
	finish(&reading);
	data = NULL;
	if (files_screen_part(how->screen, fd, reading.first_at, &reading.content, err) < 0 ||
	    (how->numbers && !how->bytes && files_number_lines(&reading.content, err) < 0)) {
		free(reading.content.data);
		return -1;
	}
	*ret_content = reading.content;
	return 0;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

int files_load(const struct files_place *place, size_t max, char **ret_data, size_t *ret_length,
               struct cordon_error *err)
{
	auto_close int fd = -1;
	size_t length = 0, size = (size_t)place->info.st_size;
	ssize_t got = 0;
	if (open_regular(place, &fd, err) < 0)
		return -1;
	if (place->info.st_size > (off_t)max) {
		fail(err, CORDON_E_LIMIT_EXCEEDED, 0, place->given,
		     "the file has %lld bytes, and at most %zu can be taken whole", (long long)place->info.st_size,
		     max);
		fail_boundary(err, "limits");
		return fail_remedy(err, "of a text read a part: cordon file read --offset N --limit N; "
		                        "anything else is for a command: cordon run");
	}
	/* It may grow meanwhile, but not beyond what is allowed. */
	for (auto_free char *data = malloc(size + 1); data; ) {
		while (length <= size && (got = read_piece(fd, data + length, size + 1 - length)) > 0)
			length += (size_t)got;
		if (length <= size && got < 0)
			return files_fail(err, errno, place->given, "cannot read this file");
		if (length <= size) {
			data[length] = '\0';
			*ret_data = data;
			*ret_length = length;
			data = NULL;
			return 0;
		}
		if (size == max) {
			fail(err, CORDON_E_LIMIT_EXCEEDED, 0, place->given, "the file grows beyond %zu bytes", max);
			return fail_boundary(err, "limits");
		}
		size = size > max / 2 ? max : 2 * size + 4096 < max ? 2 * size + 4096 : max;
		char *larger = realloc(data, size + 1);
		if (!larger)
			break;
		data = larger;
	}
	return fail_oom(err);
}

static const char *type_of(const char *name, const char *data, size_t length)
{
	static const struct {
		const char *suffix, *type;
	} rows[] = {
		{ ".png", "image/png" },        { ".jpg", "image/jpeg" },         { ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" },        { ".webp", "image/webp" },        { ".svg", "image/svg+xml" },
		{ ".pdf", "application/pdf" },  { ".json", "application/json" },  { ".zip", "application/zip" },
		{ ".gz", "application/gzip" },  { ".tar", "application/x-tar" },  { ".html", "text/html" },
		{ ".css", "text/css" },         { ".csv", "text/csv" },           { ".md", "text/markdown" },
		{ ".xml", "application/xml" },  { ".js", "text/javascript" },     { ".wasm", "application/wasm" },
		{ ".mp3", "audio/mpeg" },       { ".wav", "audio/wav" },          { ".mp4", "video/mp4" },
	};
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot && i < ARRAY_SIZE(rows); i++)
		if (!strcasecmp(dot, rows[i].suffix))
			return rows[i].type;
	return files_is_binary(data, length) || !utf8_valid(data, length) ? "application/octet-stream" : "text/plain";
}

int files_send(const struct files_place *place, const struct files_screen *screen, struct files_content *ret_content,
               struct cordon_error *err)
{
	struct files_content content = { .first = 0 };
	if (files_load(place, FILES_SEND_MAX, &content.data, &content.length, err) < 0)
		return -1;
	content.size = content.length;
	content.is_utf8 = utf8_valid(content.data, content.length);
	content.type = type_of(strrchr(place->path, '/'), content.data, content.length);
	files_version(content.data, content.length, content.version);
	if (files_screen_whole(screen, place, &content, err) < 0) {
		free(content.data);
		return -1;
	}
	*ret_content = content;
	return 0;
}
