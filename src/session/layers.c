/* Layers on disk: see layers.h. */
#include "session/layers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/layer-slot.h"
#include "base/lock.h"
#include "base/remove.h"
#include "session/workspace.h"

#define OWNER_MAX 8192
#define WORD_SESSION "session "
#define WORD_WORKSPACE "workspace "

const char *layers_parent(struct arena *arena, const char *data_dir)
{
	return arena_printf(arena, "%s/layers", data_dir);
}

/* As it is written down, and hashed: a session may be called what a workspace is. */
static const char *owner_text(struct arena *arena, const struct layers_owner *owner)
{
	return arena_printf(arena, "%s%s", owner->of_workspace ? WORD_WORKSPACE : WORD_SESSION, owner->name);
}

/* A session's by its id alone, as all that it has on disk; no id has a control character. */
static const char *hashed(struct arena *arena, const struct layers_owner *owner)
{
	return owner->of_workspace ? arena_printf(arena, "\001%s", owner->name) : owner->name;
}

static int write_owner(int fd, const char *text)
{
	auto_close int file = openat(fd, LAYER_OWNER, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return errno == EEXIST ? 0 : -1;
	return write(file, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

int layers_open(struct arena *arena, const char *data_dir, const struct layers_owner *owner, const char **ret_path,
                int *ret_fd, struct cordon_error *err)
{
	struct place place;
	auto_close int fd = -1;
	const char *parent = layers_parent(arena, data_dir), *text = owner_text(arena, owner),
		   *hash = hashed(arena, owner);
	if (!parent || !text || !hash)
		return fail_oom(err);
	if (workspace_of_session(arena, hash, parent, true, &place, &fd, err) < 0)
		return -1;
	if (write_owner(fd, text) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, place.path,
		            "cannot write to the directory of the caches' layers");
	*ret_path = place.path;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/* As well as can be told while commands write to it. Takes `fd`. */
static uint64_t count_bytes(int fd, unsigned depth)
{
	uint64_t bytes = 0;
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	if (!listing) {
		cleanup_close(&fd);
		return 0;
	}
	for (struct dirent *entry; (entry = readdir(listing));) {
		struct stat info;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (uint64_t)info.st_blocks * 512;
		if (S_ISDIR(info.st_mode) && depth)
			bytes += count_bytes(openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			                     depth - 1);
	}
	closedir(listing);
	return bytes;
}

static int open_lock(int fd, unsigned slot)
{
	char name[32];
	snprintf(name, sizeof(name), LAYER_LOCK, slot);
	return openat(fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_slot_in_use(int fd, unsigned slot)
{
	auto_unlock int lock = open_lock(fd, slot);
	return lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0;
}

static bool read_owner(struct arena *arena, int fd, struct layers_owner *ret)
{
	char text[OWNER_MAX];
	auto_close int file = openat(fd, LAYER_OWNER, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	if (length <= 0)
		return false;
	text[length] = '\0';
	ret->of_workspace = !strncmp(text, WORD_WORKSPACE, strlen(WORD_WORKSPACE));
	ret->name = arena_strdup(arena, strchr(text, ' ') ? strchr(text, ' ') + 1 : text);
	return ret->name;
}

struct visit {
	struct arena *arena;
	const char *parent;
	int (*look)(struct visit *visit, int fd, const char *path);     /* of one directory of layers; negative ends
	                                                                   it */
	int (*tell)(void *arg, const struct layers_kept *kept);
	void *arg;
	const struct layers_owner *owner;
	struct layers_cleared cleared;
};

static int each_directory(struct visit *visit, struct cordon_error *err)
{
	int result = 0;
	DIR *listing = visit->parent ? opendir(visit->parent) : NULL;
	if (!visit->parent)
		return fail_oom(err);
	if (!listing)
		return errno == ENOENT ? 0 : fail(err, CORDON_E_INTERNAL, errno, visit->parent, "cannot be listed");
	for (struct dirent *entry; result >= 0 && (entry = readdir(listing));) {
		if (strlen(entry->d_name) != WORKSPACE_HASH_LENGTH)
			continue;
		auto_close int fd =
			openat(dirfd(listing), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		const char *path = arena_printf(visit->arena, "%s/%s", visit->parent, entry->d_name);
		if (!path)
			result = fail_oom(err);
		else if (fd >= 0)
			result = visit->look(visit, fd, path);
	}
	closedir(listing);
	return result;
}

#define DEPTH_MAX 64

static int tell_one(struct visit *visit, int fd, const char *path)
{
	struct layers_kept kept = { .path = path };
	if (!read_owner(visit->arena, fd, &kept.owner))
		return 0;
	kept.bytes = count_bytes(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), DEPTH_MAX);
	for (unsigned slot = 0; slot < LAYER_SLOTS; slot++)
		kept.in_use |= is_slot_in_use(fd, slot);
	return visit->tell(visit->arg, &kept);
}

int layers_each(struct arena *arena, const char *data_dir, int (*tell)(void *arg, const struct layers_kept *kept),
                void *arg, struct cordon_error *err)
{
	struct visit visit = {
		.arena = arena, .parent = layers_parent(arena, data_dir), .look = tell_one, .tell = tell, .arg = arg
	};
	return each_directory(&visit, err);
}

/* ---- clearing --------------------------------------------------------------------------------------------------- */

/* A process that begins to use it meanwhile waits for the lock, or has another. */
static void clear_slot(int fd, unsigned slot, struct layers_cleared *cleared)
{
	char name[32];
	struct stat info;
	snprintf(name, sizeof(name), LAYER_SLOT, slot);
	if (fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	auto_unlock int lock = open_lock(fd, slot);
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && remove_tree(fd, name) == 0)
		cleared->removed++;
	else
		cleared->in_use++;
}

static int clear_one(struct visit *visit, int fd, const char *path)
{
	struct layers_owner owner;
	(void)path;
	const struct layers_owner *wanted = visit->owner;
	bool known = read_owner(visit->arena, fd, &owner);
	if (wanted && (!known || owner.of_workspace != wanted->of_workspace || strcmp(owner.name, wanted->name)))
		return 0;
	for (unsigned slot = 0; slot < LAYER_SLOTS; slot++)
		clear_slot(fd, slot, &visit->cleared);
	return 0;
}

int layers_clear(struct arena *arena, const char *data_dir, const struct layers_owner *owner,
                 struct layers_cleared *ret, struct cordon_error *err)
{
	struct visit visit = {
		.arena = arena, .parent = layers_parent(arena, data_dir), .look = clear_one, .owner = owner
	};
	if (each_directory(&visit, err) < 0)
		return -1;
	*ret = visit.cleared;
	return 0;
}
