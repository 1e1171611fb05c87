/* See tar.h. An entry is a header of 512 bytes and its content, filled up to a multiple of that. A header of the kind
 * x, L or K has in its content what does not fit into the next one. */
#include "files/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512
#define EXTRA_MAX ((size_t)1 << 20)     /* of what does not fit into a header */

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], kind, linkname[100], magic[8];
	char uname[32], gname[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct reading {
	struct tar_reader *reader;
	const char *why;
	bool has_path, has_target, has_size;    /* said by an entry before this one */
	uint64_t size;
};

static bool wrong(struct reading *reading, const char *why)
{
	reading->why = why;
	return false;
}

static bool read_octal(const char *field, size_t size, uint64_t *ret_number)
{
	uint64_t number = 0;
	size_t i = 0;
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
		number = number << 3 | (uint64_t)(field[i] - '0');
	*ret_number = number;
	return i == size || !field[i] || field[i] == ' ';
}

static bool is_sound(const struct header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	const size_t from = offsetof(struct header, checksum), to = from + sizeof(header->checksum);
	uint64_t sum = 0, said;
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= from && i < to ? ' ' : bytes[i];
	return read_octal(header->checksum, sizeof(header->checksum), &said) && said == sum &&
	       !memcmp(header->magic, "ustar", 5);
}

static bool take_text(struct reading *reading, char buffer[PATH_MAX], const char *text, size_t length)
{
	if (length >= PATH_MAX)
		return wrong(reading, "a path in it is too long");
	if (memchr(text, '\0', length))
		return wrong(reading, "a path in it has a NUL");
	memcpy(buffer, text, length);
	buffer[length] = '\0';
	return true;
}

static bool take_size(struct reading *reading, const char *text, size_t length)
{
	reading->size = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9' || reading->size > UINT64_MAX / 16)
			return wrong(reading, "a size in it is no number");
		reading->size = reading->size * 10 + (uint64_t)(text[i] - '0');
	}
	reading->has_size = length > 0;
	return true;
}

static bool take_record(struct reading *reading, const char *key, size_t key_length, const char *value, size_t length)
{
	if (key_length == 4 && !memcmp(key, "path", 4)) {
		reading->has_path = true;
		return take_text(reading, reading->reader->path, value, length);
	}
	if (key_length == 8 && !memcmp(key, "linkpath", 8)) {
		reading->has_target = true;
		return take_text(reading, reading->reader->target, value, length);
	}
	return key_length == 4 && !memcmp(key, "size", 4) ? take_size(reading, value, length) : true;
}

/* Records "LENGTH KEY=VALUE\n", where the length counts all of it. */
static bool take_records(struct reading *reading, const char *at, size_t length)
{
	for (const char *end = at + length; at < end;) {
		size_t whole = 0;
		const char *key = at;
		for (; key < end && *key >= '0' && *key <= '9' && whole <= EXTRA_MAX; key++)
			whole = whole * 10 + (size_t)(*key - '0');
		if (key == end || *key++ != ' ' || whole > (size_t)(end - at) || (size_t)(key - at) >= whole ||
		    at[whole - 1] != '\n')
			return wrong(reading, "a record of an extended header is damaged");
		const char *value = memchr(key, '=', whole - 1 - (size_t)(key - at));
		if (!value)
			return wrong(reading, "a record of an extended header has no value");
		if (!take_record(reading, key, (size_t)(value - key), value + 1, whole - 2 - (size_t)(value - at)))
			return false;
		at += whole;
	}
	return true;
}

/* True: it says something about the next entry, or nothing at all, and was taken. */
static bool take_extra(struct reading *reading, char kind, const char *data, size_t length, bool *ret_is_extra)
{
	*ret_is_extra = kind == 'x' || kind == 'g' || kind == 'L' || kind == 'K';
	if (!*ret_is_extra || kind == 'g')
		return true;
	if (length > EXTRA_MAX)
		return wrong(reading, "an extended header is too long");
	if (kind == 'x')
		return take_records(reading, data, length);
	length = strnlen(data, length);
	*(kind == 'L' ? &reading->has_path : &reading->has_target) = true;
	return take_text(reading, kind == 'L' ? reading->reader->path : reading->reader->target, data, length);
}

static void set_names(struct reading *reading, const struct header *header)
{
	struct tar_reader *reader = reading->reader;
	const bool is_posix = !memcmp(header->magic, "ustar\0", 6) && header->prefix[0];
	if (!reading->has_path)
		snprintf(reader->path, sizeof(reader->path), "%.*s%s%.*s", is_posix ? (int)sizeof(header->prefix) : 0,
		         header->prefix, is_posix ? "/" : "", (int)sizeof(header->name), header->name);
	if (!reading->has_target)
		snprintf(reader->target, sizeof(reader->target), "%.*s", (int)sizeof(header->linkname),
		         header->linkname);
}

static void set_type(struct tar_entry *entry, char kind)
{
	static const struct {
		char kind;
		enum tar_type type;
		const char *what;
	} rows[] = {
		{ '0', TAR_FILE, "a file" },        { '\0', TAR_FILE, "a file" },   { '7', TAR_FILE, "a file" },
		{ '5', TAR_DIRECTORY, "a directory" }, { '2', TAR_LINK, "a link" }, { '1', TAR_OTHER, "a hard link" },
		{ '3', TAR_OTHER, "a device" },     { '4', TAR_OTHER, "a device" }, { '6', TAR_OTHER, "a FIFO" },
	};
	entry->type = TAR_OTHER;
	entry->what = "of an unknown kind";
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].kind == kind) {
			entry->type = rows[i].type;
			entry->what = rows[i].what;
		}
	entry->length = entry->type == TAR_FILE ? entry->length : 0;
	/* As it was before there was a kind for them. */
	if (entry->type == TAR_FILE && *entry->path && entry->path[strlen(entry->path) - 1] == '/')
		set_type(entry, '5');
}

static bool read_entry(struct reading *reading, struct tar_entry *entry, bool *ret_is_extra)
{
	struct tar_reader *reader = reading->reader;
	struct header header;
	uint64_t size, mode;
	memcpy(&header, reader->at, BLOCK);
	if (!is_sound(&header))
		return wrong(reading,
		             "it is no tar archive, or damaged; one that is compressed is to be unpacked first");
	if (!read_octal(header.size, sizeof(header.size), &size) ||
	    !read_octal(header.mode, sizeof(header.mode), &mode))
		return wrong(reading, "a number in it cannot be read");
	*ret_is_extra = false;
	if (reading->has_size && header.kind != 'x' && header.kind != 'g' && header.kind != 'L' && header.kind != 'K')
		size = reading->size;
	/* Only files have content. */
	if (header.kind >= '1' && header.kind <= '6')
		size = 0;
	const char *data = reader->at + BLOCK;
	if (size > (uint64_t)(reader->end - data))
		return wrong(reading, "it ends early");
	const size_t filled = (size_t)size + (BLOCK - size % BLOCK) % BLOCK, rest = (size_t)(reader->end - data);
	reader->at = data + (filled < rest ? filled : rest);
	if (!take_extra(reading, header.kind, data, (size_t)size, ret_is_extra) || *ret_is_extra)
		return !reading->why;
	set_names(reading, &header);
	*entry = (struct tar_entry){ .path = reader->path,
		                     .target = reader->target,
		                     .mode = (unsigned)mode & 07777,
		                     .data = data,
		                     .length = (size_t)size };
	set_type(entry, header.kind);
	return true;
}

int tar_next(struct tar_reader *reader, struct tar_entry *ret_entry, const char **ret_why)
{
	static const char zeros[BLOCK];
	struct reading reading = { .reader = reader };
	for (bool is_extra = true; is_extra;) {
		if (reader->end - reader->at < BLOCK) {
			*ret_why = "it ends early";
			return -1;
		}
		if (!memcmp(reader->at, zeros, BLOCK)) {
			reader->end = reader->at;
			return 0;
		}
		if (!read_entry(&reading, ret_entry, &is_extra)) {
			*ret_why = reading.why;
			return -1;
		}
	}
	return 1;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static char *room(struct tar_writer *writer, size_t length)
{
	length += (BLOCK - length % BLOCK) % BLOCK;
	if (length > writer->most - writer->length) {
		writer->length = writer->most;
		return NULL;
	}
	if (writer->length + length > writer->size) {
		size_t size =
			2 * (writer->length + length) < writer->most ? 2 * (writer->length + length) : writer->most;
		char *larger = realloc(writer->data, size);
		if (!larger)
			return NULL;
		writer->data = larger;
		writer->size = size;
	}
	char *at = writer->data + writer->length;
	memset(at, 0, length);
	writer->length += length;
	return at;
}

static bool add(struct tar_writer *writer, const struct tar_entry *entry, char kind)
{
	struct header header = { .kind = kind, .magic = { 'u', 's', 't', 'a', 'r', '\0', '0', '0' } };
	unsigned sum = 0;
	snprintf(header.mode, sizeof(header.mode), "%07o", entry->mode & 0777);
	snprintf(header.uid, sizeof(header.uid), "%07o", 0);
	snprintf(header.gid, sizeof(header.gid), "%07o", 0);
	snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)entry->length);
	snprintf(header.mtime, sizeof(header.mtime), "%011llo", (unsigned long long)entry->modified & 077777777777);
	memcpy(header.name, entry->path, strnlen(entry->path, sizeof(header.name)));
	memcpy(header.linkname, entry->target, strnlen(entry->target, sizeof(header.linkname)));
	memset(header.checksum, ' ', sizeof(header.checksum));
	for (size_t i = 0; i < BLOCK; i++)
		sum += ((const unsigned char *)&header)[i];
	snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
	char *at = room(writer, BLOCK);
	if (at)
		memcpy(at, &header, BLOCK);
	at = at && entry->length ? room(writer, entry->length) : at;
	if (at && entry->length)
		memcpy(at, entry->data, entry->length);
	return at;
}

/* The length counts itself. */
static size_t add_record(char *to, size_t size, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, whole = rest + 1;
	while ((size_t)snprintf(NULL, 0, "%zu", whole) + rest > whole)
		whole++;
	return (size_t)snprintf(to, size, "%zu %s=%s\n", whole, key, value);
}

bool tar_add(struct tar_writer *writer, const struct tar_entry *entry)
{
	static const char kinds[] = { [TAR_FILE] = '0', [TAR_DIRECTORY] = '5', [TAR_LINK] = '2' };
	char records[2 * PATH_MAX + 64];
	size_t length = 0;
	if (strlen(entry->path) > sizeof(((struct header *)NULL)->name))
		length += add_record(records, sizeof(records), "path", entry->path);
	if (strlen(entry->target) > sizeof(((struct header *)NULL)->linkname))
		length += add_record(records + length, sizeof(records) - length, "linkpath", entry->target);
	const struct tar_entry extra = {
		.path = "more", .target = "", .mode = 0644, .data = records, .length = length
	};
	return (!length || add(writer, &extra, 'x')) && add(writer, entry, kinds[entry->type]);
}

bool tar_finish(struct tar_writer *writer)
{
	return room(writer, 2 * (size_t)BLOCK) != NULL;
}
