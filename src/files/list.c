/* What is there: see list.h. */
#include "files/list.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/utc.h"
#include "files/walk.h"

static void write_info(struct json *json, const struct stat *info)
{
	char text[UTC_SIZE];
	json_key_string(json, "type", files_kind(info->st_mode));
	json_key_uint(json, "size", (uint64_t)info->st_size);
	snprintf(text, sizeof(text), "%04o", (unsigned)info->st_mode & 07777);
	json_key_string(json, "mode", text);
	utc_text(info->st_mtim.tv_sec, (unsigned)(info->st_mtim.tv_nsec / 1000000), text);
	json_key_string(json, "modified", text);
}

void files_stat(struct json *json, const struct files_place *place)
{
	json_key_bytes(json, "path", place->path, strlen(place->path));
	write_info(json, &place->info);
	json_key_uint(json, "links", place->info.st_nlink);
	json_key_uint(json, "uid", place->info.st_uid);
	json_key_uint(json, "gid", place->info.st_gid);
	json_key_bool(json, "writable", place->root->writable);
}

/* ---- a directory ------------------------------------------------------------------------------------------------ */

struct listing {
	struct json *json;
	size_t count, limit;
	uint64_t offset, passed;        /* so many entries are passed over */
	bool more, by_path;
};

static int list_entry(void *arg, const struct files_entry *entry, struct cordon_error *err)
{
	struct listing *listing = arg;
	char target[PATH_MAX];
	(void)err;
	if (listing->passed < listing->offset) {
		listing->passed++;
		return 0;
	}
	if (listing->count == listing->limit) {
		listing->more = true;
		return 1;
	}
	listing->count++;
	json_object_begin(listing->json);
	const char *shown = listing->by_path ? entry->path : entry->name;
	json_key_bytes(listing->json, listing->by_path ? "path" : "name", shown, strlen(shown));
	if (entry->hidden) {
		json_key_string(listing->json, "type", "hidden");
	} else {
		write_info(listing->json, &entry->info);
		ssize_t length = S_ISLNK(entry->info.st_mode)
		               ? readlinkat(entry->directory_fd, entry->name, target, sizeof(target)) : -1;
		if (length >= 0)
			json_key_bytes(listing->json, "target", target, (size_t)length);
	}
	json_object_end(listing->json);
	return 0;
}

static size_t limit_of(size_t limit)
{
	return !limit ? FILES_LIST_USUAL : limit < FILES_LIST_MAX ? limit : FILES_LIST_MAX;
}

static int write_entries(const struct files *files, const struct files_place *place, const struct files_walk *walk,
                         struct files_walked *ret_walked, struct cordon_error *err)
{
	struct listing *listing = walk->arg;
	json_key_bytes(listing->json, "path", place->path, strlen(place->path));
	json_key(listing->json, "entries");
	json_array_begin(listing->json);
	if (files_walk(files, place, walk, ret_walked, err) < 0)
		return -1;
	json_array_end(listing->json);
	json_key_bool(listing->json, "more", listing->more);
	return 0;
}

int files_list(const struct files *files, const struct files_place *place, size_t limit, struct json *json,
               struct cordon_error *err)
{
	struct listing listing = { .json = json, .limit = limit_of(limit) };
	struct files_walked walked;
	const struct files_walk walk = { .depth = 1, .hidden = !files->untold, .visit = list_entry, .arg = &listing };
	if (write_entries(files, place, &walk, &walked, err) < 0)
		return -1;
	files_walked_write(json, &walked);
	return 0;
}

int files_tree(const struct files *files, const struct files_place *place, const struct files_tree *tree,
               struct json *json, struct cordon_error *err)
{
	struct listing listing = {
		.json = json, .limit = limit_of(tree->limit), .offset = tree->offset, .by_path = true
	};
	struct files_walked walked;
	const struct files_walk walk = {
		.ignore = !tree->all, .depth = tree->depth, .hidden = true, .visit = list_entry, .arg = &listing
	};
	if (write_entries(files, place, &walk, &walked, err) < 0)
		return -1;
	json_key_uint(json, "next", listing.more ? listing.offset + listing.count : 0);
	files_walked_write(json, &walked);
	return 0;
}

/* ---- a tree ----------------------------------------------------------------------------------------------------- */

const char *files_shown(struct arena *arena, const struct files_place *place, const char *path)
{
	size_t length = strlen(place->given);
	while (length > 1 && place->given[length - 1] == '/')
		length--;
	if (!*path)
		return place->given;
	if (length == 1 && *place->given == '.')
		return path;
	return arena_printf(arena, "%.*s%s%s", (int)length, place->given,
	                    length == 1 && *place->given == '/' ? "" : "/", path);
}

int files_globs_compile(struct arena *arena, const char *const *texts, size_t count, struct glob **ret_globs,
                        struct cordon_error *err)
{
	struct glob *globs = arena_alloc(arena, (count + 1) * sizeof(*globs));
	if (!globs)
		return fail_oom(err);
	for (size_t i = 0; i < count; i++)
		if (glob_compile(arena, texts[i], 0, &globs[i], err) < 0) {
			if (err)
				err->class = CORDON_E_INVALID_REQUEST;
			return fail_boundary(err, "request");
		}
	*ret_globs = globs;
	return 0;
}

bool files_globs_match(const struct glob *globs, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (glob_match(&globs[i], path))
			return true;
	return !count;
}

struct finding {
	const struct files *files;
	const struct files_place *place;
	const struct files_find *find;
	struct glob *globs;
	struct listing listing;
};

static int find_entry(void *arg, const struct files_entry *entry, struct cordon_error *err)
{
	struct finding *finding = arg;
	struct arena arena = { 0 };
	struct json *json = finding->listing.json;
	mode_t mode = entry->info.st_mode;
	char kind = S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : S_ISREG(mode) ? 'f' : 'o';
	if ((finding->find->kind && finding->find->kind != kind) ||
	    !files_globs_match(finding->globs, finding->find->glob_count, entry->path))
		return 0;
	if (finding->listing.count == finding->listing.limit) {
		finding->listing.more = true;
		return 1;
	}
	finding->listing.count++;
	const char *shown = files_shown(&arena, finding->place, entry->path);
	if (shown) {
		json_object_begin(json);
		json_key_bytes(json, "path", shown, strlen(shown));
		json_key_string(json, "type", files_kind(mode));
		json_key_uint(json, "size", (uint64_t)entry->info.st_size);
		json_object_end(json);
	}
	arena_free(&arena);
	return shown ? 0 : fail_oom(err);
}

int files_find(const struct files *files, const struct files_place *place, const struct files_find *find,
               struct json *json, struct cordon_error *err)
{
	struct finding finding = { .files = files,
		                   .place = place,
		                   .find = find,
		                   .listing = { .json = json, .limit = limit_of(find->limit) } };
	struct files_walked walked;
	const struct files_walk walk = { .ignore = !find->all, .visit = find_entry, .arg = &finding };
	if (files_globs_compile(files->arena, find->globs, find->glob_count, &finding.globs, err) < 0)
		return -1;
	json_key_bytes(json, "path", place->path, strlen(place->path));
	json_key(json, "entries");
	json_array_begin(json);
	if (files_walk(files, place, &walk, &walked, err) < 0)
		return -1;
	json_array_end(json);
	json_key_bool(json, "more", finding.listing.more);
	files_walked_write(json, &walked);
	return 0;
}
