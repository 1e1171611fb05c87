/* The record of a tree as bytes: see judged.h.
 *
 * A header, then rows of fixed size, then one block of text. Only cordon can write the file, so the checksum is
 * against accidents; nevertheless no count, offset or type is used unchecked. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "paths/index/look.h"
#include "paths/planted/judged.h"
#include "paths/planted/seen.h"

#define RECORD_SIZE_MAX JUDGED_RECORD_MAX

static const char magic[8] = "cordonJ1";

struct header {
	char magic[8];
	unsigned char sum[32];                  /* SHA-256 of all that follows */
	uint64_t names, seen, facts, made, told, text;
};
#define SUMMED offsetof(struct header, names)

enum name_flag { FLAG_DIRECTORY = 1 << 0, FLAG_LINK = 1 << 1, FLAGS = FLAG_DIRECTORY | FLAG_LINK };

struct name_row {
	uint64_t path, device, inode;
	int64_t ctime_ns, born_ns;
	uint32_t links, kind, flags, reserved;
};

struct seen_row {
	uint64_t path, device, inode, size;
	int64_t ctime_ns;
	uint32_t config, facts;                 /* enum config_state; how many facts of it */
};

/* What is known of a configuration. */
enum config_state { CONFIG_NONE, CONFIG_UNKNOWN, CONFIG_KNOWN, CONFIG_MAX };

static uint64_t hash_of(const char *path, const struct names_stat *stat)
{
	const uint64_t identity[] = { stat->device, stat->inode, (uint64_t)stat->born_ns };
	unsigned char digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;
	uint64_t hash;
	crypto_hash_sha256_init(&state);
	sha256_update(&state, identity, sizeof(identity));
	sha256_update(&state, path, strlen(path));
	sha256_final(&state, digest);
	memcpy(&hash, digest, sizeof(hash));
	return hash;
}

uint64_t judged_hash(int root_fd, const struct name *name)
{
	struct names_stat stat = { 0 };
	names_stat(root_fd, name->path, &stat);
	return hash_of(name->path, &stat);
}

uint64_t judged_hash_path(const char *path)
{
	return hash_of(path, &(struct names_stat){ 0 });
}

static int compare_hashes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static bool has_hash(const uint64_t *hashes, size_t count, uint64_t hash)
{
	return count && bsearch(&hash, hashes, count, sizeof(hash), compare_hashes);
}

bool judged_is_made(const struct judged_record *record, int root_fd, const struct name *name)
{
	return record->made_count && has_hash(record->made, record->made_count, judged_hash(root_fd, name));
}

bool judged_is_told(const struct judged_record *record, const char *path)
{
	return record->told_count && has_hash(record->told, record->told_count, judged_hash_path(path));
}

static bool is_kept(const struct name *name)
{
	return name->kind == NAME_PROTECTED || name->kind == NAME_JUDGED;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

static struct header measure(const struct judged_record *record)
{
	struct header header = { .seen = record->planted.count,
		                 .made = record->made_count,
		                 .told = record->told_count };
	memcpy(header.magic, magic, sizeof(magic));
	for (size_t i = 0; i < record->names.count; i++)
		if (is_kept(&record->names.items[i])) {
			header.names++;
			header.text += strlen(record->names.items[i].path) + 1;
		}
	for (size_t i = 0; i < record->planted.count; i++) {
		header.text += strlen(record->planted.seen[i].path) + 1;
		header.facts += record->planted.seen[i].config ? record->planted.seen[i].config->count : 0;
	}
	return header;
}

static size_t size_of(const struct header *header)
{
	return sizeof(*header) + header->names * sizeof(struct name_row) + header->seen * sizeof(struct seen_row) +
	       header->facts * sizeof(struct git_config_fact) + (header->made + header->told) * sizeof(uint64_t) +
	       header->text;
}

static uint64_t put_text(char *text, uint64_t *end, const char *path)
{
	uint64_t at = *end;
	*end = (uint64_t)(stpcpy(text + at, path) + 1 - text);
	return at;
}

void *judged_write(const struct judged_record *record, size_t *ret_size)
{
	struct header header = measure(record);
	size_t size = size_of(&header);
	uint64_t end = 0;
	char *bytes = size > RECORD_SIZE_MAX ? NULL : calloc(1, size);
	if (!bytes)
		return NULL;
	struct name_row *names = (struct name_row *)(bytes + sizeof(header));
	struct seen_row *seen = (struct seen_row *)(names + header.names);
	struct git_config_fact *facts = (struct git_config_fact *)(seen + header.seen);
	uint64_t *made = (uint64_t *)(facts + header.facts);
	char *text = (char *)(made + header.made + header.told);
	for (size_t i = 0; i < record->names.count; i++) {
		const struct name *name = &record->names.items[i];
		if (!is_kept(name))
			continue;
		*names++ = (struct name_row){
			.path = put_text(text, &end, name->path), .device = name->device, .inode = name->inode,
			.ctime_ns = name->ctime_ns, .born_ns = name->born_ns, .links = name->links, .kind = name->kind,
			.flags = (name->is_directory ? FLAG_DIRECTORY : 0) | (name->is_link ? FLAG_LINK : 0),
		};
	}
	for (size_t i = 0; i < record->planted.count; i++) {
		const struct planted_seen *at = &record->planted.seen[i];
		const struct git_config_before *config = at->config;
		seen[i] = (struct seen_row){
			.path = put_text(text, &end, at->path),
			.device = at->device,
			.inode = at->inode,
			.size = at->size,
			.ctime_ns = at->ctime_ns,
			.config = !config       ? CONFIG_NONE :
			          config->known ? CONFIG_KNOWN :
			                          CONFIG_UNKNOWN,
			.facts = config ? (uint32_t)config->count : 0,
		};
		if (config && config->count)
			facts = mempcpy(facts, config->facts, config->count * sizeof(*facts));
	}
	if (header.made)
		memcpy(made, record->made, header.made * sizeof(*made));
	if (header.told)
		memcpy(made + header.made, record->told, header.told * sizeof(*made));
	memcpy(bytes, &header, sizeof(header));
	sha256(header.sum, bytes + SUMMED, size - SUMMED);
	memcpy(bytes, &header, sizeof(header));
	*ret_size = size;
	return bytes;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static bool header_is_sound(const struct header *header, const void *bytes, size_t size)
{
	const uint64_t most = RECORD_SIZE_MAX / sizeof(uint64_t);
	unsigned char sum[sizeof(header->sum)];
	if (memcmp(header->magic, magic, sizeof(magic)) || header->names > most || header->seen > most ||
	    header->facts > most || header->made > JUDGED_MADE_MAX || header->told > JUDGED_MADE_MAX ||
	    header->text > RECORD_SIZE_MAX || size_of(header) != size)
		return false;
	sha256(sum, (const char *)bytes + SUMMED, size - SUMMED);
	return !memcmp(sum, header->sum, sizeof(sum));
}

static bool read_names(const struct name_row *rows, size_t count, const char *text, uint64_t text_size,
                       struct names *names)
{
	for (size_t i = 0; i < count; i++) {
		const struct name_row *row = &rows[i];
		if (row->path >= text_size || (row->kind != NAME_PROTECTED && row->kind != NAME_JUDGED) ||
		    row->flags & ~(unsigned)FLAGS)
			return false;
		names->items[names->count++] = (struct name){
			.kind = row->kind, .path = text + row->path, .is_directory = row->flags & FLAG_DIRECTORY,
			.is_link = row->flags & FLAG_LINK, .device = row->device, .inode = row->inode,
			.ctime_ns = row->ctime_ns, .born_ns = row->born_ns, .links = row->links,
		};
	}
	names_sort(names);
	return true;
}

static bool read_seen(struct arena *arena, const struct seen_row *rows, const struct header *header,
                      const struct git_config_fact *facts, const char *text, struct planted_before *planted)
{
	uint64_t used = 0;
	for (size_t i = 0; i < header->seen; i++) {
		const struct seen_row *row = &rows[i];
		struct git_config_before *config = NULL;
		if (row->path >= header->text || row->config >= CONFIG_MAX || row->facts > header->facts - used ||
		    (row->facts && row->config == CONFIG_NONE))
			return false;
		if (row->config != CONFIG_NONE) {
			config = arena_alloc(arena, sizeof(*config));
			if (!config)
				return false;
			*config = (struct git_config_before){ facts + used, row->facts, row->config == CONFIG_KNOWN };
			used += row->facts;
		}
		planted->seen[planted->count++] = (struct planted_seen){
			.path = text + row->path, .device = row->device, .inode = row->inode, .size = row->size,
			.ctime_ns = row->ctime_ns, .config = config,
		};
	}
	seen_sort(planted);
	return true;
}

bool judged_parse(struct arena *arena, const void *bytes, size_t size, struct judged_record *ret_record)
{
	struct header header;
	struct judged_record record = { 0 };
	if (size < sizeof(header) || size > RECORD_SIZE_MAX)
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (!header_is_sound(&header, bytes, size))
		return false;
	char *copy = arena_alloc(arena, size);
	record.names.items = arena_alloc(arena, (header.names + 1) * sizeof(*record.names.items));
	record.planted.seen = arena_alloc(arena, (header.seen + 1) * sizeof(*record.planted.seen));
	if (!copy || !record.names.items || !record.planted.seen)
		return false;
	memcpy(copy, bytes, size);
	const struct name_row *names = (const struct name_row *)(copy + sizeof(header));
	const struct seen_row *seen = (const struct seen_row *)(names + header.names);
	const struct git_config_fact *facts = (const struct git_config_fact *)(seen + header.seen);
	record.made = (uint64_t *)(facts + header.facts);
	record.made_count = header.made;
	record.told = record.made + header.made;
	record.told_count = header.told;
	const char *text = (const char *)(record.told + header.told);
	if ((header.text && text[header.text - 1]) ||
	    !read_names(names, header.names, text, header.text, &record.names) ||
	    !read_seen(arena, seen, &header, facts, text, &record.planted))
		return false;
	record.planted.capacity = record.planted.count;
	record.planted.complete = true;
	*ret_record = record;
	return true;
}
