/* Workspaces: see workspace.h. */
#include "session/workspace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"

#define DATA_REMEDY "cordon records every command: give it a directory it may write, by XDG_DATA_HOME"

/* Where it is, or will be: links are resolved as far as there is something to resolve. */
static int find_data_dir(struct arena *arena, const char *path, const char **ret_path, struct cordon_error *err)
{
	const char *named = path_normalise(arena, path);
	size_t cut = named ? strlen(named) : 0;
	struct place place;
	struct stat info;
	for (struct cordon_error why;; cut = (size_t)((const char *)memrchr(named, '/', cut) - named)) {
		const char *part = named ? arena_strndup(arena, named, cut ? cut : 1) : NULL;
		if (!part)
			return fail_oom(err);
		/* Twice: another process may be making it just now. */
		if (beneath_resolve(arena, part, &place, NULL, &why) == 0 ||
		    (why.os_errno == ENOENT && beneath_resolve(arena, part, &place, NULL, &why) == 0))
			break;
		if (cut == 0 || why.os_errno != ENOENT || (lstat(part, &info) == 0 && S_ISLNK(info.st_mode))) {
			fail(err, CORDON_E_AUDIT_UNAVAILABLE, why.os_errno, path,
			     "cannot open cordon's data directory");
			return fail_remedy(err, "%s", DATA_REMEDY);
		}
	}
	*ret_path = named[cut] ? arena_printf(arena, "%s%s", cut ? place.path : "", named + cut) : place.path;
	return *ret_path ? 0 : fail_oom(err);
}

int workspace_data_dir(struct arena *arena, const char *named, const char **ret_path, const char **ret_named,
                       struct cordon_error *err)
{
	const char *data_home = getenv("XDG_DATA_HOME"), *home = getenv("HOME"), *path = NULL;
	if (named && *named)
		path = arena_strdup(arena, named);
	else if (data_home && *data_home == '/')
		path = arena_printf(arena, "%s/cordon", data_home);
	else if (home && *home == '/')
		path = arena_printf(arena, "%s/.local/share/cordon", home);
	else
		return fail(err, CORDON_E_AUDIT_UNAVAILABLE, 0, "HOME",
		            "neither XDG_DATA_HOME nor HOME says where cordon's data belongs");
	if (!path)
		return fail_oom(err);
	if (*path != '/')
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "the data directory must be absolute");
	*ret_named = path;
	return find_data_dir(arena, path, ret_path, err);
}

int workspace_make_data_dir(const char *path, struct cordon_error *err)
{
	uncleared char partial[4096];
	size_t length = strlen(path);
	struct stat info;
	bool there = stat(path, &info) == 0;
	if (there && !file_may_hold_data(&info)) {
		fail(err, CORDON_E_AUDIT_UNAVAILABLE, 0, path, "cordon's data directory can be changed by other users");
		return fail_remedy(
			err, "make it your own and not writable for others (chown, chmod o-w), or name another one");
	}
	if (there)
		return 0;
	if (length >= sizeof(partial))
		return fail(err, CORDON_E_AUDIT_UNAVAILABLE, ENAMETOOLONG, path, "cannot make cordon's data directory");
	for (size_t i = 1; i <= length; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(partial, path, i);
		partial[i] = '\0';
		if (mkdir(partial, 0700) == 0 || errno == EEXIST || ((errno == EROFS || errno == EACCES) && i < length))
			continue;
		fail(err, CORDON_E_AUDIT_UNAVAILABLE, errno, partial, "cannot make cordon's data directory");
		return fail_remedy(err, "%s", DATA_REMEDY);
	}
	return 0;
}

/* ---- named ------------------------------------------------------------------------------------------------------ */

/* What they hold is masked wherever it is found; as a workspace it would be laid open. */
static bool is_secret(const char *path)
{
	static const char *const names[] = { ".ssh", ".aws", ".gnupg" };
	for (const char *at = path; at; at = strchr(at, '/')) {
		size_t length = strcspn(++at, "/");
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (length == strlen(names[i]) && !strncasecmp(at, names[i], length))
				return true;
	}
	return false;
}

static const char *refusal(const struct place *place, const struct stat *info, const char *data_dir, const char *home)
{
	const char *path = place->path;
	if (!S_ISDIR(info->st_mode))
		return "a workspace must be a directory";
	if (workspace_is_system(path))
		return "a system directory cannot be a workspace";
	if (home && path_within(home, path))
		return "a home directory itself, or what contains it, cannot be a workspace";
	if (!strncmp(path, "/home/", 6) && !strchr(path + 6, '/'))
		return "a home directory itself cannot be a workspace";
	if (is_secret(path))
		return "a directory of secrets cannot be a workspace";
	if (path_within(data_dir, path) || path_within(path, data_dir))
		return "cordon's own data cannot be in a workspace, nor a workspace in it";
	if (geteuid() != 0 && info->st_uid != geteuid())
		return "the directory belongs to another user";
	return NULL;
}

const char *workspace_home(struct arena *arena, const char *home)
{
	struct place place;
	return home && *home == '/' && beneath_resolve(arena, home, &place, NULL, NULL) == 0 ? place.path : NULL;
}

int workspace_named(struct arena *arena, const char *path, const char *data_dir, const char *home,
                    struct place *ret_place, int *ret_fd, struct cordon_error *err)
{
	auto_close int fd = -1;
	struct place place;
	struct stat info;
	if (beneath_resolve(arena, path, &place, &fd, err) < 0)
		return -1;
	if (fstat(fd, &info) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, path, "cannot look at the workspace");
	const char *why = refusal(&place, &info, data_dir, home);
	if (why) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, place.path, "%s", why);
		return fail_remedy(err, "name a project directory: --workspace DIR, or start cordon inside one");
	}
	*ret_place = place;
	*ret_fd = take_fd(&fd);
	return 0;
}

static bool is_among(struct arena *arena, const char *path, const char *root)
{
	struct place place;
	if (root && beneath_resolve(arena, root, &place, NULL, NULL) == 0)
		root = place.path;
	return root && (path_within(path, root) || path_within(root, path));
}

int workspace_refuse_among(struct arena *arena, const char *path, const char *root, struct cordon_error *err)
{
	if (!is_among(arena, path, root))
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "the workspaces of other sessions cannot be granted");
	return fail_boundary(err, "filesystem");
}

/* ---- by session ------------------------------------------------------------------------------------------------- */

int workspace_hash_to(const char *session_id, char ret_hash[WORKSPACE_HASH_LENGTH + 1])
{
	struct json json;
	unsigned char hash[crypto_hash_sha256_BYTES];
	json_init(&json);
	json_text(&json, session_id);
	auto_free char *text = json_take(&json);
	if (!text)
		return -1;
	sha256(hash, text, strlen(text));
	for (int i = 0; i < WORKSPACE_HASH_LENGTH / 2; i++) {
		ret_hash[2 * i] = "0123456789abcdef"[hash[i] >> 4];
		ret_hash[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
	}
	ret_hash[WORKSPACE_HASH_LENGTH] = '\0';
	return 0;
}

char *workspace_hash(struct arena *arena, const char *session_id)
{
	char *hash = arena_alloc(arena, WORKSPACE_HASH_LENGTH + 1);
	return hash && workspace_hash_to(session_id, hash) == 0 ? hash : NULL;
}

int workspace_of_session(struct arena *arena, const char *session_id, const char *parent, bool make,
                         struct place *ret_place, int *ret_fd, struct cordon_error *err)
{
	const char *hash = workspace_hash(arena, session_id);
	const char *path = hash && parent ? arena_printf(arena, "%s/%s", parent, hash) : NULL;
	if (!path)
		return fail_oom(err);
	const int flags = O_PATH | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY;
	auto_close int fd = open(path, flags);
	if (fd < 0 && errno == ENOENT && make) {
		if ((mkdir(parent, 0700) < 0 && errno != EEXIST) || (mkdir(path, 0700) < 0 && errno != EEXIST))
			return fail(err, CORDON_E_INTERNAL, errno, path, "cannot make the session's directory");
		fd = open(path, flags);
	}
	struct stat info = { 0 };
	if (fd < 0 && (make || errno != ENOENT))
		return fail(err, CORDON_E_CAPABILITY_DENIED, errno, path,
		            "the session's directory is not what cordon made");
	if (fd >= 0 && (fstat(fd, &info) < 0 || info.st_uid != geteuid()))
		return fail(err, CORDON_E_CAPABILITY_DENIED, 0, path,
		            "the session's directory belongs to another user");
	*ret_place = (struct place){ .path = path, .device = info.st_dev, .inode = info.st_ino, .is_directory = true };
	*ret_fd = take_fd(&fd);
	return 0;
}
