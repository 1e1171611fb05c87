/* See archive.h. */
#include "files/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/list.h"
#include "files/tar.h"
#include "files/walk.h"
#include "files/write.h"

#define LEADS_TO_PROTECTED "a link in the place of a directory that has protected names"

/* ---- putting one entry into place -------------------------------------------------------------------------------- */

/* `path` is canonical. What lies there, opened for a write; a link on the way is refused. */
static int open_target(const struct files *files, const char *path, struct files_place *ret_place,
                       struct cordon_error *err)
{
	if (files_place_open(files, path, FILES_WRITE | FILES_NO_FOLLOW | FILES_MAY_MISS, ret_place, err) < 0)
		return -1;
	if (!strcmp(ret_place->path, path) && !ret_place->asks)
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "%s",
	     ret_place->asks ? "a tool rule wants a human to be asked about this path" :
	                       "a symbolic link lies on the way to this path");
	fail_boundary(err, ret_place->asks ? "policy" : "filesystem");
	return fail_remedy(err, "%s", ret_place->asks ? "write it by itself" : "remove the link first");
}

static int make_directory(const struct files *files, const char *path, struct cordon_error *err)
{
	struct files_place place;
	int result = open_target(files, path, &place, err);
	if (result == 0)
		result = place.fd < 0 ? files_mkdir(files, &place, err) : files_require_directory(&place, err);
	files_place_close(&place);
	return result;
}

/* The directories between the base, which is there, and the path. */
static int make_parents(const struct files *files, const char *base, const char *path, struct cordon_error *err)
{
	char above[PATH_MAX];
	for (const char *slash = strchr(path + strlen(base) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		if (make_directory(files, above, err) < 0)
			return -1;
	}
	return 0;
}

static int put_link(const struct files *files, const struct files_place *place, const char *target,
                    struct cordon_error *err)
{
	char now[PATH_MAX];
	ssize_t length = place->fd >= 0 && S_ISLNK(place->info.st_mode)
	               ? readlinkat(place->parent_fd, place->name, now, sizeof(now)) : -1;
	if (length >= 0 && (size_t)length == strlen(target) && !memcmp(now, target, (size_t)length))
		return 0;
	if (files_leads_to_protected(files, place->path)) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->given, "this would be " LEADS_TO_PROTECTED);
		return fail_boundary(err, "filesystem");
	}
	return symlinkat(target, place->parent_fd, place->name) < 0
	               ? files_fail(err, errno, place->given, "cannot make this link")
	               : files_settle(files, place, 0, err);
}

static int put_at(const struct files *files, const char *path, const struct tar_entry *entry, struct cordon_error *err)
{
	struct files_place place;
	struct files_written written;
	const struct files_write write = { .data = entry->data, .length = entry->length, .unsynced = true,
		                           .executable = entry->mode & 0100 };
	if (entry->type == TAR_DIRECTORY)
		return make_directory(files, path, err);
	int result = open_target(files, path, &place, err);
	if (result == 0)
		result = entry->type == TAR_LINK ? put_link(files, &place, entry->target, err) :
		                                   files_write(files, &place, &write, &written, err);
	files_place_close(&place);
	return result;
}

/* What its paths take is given back at once. */
static int put_entry(const struct files *files, const char *base, const char *path, const struct tar_entry *entry,
                     struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct files own = *files;
	struct cordon_error missing;
	own.arena = &arena;
	int result = put_at(&own, path, entry, &missing);
	if (result < 0 && missing.class == CORDON_E_NOT_FOUND)
		result = make_parents(&own, base, path, &missing) < 0 ? -1 : put_at(&own, path, entry, &missing);
	if (result < 0 && err)
		*err = missing;
	arena_free(&arena);
	return result;
}

/* ---- out of an archive ---------------------------------------------------------------------------------------------
 */

struct importing {
	const struct files *files;
	const struct files_place *place;
	const struct files_import *how;
	struct json *json;
	size_t left_out, files_written, directories, links;
};

/* 1: it is left out, and named. */
static int leave_out(struct importing *importing, const char *path, const char *why, struct cordon_error *err)
{
	if (!importing->how->skip) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "this entry of the archive %s; nothing was written",
		     why);
		fail_boundary(err, "filesystem");
		return fail_remedy(
			err,
			"leave it out of the archive, or import with skip, which leaves out what may not be written");
	}
	if (importing->left_out++ < FILES_LIST_MAX) {
		json_object_begin(importing->json);
		json_key_bytes(importing->json, "path", path, strlen(path));
		json_key_string(importing->json, "why", why);
		json_object_end(importing->json);
	}
	return 1;
}

/* Without "./" and slashes in a row or at the end. NULL: it is no path beneath. "" is the directory itself. */
static const char *clean_path(const char *path, char ret_clean[PATH_MAX])
{
	size_t length = 0;
	if (*path == '/' || strlen(path) >= PATH_MAX)
		return NULL;
	for (; *path; path += strspn(path, "/")) {
		size_t each = strcspn(path, "/");
		if (each > NAME_MAX || (each == 2 && !memcmp(path, "..", 2)))
			return NULL;
		if (!(each == 1 && *path == '.')) {
			if (length)
				ret_clean[length++] = '/';
			memcpy(ret_clean + length, path, each);
			length += each;
		}
		path += each;
	}
	ret_clean[length] = '\0';
	return ret_clean;
}

/* Does the link at this path lead to what is beneath the directory, whatever lies on its way? Up only at its beginning,
 * and no further than where the archive begins. */
static bool stays_inside(const char *path, const char *target)
{
	size_t up = 0, depth = 0;
	bool is_down = false;
	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	if (!*target || *target == '/')
		return false;
	for (; *target; target += strspn(target, "/")) {
		size_t each = strcspn(target, "/");
		bool is_up = each == 2 && !memcmp(target, "..", 2);
		if (is_up && (is_down || ++up > depth))
			return false;
		is_down |= !is_up && !(each == 1 && *target == '.');
		target += each;
	}
	return true;
}

static size_t depth_of(const char *path)
{
	size_t depth = 1;
	for (; (path = strchr(path, '/')); path++)
		depth++;
	return depth;
}

/* What its path and its kind tell. NULL: nothing against it. */
static const char *judge_entry(const struct importing *importing, const struct tar_entry *entry, const char *clean,
                               const char *absolute)
{
	if (!clean)
		return "has a path that is absolute, leads out by .., or is too long";
	if (entry->type == TAR_OTHER)
		return !strcmp(entry->what, "a hard link") ? "is a hard link, of which none are made" :
		       !strcmp(entry->what, "a device")    ? "is a device, of which none are made" :
		       !strcmp(entry->what, "a FIFO")      ? "is a FIFO, of which none are made" :
		                                             "is of a kind that is not known";
	if (depth_of(clean) > FILES_DEPTH_MAX || strlen(importing->place->path) + strlen(clean) + 2 > PATH_MAX)
		return "lies too deep";
	if (entry->type == TAR_LINK && !stays_inside(clean, entry->target))
		return "is a link that leads out of the archive";
	if (entry->type == TAR_LINK && *clean && files_leads_to_protected(importing->files, absolute))
		return "is " LEADS_TO_PROTECTED;
	return *clean ? files_refused_name(importing->files, importing->place->root, absolute,
	                                   entry->type == TAR_DIRECTORY)
	              : NULL;
}

/* 0: it is to be written to `absolute`; 1: it is not; -1: refused. */
static int look_at(struct importing *importing, const struct tar_entry *entry, bool again, char absolute[2 * PATH_MAX],
                   struct cordon_error *err)
{
	char buffer[PATH_MAX];
	const char *clean = clean_path(entry->path, buffer);
	const char *base = strcmp(importing->place->path, "/") ? importing->place->path : "";
	snprintf(absolute, 2 * PATH_MAX, "%s/%s", base, clean ? clean : "");
	const char *why = judge_entry(importing, entry, clean, absolute);
	if (why)
		return again ? 1 : leave_out(importing, entry->path, why, err);
	return !*clean;
}

static int fail_archive(const struct importing *importing, const char *why, struct cordon_error *err)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, importing->place->given,
	     "the archive cannot be read: %s; nothing was written", why);
	fail_boundary(err, "request");
	return fail_remedy(err, "give a whole tar archive, not compressed");
}

static int judge_all(struct importing *importing, struct cordon_error *err)
{
	struct tar_entry entry;
	const char *why;
	char absolute[2 * PATH_MAX];
	auto_free struct tar_reader *reader = malloc(sizeof(*reader));
	size_t count = 0;
	int more;
	if (!reader)
		return fail_oom(err);
	reader->at = importing->how->data;
	reader->end = reader->at + importing->how->length;
	while ((more = tar_next(reader, &entry, &why)) > 0) {
		if (++count > FILES_IMPORT_MAX)
			return fail_archive(importing, "it has more than 100000 entries", err);
		if (look_at(importing, &entry, false, absolute, err) < 0)
			return -1;
	}
	return more < 0 ? fail_archive(importing, why, err) : 0;
}

static int write_all(struct importing *importing, struct cordon_error *err)
{
	struct tar_entry entry;
	const char *why;
	char absolute[2 * PATH_MAX];
	auto_free struct tar_reader *reader = malloc(sizeof(*reader));
	if (!reader)
		return fail_oom(err);
	reader->at = importing->how->data;
	reader->end = reader->at + importing->how->length;
	while (tar_next(reader, &entry, &why) > 0) {
		int looked = look_at(importing, &entry, true, absolute, err);
		if (looked)
			continue;
		if (put_entry(importing->files, importing->place->path, absolute, &entry, err) < 0)
			return -1;
		importing->files_written += entry.type == TAR_FILE;
		importing->directories += entry.type == TAR_DIRECTORY;
		importing->links += entry.type == TAR_LINK;
	}
	return 0;
}

int files_import(const struct files *files, const struct files_place *place, const struct files_import *import,
                 struct json *json, struct cordon_error *err)
{
	struct importing importing = { .files = files, .place = place, .how = import, .json = json };
	if (files_require_directory(place, err) < 0)
		return -1;
	json_key_bytes(json, "path", place->path, strlen(place->path));
	json_key(json, "left_out");
	json_array_begin(json);
	int result = judge_all(&importing, err);
	json_array_end(json);
	if (result == 0 && write_all(&importing, err) < 0) {
		size_t written = importing.files_written + importing.directories + importing.links;
		if (written && err)
			fail_remedy(err, "%zu entries of the archive were written before; %s", written,
			            *err->remediation ? err->remediation : "import it again");
		result = -1;
	}
	auto_close int fd = files_reopen(place->fd, O_RDONLY | O_DIRECTORY);
	if (fd >= 0)
		(void)!syncfs(fd);
	json_key_uint(json, "files", importing.files_written);
	json_key_uint(json, "directories", importing.directories);
	json_key_uint(json, "links", importing.links);
	json_key_uint(json, "left_out_count", importing.left_out);
	return result;
}

/* ---- into an archive -----------------------------------------------------------------------------------------------
 */

struct exporting {
	const struct files *files;
	const struct files_place *place;
	struct tar_writer writer;
	size_t count, others;
};

static int fail_large(const struct exporting *exporting, struct cordon_error *err)
{
	if (exporting->writer.length < exporting->writer.most)
		return fail_oom(err);
	fail(err, CORDON_E_LIMIT_EXCEEDED, 0, exporting->place->given, "the archive would be larger than %u bytes",
	     FILES_SEND_MAX);
	fail_boundary(err, "limits");
	return fail_remedy(err, "export the directories in it one by one");
}

static int export_file(struct exporting *exporting, const struct files_entry *entry, struct tar_entry *told,
                       struct cordon_error *err)
{
	struct files_content content;
	struct files_place place = {
		.root = exporting->place->root, .given = entry->path, .path = entry->absolute, .parent_fd = -1
	};
	auto_close int fd = openat(entry->directory_fd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	/* Gone meanwhile, or something else. */
	if (fd < 0 || fstat(fd, &place.info) < 0 || !S_ISREG(place.info.st_mode))
		return 0;
	place.fd = fd;
	if (files_send(&place, exporting->files->screen, &content, err) < 0)
		return -1;
	told->data = content.data;
	told->length = content.length;
	exporting->count++;
	bool added = tar_add(&exporting->writer, told);
	free(content.data);
	return added ? 0 : fail_large(exporting, err);
}

static int export_entry(void *arg, const struct files_entry *entry, struct cordon_error *err)
{
	struct exporting *exporting = arg;
	char target[PATH_MAX] = "";
	mode_t mode = entry->info.st_mode;
	struct tar_entry told = {
		.path = entry->path, .target = target, .mode = mode & 0777, .modified = entry->info.st_mtim.tv_sec
	};
	if (S_ISREG(mode))
		return export_file(exporting, entry, &told, err);
	told.type = S_ISDIR(mode) ? TAR_DIRECTORY : TAR_LINK;
	ssize_t length = S_ISLNK(mode) ? readlinkat(entry->directory_fd, entry->name, target, sizeof(target) - 1) : 0;
	if ((!S_ISDIR(mode) && !S_ISLNK(mode)) || length < 0) {
		exporting->others++;
		return 0;
	}
	target[length] = '\0';
	exporting->count++;
	return tar_add(&exporting->writer, &told) ? 0 : fail_large(exporting, err);
}

int files_export(const struct files *files, const struct files_place *place, bool all, struct json *json,
                 struct files_content *ret_content, struct cordon_error *err)
{
	struct exporting exporting = { .files = files, .place = place, .writer = { .most = FILES_SEND_MAX } };
	struct files_walked walked;
	const struct files_walk walk = { .ignore = !all, .visit = export_entry, .arg = &exporting };
	int result = files_walk(files, place, &walk, &walked, err);
	if (result == 0 && !tar_finish(&exporting.writer))
		result = fail_large(&exporting, err);
	if (result < 0) {
		free(exporting.writer.data);
		return -1;
	}
	json_key_bytes(json, "path", place->path, strlen(place->path));
	json_key_string(json, "type", "application/x-tar");
	json_key_uint(json, "size", exporting.writer.length);
	json_key_uint(json, "entries", exporting.count);
	json_key_uint(json, "others_left_out", exporting.others);
	files_walked_write(json, &walked);
	*ret_content = (struct files_content){ .data = exporting.writer.data, .length = exporting.writer.length };
	return 0;
}

/* ---- as a copy -----------------------------------------------------------------------------------------------------
 */

struct copying {
	const struct files *files;
	const struct files_place *from, *to;
	size_t count;
};

static int copy_file(const struct files_place *from, struct tar_entry *entry, char **ret_data, struct cordon_error *err)
{
	size_t length;
	if (files_require_regular(from, err) < 0 || files_load(from, FILES_WRITE_MAX, ret_data, &length, err) < 0)
		return -1;
	entry->type = TAR_FILE;
	entry->data = *ret_data;
	entry->length = length;
	entry->mode = from->info.st_mode & 0777;
	return 0;
}

static int copy_entry(void *arg, const struct files_entry *entry, struct cordon_error *err)
{
	struct copying *copying = arg;
	struct files_place from = {
		.root = copying->from->root, .given = entry->path, .path = entry->absolute, .parent_fd = -1
	};
	struct tar_entry told = { .type = S_ISDIR(entry->info.st_mode) ? TAR_DIRECTORY : TAR_LINK };
	char path[PATH_MAX], target[PATH_MAX] = "";
	auto_free char *data = NULL;
	auto_close int fd = openat(entry->directory_fd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (snprintf(path, sizeof(path), "%s/%s", copying->to->path, entry->path) >= (int)sizeof(path))
		return files_fail(err, ENAMETOOLONG, entry->path, "cannot copy this");
	if (fd < 0 || fstat(fd, &from.info) < 0)
		return 0;
	from.fd = fd;
	ssize_t length = S_ISLNK(from.info.st_mode) ? readlinkat(fd, "", target, sizeof(target) - 1) : 0;
	target[length < 0 ? 0 : length] = '\0';
	told.target = target;
	if (!S_ISDIR(from.info.st_mode) && !S_ISLNK(from.info.st_mode) && copy_file(&from, &told, &data, err) < 0)
		return -1;
	copying->count++;
	return put_entry(copying->files, copying->to->path, path, &told, err);
}

static int copy_tree(struct copying *copying, struct cordon_error *err)
{
	struct files_walked walked;
	const struct files_walk walk = { .visit = copy_entry, .arg = copying };
	const struct files_place *from = copying->from, *to = copying->to;
	if (to->fd >= 0)
		return files_fail(err, EEXIST, to->given, "cannot copy to this");
	if (path_within(to->path, from->path)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, to->given, "a directory cannot be copied into itself");
		return fail_boundary(err, "request");
	}
	if (files_refuse_kept(copying->files, from, to->path, err) < 0 ||
	    make_directory(copying->files, to->path, err) < 0)
		return -1;
	return files_walk(copying->files, from, &walk, &walked, err);
}

int files_copy(const struct files *files, const struct files_place *from, const struct files_place *to, bool recursive,
               bool replace, struct json *json, struct cordon_error *err)
{
	struct copying copying = { .files = files, .from = from, .to = to };
	struct files_written written;
	struct tar_entry entry;
	auto_free char *data = NULL;
	int result;
	if (S_ISDIR(from->info.st_mode) && recursive) {
		result = copy_tree(&copying, err);
	} else if (to->fd >= 0 && !replace) {
		result = files_fail(err, EEXIST, to->given, "cannot copy to this");
	} else if ((result = copy_file(from, &entry, &data, err)) == 0) {
		const struct files_write write = { .data = entry.data,
			                           .length = entry.length,
			                           .executable = entry.mode & 0100 };
		result = files_write(files, to, &write, &written, err);
	}
	json_key_uint(json, "copied", copying.count + 1);
	return result;
}
