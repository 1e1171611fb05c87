/* Skeletons: see skeleton.h. A skeleton is named by a hash of everything in it, so it never changes: a new host file,
 * a new grant or another user is another skeleton. It is made under another name and renamed when complete. One that
 * was not used for a month is removed when a new one is made; commands do not last that long. Where there are
 * SKELETONS_MAX nevertheless, no other is made: one that was used since may be the root of a sandbox that is up. */
#include "driver/linux/skeleton.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium/crypto_generichash.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/remove.h"
#include "driver/linux/launch.h"

#define COPY_MAX (256 * 1024)
#define UNUSED_SECONDS (30 * 24 * 3600)
#define ABANDONED_SECONDS 600           /* one that was never completed */
#define TOUCH_SECONDS (24 * 3600)
#define NAME_LENGTH 32
#define SKELETONS_MAX 256               /* each is some hundred files */

/* A small file of the base view is copied; `size` is its stamp. */
static bool is_copy(const struct mount_op *op)
{
	return op->kind == MOUNT_BIND && (op->flags & MOUNT_BASE) && op->size;
}

static bool is_fixed(const struct mount_op *op)
{
	return op->kind == MOUNT_DIRECTORY || op->kind == MOUNT_FILE || op->kind == MOUNT_LINK ||
	       op->kind == MOUNT_TEXT || is_copy(op);
}

static void hash_text(crypto_generichash_state *state, const char *text)
{
	if (text)
		crypto_generichash_update(state, (const unsigned char *)text, strlen(text) + 1);
}

static const char *name_of(struct arena *arena, const struct mount_plan *plan, size_t count)
{
	crypto_generichash_state state;
	unsigned char hash[16];
	char *name = arena_alloc(arena, 2 * sizeof(hash) + 1);
	crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	for (size_t i = 0; i < count; i++) {
		const struct mount_op *op = &plan->ops[i];
		if (!is_fixed(op))
			continue;
		crypto_generichash_update(&state, (const unsigned char *)&op->kind, sizeof(op->kind));
		crypto_generichash_update(&state, (const unsigned char *)&op->size, sizeof(op->size));
		hash_text(&state, op->target);
		hash_text(&state, op->source);
	}
	crypto_generichash_final(&state, hash, sizeof(hash));
	for (size_t i = 0; name && i < sizeof(hash); i++)
		sprintf(name + 2 * i, "%02x", hash[i]);
	return name;
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

/* Readable for the user that the command becomes, whatever the caller's umask: that belongs to the whole process, whose
 * other threads must not notice. */
static int make_directory(int root, const char *path)
{
	if (mkdirat(root, path, 0755) < 0)
		return errno == EEXIST ? 0 : -1;
	return fchmodat(root, path, 0755, 0);
}

static int make_file(int root, const char *path)
{
	if (mknodat(root, path, S_IFREG | 0444, 0) < 0)
		return errno == EEXIST ? 0 : -1;
	return fchmodat(root, path, 0444, 0);
}

static int make_parents(int root, const char *path)
{
	char partial[4096];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		if ((size_t)(slash - path) >= sizeof(partial))
			return -1;
		memcpy(partial, path, (size_t)(slash - path));
		partial[slash - path] = '\0';
		if (make_directory(root, partial) < 0)
			return -1;
	}
	return 0;
}

static int write_file(int root, const char *path, const char *bytes, size_t length)
{
	auto_close int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -1;
	return write(fd, bytes, length) == (ssize_t)length ? 0 : -1;
}

static int copy_file(struct arena *arena, int root, const char *path, const char *source)
{
	auto_close int fd = open(source, O_RDONLY | O_CLOEXEC);
	char *bytes = arena_alloc(arena, COPY_MAX);
	ssize_t length = fd < 0 || !bytes ? -1 : read(fd, bytes, COPY_MAX);
	return length < 0 || length == COPY_MAX ? -1 : write_file(root, path, bytes, (size_t)length);
}

static int make_one(struct arena *arena, int root, const struct mount_op *op)
{
	const char *path = op->target + strspn(op->target, "/");
	if (!*path)
		return 0;
	if (make_parents(root, path) < 0)
		return -1;
	switch (op->kind) {
	case MOUNT_DIRECTORY: return make_directory(root, path);
	case MOUNT_FILE: return make_file(root, path);
	case MOUNT_LINK: return symlinkat(op->source, root, path) < 0 && errno != EEXIST ? -1 : 0;
	case MOUNT_TEXT: return write_file(root, path, op->source, strlen(op->source));
	default: unlinkat(root, path, 0); return copy_file(arena, root, path, op->source);
	}
}

static int make_all(struct arena *arena, int root, const struct mount_plan *plan, size_t count)
{
	if (fchmod(root, 0755) < 0 || make_directory(root, "proc") < 0 ||
	    mknodat(root, LAUNCH_MASK_FILE, S_IFREG, 0) < 0 || mkdirat(root, LAUNCH_MASK_DIRECTORY, 0) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (is_fixed(&plan->ops[i]) && make_one(arena, root, &plan->ops[i]) < 0)
			return -1;
	return 0;
}

/* How many are left. */
static unsigned remove_unused(int parent)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	time_t now = time(NULL);
	unsigned left = 0;
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		struct stat info;
		bool complete = strlen(entry->d_name) == NAME_LENGTH;
		if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (now - info.st_mtime > (complete ? UNUSED_SECONDS : ABANDONED_SECONDS))
			remove_tree(fd, entry->d_name);
		else
			left++;
	}
	if (directory)
		closedir(directory);
	return left;
}

static int make_complete(struct arena *arena, int parent, const char *name, const struct mount_plan *plan, size_t count)
{
	char temporary[ID_SIZE];
	if (remove_unused(parent) >= SKELETONS_MAX)
		return -1;
	id_make(temporary);
	int made = mkdirat(parent, temporary, 0755);
	auto_close int root =
		made < 0 ? -1 : openat(parent, temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int result = root < 0 ? -1 : make_all(arena, root, plan, count);
	/* Another process may have been first: then its skeleton is used. */
	if (result < 0 || renameat(parent, temporary, parent, name) < 0)
		remove_tree(parent, temporary);
	return faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* ---- using one -------------------------------------------------------------------------------------------------- */

/* Without a name none is made. */
static int find(struct arena *arena, const char *parent, const char *path, const char *name,
                const struct mount_plan *plan, size_t count)
{
	struct stat info;
	if (lstat(path, &info) == 0) {
		if (time(NULL) - info.st_mtime > TOUCH_SECONDS)
			utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
		return S_ISDIR(info.st_mode) && info.st_uid == geteuid() ? 0 : -1;
	}
	if (!name)
		return -1;
	mkdir(parent, 0700);
	auto_close int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -1 : make_complete(arena, fd, name, plan, count);
}

static int take_rest(struct arena *arena, const struct mount_plan *plan, size_t count, struct mount_plan *ret_rest)
{
	struct mount_plan rest = { .capacity = plan->count };
	rest.ops = arena_alloc(arena, plan->count * sizeof(*rest.ops));
	if (!rest.ops)
		return -1;
	for (size_t i = 0; i < plan->count; i++)
		if (i >= count || !is_fixed(&plan->ops[i]))
			rest.ops[rest.count++] = plan->ops[i];
	*ret_rest = rest;
	return 0;
}

int skeleton_get(struct arena *arena, const char *data_dir, const struct mount_plan *plan,
                 const char **ret_path, struct mount_plan *ret_rest)
{
	size_t count = 0;
	while (count < plan->count && plan->ops[count].kind != MOUNT_LOCK)
		count++;
	/* A view of the whole host has no base of its own. */
	if (count == plan->count || strcmp(plan->ops[count].target, "/"))
		return -1;
	const char *name = name_of(arena, plan, count);
	const char *parent = arena_printf(arena, "%s/roots", data_dir);
	const char *path = name && parent ? arena_printf(arena, "%s/%s", parent, name) : NULL;
	if (!path || find(arena, parent, path, name, plan, count) < 0 || take_rest(arena, plan, count, ret_rest) < 0)
		return -1;
	*ret_path = path;
	return 0;
}
