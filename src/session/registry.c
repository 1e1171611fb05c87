/* Sessions on disk: see registry.h, and registry-file.c for what keeps them whole. */
#include "session/registry.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "base/text.h"
#include "base/utc.h"
#include "base/utf8.h"
#include "policy/capability-json.h"
#include "session/registry-file.h"
#include "session/workspace.h"

int registry_check_id(const char *id, struct cordon_error *err)
{
	size_t length = strlen(id);
	const char *wrong = NULL;
	if (!length)
		wrong = "must not be empty";
	else if (length > SESSION_ID_MAX)
		wrong = "is longer than 64 KiB";
	else if (!utf8_valid(id, length))
		wrong = "is not UTF-8";
	else if (text_has_control(id))
		wrong = "must not have a control character in it";
	/* U+0080 to U+009F, which some terminals obey, too */
	for (const char *at = id; !wrong && (at = strchr(at, 0xc2)); at++)
		if ((unsigned char)at[1] < 0xa0)
			wrong = "must not have a control character in it";
	if (!wrong)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, id, "session: the id %s", wrong);
	return fail_boundary(err, "session");
}

int registry_missing(const char *id, struct cordon_error *err)
{
	fail(err, CORDON_E_NOT_FOUND, 0, id, "there is no such session");
	fail_remedy(err, "see cordon session list");
	return fail_boundary(err, "session");
}

static int find(const char *data_dir, const char *id, struct where *where, struct cordon_error *err)
{
	return registry_check_id(id, err) < 0 ? -1 : where_find(data_dir, id, where, err);
}

/* ---- reading and making ------------------------------------------------------------------------------------------ */

static int read_record(struct where *where, struct arena *arena, const char *data_dir, const char *id,
                       struct session_record *ret_record, bool *ret_found, struct cordon_error *err)
{
	auto_close int directory = -1;
	bool found = false;
	if (find(data_dir, id, where, err) < 0 || where_open(where, false, &directory, err) < 0 ||
	    (directory >= 0 && where_read(arena, where, directory, ret_record, &found, err) < 0))
		return -1;
	*ret_found = found;
	return 0;
}

int registry_read(struct arena *arena, const char *data_dir, const char *id, struct session_record *ret_record,
                  bool *ret_found, struct cordon_error *err)
{
	return read_record(&(struct where){ 0 }, arena, data_dir, id, ret_record, ret_found, err);
}

int registry_read_any(struct arena *arena, const char *data_dir, const char *id, struct session_record *ret_record,
                      bool *ret_found, struct cordon_error *err)
{
	return read_record(&(struct where){ .takes_newer = true }, arena, data_dir, id, ret_record, ret_found, err);
}

int64_t registry_used_s(const char *data_dir, const char *id)
{
	static const char *const names[] = { REGISTRY_USE, REGISTRY_RECORD };
	struct where where = { 0 };
	struct stat info;
	char path[PATH_MAX + 16];
	int64_t latest = 0;
	if (where_find(data_dir, id, &where, NULL) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", where.path, names[i]);
		if (lstat(path, &info) == 0 && info.st_mtim.tv_sec > latest)
			latest = info.st_mtim.tv_sec;
	}
	return latest;
}

enum session_state registry_look(const char *data_dir, const char *id, struct session_look *look)
{
	struct where where = { 0 };
	struct session_record record;
	struct arena arena = { 0 };
	struct stat info = { 0 };
	char path[PATH_MAX + 32];
	bool found = false;
	if (where_find(data_dir, id, &where, NULL) < 0)
		return look->state;
	snprintf(path, sizeof(path), "%s/" REGISTRY_RECORD, where.path);
	bool there = lstat(path, &info) == 0;
	if (there && look->known && look->inode == info.st_ino && look->size == (uint64_t)info.st_size &&
	    look->changed_s == info.st_ctim.tv_sec && look->changed_ns == info.st_ctim.tv_nsec)
		return look->state;
	if (registry_read(&arena, data_dir, id, &record, &found, NULL) == 0)
		*look = (struct session_look){ .known = there,
			                       .state = found ? record.state : SESSION_ENDED,
			                       .idle_expiry_s = found ? record.idle_expiry_s : 0,
			                       .inode = info.st_ino,
			                       .size = (uint64_t)info.st_size,
			                       .changed_s = info.st_ctim.tv_sec,
			                       .changed_ns = info.st_ctim.tv_nsec };
	arena_free(&arena);
	return look->state;
}

/* Is it what `first` asks for? Whatever that leaves out is not asked for. */
static int check_agrees(const struct session_record *record, const struct session_record *first,
                        struct cordon_error *err)
{
	const char *other = NULL;
	if (first && first->workspace && (!record->workspace || strcmp(record->workspace, first->workspace)))
		other = "another workspace";
	else if (first && first->has_baseline &&
	         (!record->has_baseline || !capability_same(&record->baseline, &first->baseline)))
		other = "other capabilities";
	if (!other)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, record->id, "the session exists already, with %s", other);
	fail_remedy(err, "use it as it is, or another id");
	return fail_boundary(err, "session");
}

static int make_record(struct arena *arena, const struct where *where, int directory,
                       const struct session_record *first, registry_change_fn making, void *arg,
                       struct cordon_error *err)
{
	char created[UTC_SIZE];
	struct session_record record = { .id = where->id, .created = created, .changed = created };
	bool found;
	utc_now(created);
	if (first) {
		record.workspace = first->workspace;
		record.own_root = first->own_root;
		record.idle_expiry_s = first->idle_expiry_s;
		record.has_baseline = first->has_baseline;
		record.baseline = first->baseline;
	}
	/* What lies there is of a session that was removed by a process that died before it was done. */
	if (where_clear(where, directory, &found, err) < 0 || (making && making(arena, &record, arg, err) < 0))
		return -1;
	return where_write(where, directory, &record, err);
}

int registry_make(struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                  registry_change_fn making, void *arg, struct session_record *ret_record, bool *ret_made,
                  struct cordon_error *err)
{
	struct where where = { 0 };
	struct session_record record;
	auto_close int directory = -1;
	auto_unlock int lock = -1;
	bool found = false, made = false;
	if (registry_read(arena, data_dir, id, &record, &found, err) < 0)
		return -1;
	if (!found) {
		if (find(data_dir, id, &where, err) < 0 ||
		    where_lock(&where, REGISTRY_LOCK, LOCK_EX, true, &directory, &lock, err) < 0 ||
		    where_read(arena, &where, directory, &record, &found, err) < 0)
			return -1;
		made = !found;
		if (made && (make_record(arena, &where, directory, first, making, arg, err) < 0 ||
		             where_read(arena, &where, directory, &record, &found, err) < 0))
			return -1;
	}
	if (check_agrees(&record, first, err) < 0)
		return -1;
	*ret_record = record;
	*ret_made = made;
	return 0;
}

int registry_check_new(const char *id, bool of_agent, struct cordon_error *err)
{
	if (of_agent || strncmp(id, CORDON_AGENT_PREFIX, strlen(CORDON_AGENT_PREFIX)) != 0)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, id,
	     "there is no such session, and ids that begin with " CORDON_AGENT_PREFIX
	     " are of sessions that agents' commands make");
	return fail_remedy(err, "use another id");
}

int registry_open(struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                  struct session_record *ret_record, bool *ret_made, struct cordon_error *err)
{
	return registry_make(arena, data_dir, id, first, NULL, NULL, ret_record, ret_made, err);
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

static int change_record(struct where *where, struct arena *arena, const char *data_dir, const char *id,
                         registry_change_fn change, void *arg, struct session_record *ret_record,
                         struct cordon_error *err)
{
	struct session_record record;
	auto_close int directory = -1;
	auto_unlock int lock = -1;
	bool found = false;
	if (find(data_dir, id, where, err) < 0 ||
	    where_lock(where, REGISTRY_LOCK, LOCK_EX, false, &directory, &lock, err) < 0 ||
	    (directory >= 0 && where_read(arena, where, directory, &record, &found, err) < 0))
		return -1;
	if (!found)
		return registry_missing(id, err);
	char *changed = arena_alloc(arena, UTC_SIZE);
	if (!changed)
		return fail_oom(err);
	int kept = change(arena, &record, arg, err);
	if (kept < 0)
		return -1;
	if (kept == 0) {
		utc_now(changed);
		record.changed = changed;
		if (where_write(where, directory, &record, err) < 0)
			return -1;
	}
	if (ret_record)
		*ret_record = record;
	return 0;
}

int registry_change(struct arena *arena, const char *data_dir, const char *id, registry_change_fn change, void *arg,
                    struct session_record *ret_record, struct cordon_error *err)
{
	return change_record(&(struct where){ 0 }, arena, data_dir, id, change, arg, ret_record, err);
}

int registry_change_any(struct arena *arena, const char *data_dir, const char *id, registry_change_fn change, void *arg,
                        struct session_record *ret_record, struct cordon_error *err)
{
	return change_record(&(struct where){ .takes_newer = true }, arena, data_dir, id, change, arg, ret_record, err);
}

int registry_remove(const char *data_dir, const char *id, struct cordon_error *err)
{
	struct where where = { 0 };
	auto_close int directory = -1;
	auto_unlock int lock = -1;
	bool found = false;
	if (find(data_dir, id, &where, err) < 0 ||
	    where_lock(&where, REGISTRY_LOCK, LOCK_EX, false, &directory, &lock, err) < 0 ||
	    (directory >= 0 && where_clear(&where, directory, &found, err) < 0))
		return -1;
	if (directory >= 0)
		where_remove(&where, directory);
	return found ? 0 : registry_missing(id, err);
}

/* ---- using ------------------------------------------------------------------------------------------------------- */

int registry_use(struct arena *arena, const char *data_dir, const char *id, const struct session_record *first,
                 int *ret_lock_fd, struct session_record *ret_record, bool *ret_found, struct cordon_error *err)
{
	struct where where = { 0 };
	struct session_record record;
	auto_close int directory = -1;
	auto_unlock int lock = -1;
	bool found = false;
	/* What the lock was found in cannot be removed any more: the record is that of this session or of none. */
	if (find(data_dir, id, &where, err) < 0 ||
	    where_lock(&where, REGISTRY_USE, LOCK_SH, true, &directory, &lock, err) < 0 ||
	    where_read(arena, &where, directory, &record, &found, err) < 0 ||
	    (found && check_agrees(&record, first, err) < 0))
		return -1;
	if (found)
		*ret_record = record;
	*ret_found = found;
	*ret_lock_fd = take_fd(&lock);
	return 0;
}

int registry_exclude(const char *data_dir, const char *id, int *ret_lock_fd, struct cordon_error *err)
{
	struct where where = { 0 };
	auto_close int directory = -1;
	if (find(data_dir, id, &where, err) < 0 ||
	    where_lock(&where, REGISTRY_USE, LOCK_EX, false, &directory, ret_lock_fd, err) < 0)
		return -1;
	return directory < 0 ? registry_missing(id, err) : 0;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

/* 1 where there is a record, 0 where there is none, -1 where it is damaged. */
static int read_listed(struct arena *arena, const char *data_dir, const char *name, struct session_record *ret_record)
{
	struct where where = { .takes_newer = true };
	auto_close int directory = -1;
	bool found = false;
	if (where_name(data_dir, name, &where, NULL) < 0 || where_open(&where, false, &directory, NULL) < 0 ||
	    (directory >= 0 && where_read(arena, &where, directory, ret_record, &found, NULL) < 0))
		return -1;
	return found;
}

/* Else every one of them would look damaged. */
static int check_mine(int directory, const char *path, struct cordon_error *err)
{
	struct stat info;
	if (fstat(directory, &info) < 0 || info.st_uid == geteuid())
		return 0;
	fail(err, CORDON_E_INTERNAL, 0, path, "the sessions belong to another user");
	fail_remedy(err, "list them as that user, or name a data directory of your own by XDG_DATA_HOME");
	return fail_boundary(err, "session");
}

int registry_list(const char *data_dir, registry_each_fn each, void *arg, struct cordon_error *err)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/" REGISTRY_DIRECTORY, data_dir);
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	if (!listing)
		return fail(err, CORDON_E_INTERNAL, errno, path, "the sessions cannot be listed");
	take_fd(&fd);
	if (check_mine(dirfd(listing), path, err) < 0) {
		closedir(listing);
		return -1;
	}
	int stop = 0;
	for (struct dirent *entry; !stop && (entry = readdir(listing));) {
		struct arena arena = { 0 };
		struct session_record record;
		if (strlen(entry->d_name) != WORKSPACE_HASH_LENGTH || entry->d_name[0] == '.')
			continue;
		int found = read_listed(&arena, data_dir, entry->d_name, &record);
		if (found)
			stop = each(arg, found > 0 ? &record : NULL, entry->d_name);
		arena_free(&arena);
	}
	closedir(listing);
	return 0;
}
