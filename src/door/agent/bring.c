/* See bring.h. */
#include <jansson.h>

#include "door/agent/bring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "door/agent/inside.h"
#include "door/agent/login.h"

#define FILE_SIZE_MAX (16u << 20)
#define TREE_FILES_MAX 20000
#define TREE_DEPTH_MAX 16
#define LOOK_MS 2000
#define BESIDE ".cordon-%d-%u"

/* One pass over the files. */
struct copying {
	struct bring *bring;
	int home_fd, inside_fd;
	unsigned files, serial;
	bool quiet;                     /* while the agent runs, which may have the terminal */
};

static void say(const struct copying *copying, const char *name, const char *what)
{
	if (!copying->quiet)
		fprintf(copying->bring->remarks, "cordon: ~/%s %s\n", name, what);
}

/* ---- beneath a directory ----------------------------------------------------------------------------------------- */

/* Written beside it and renamed into place. */
static int put(struct copying *copying, int directory, const char *last, const char *text, size_t length, mode_t mode)
{
	char beside[64];
	auto_close int fd = -1;
	snprintf(beside, sizeof(beside), BESIDE, (int)getpid(), ++copying->serial);
	if (file_create(directory, beside, text, length, &fd) < 0)
		return -1;
	if (fchmod(fd, mode) == 0 && fdatasync(fd) == 0 && renameat(directory, beside, directory, last) == 0)
		return 0;
	unlinkat(directory, beside, 0);
	return -1;
}

static bool is_newer(const struct stat *one, const struct stat *other)
{
	return one->st_mtim.tv_sec != other->st_mtim.tv_sec ? one->st_mtim.tv_sec > other->st_mtim.tv_sec :
	       one->st_mtim.tv_nsec > other->st_mtim.tv_nsec;
}

/* Of a regular file that no link leads to. */
static int look(int directory, const char *last, struct stat *ret_info)
{
	if (fstatat(directory, last, ret_info, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISREG(ret_info->st_mode) ? 0 : S_ISLNK(ret_info->st_mode) ? -ELOOP : -EINVAL;
}

static const char *why_not(int number)
{
	return number == ELOOP   ? "is a symbolic link and was not copied"
	       : number == EFBIG ? "is too large and was not copied"
	                         : "could not be copied";
}

/* ---- files and directories --------------------------------------------------------------------------------------- */

/* `name` is the whole of it from the home, `from` the directory that it is in. */
static void copy_file(struct copying *copying, int from, const char *last, const char *name)
{
	struct bring *bring = copying->bring;
	struct stat outside, inside;
	auto_free char *text = NULL;
	size_t length = 0;
	const char *inside_last;
	int number = -look(from, last, &outside);
	if (!number && ++copying->files > TREE_FILES_MAX)
		return;
	auto_close int to = number ? -1 : inside_open_parent(copying->inside_fd, name, true, &inside_last);
	if (to >= 0 && look(to, inside_last, &inside) == 0 && !is_newer(&outside, &inside))
		return;
	number = number ? number : -file_read_any(from, last, FILE_SIZE_MAX, &text, &length);
	if (number == ENODATA)
		number = 0;
	else if (number)
		return say(copying, name, why_not(number));
	const char *path = arena_printf(bring->arena, "%s/%s", bring->home, name), *kept = text ? text : "";
	if (path && bring->without_setup && strlen(kept) == length) {
		kept = bring->without_setup(bring->arg, path, kept);
		if (!kept)
			return;
		length = strlen(kept);
	}
	if (to < 0 || put(copying, to, inside_last, kept, length, 0600 | (outside.st_mode & S_IXUSR)) < 0)
		say(copying, name, why_not(EIO));
}

static void copy_directory(struct copying *copying, int from, const char *last, const char *name, unsigned depth)
{
	int fd = depth > TREE_DEPTH_MAX ? -1 : openat(from, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	struct stat info;
	if (!directory) {
		if (fd >= 0)
			close(fd);
		return say(copying, name, why_not(EIO));
	}
	for (struct dirent *entry; (entry = readdir(directory));) {
		const char *inner = arena_printf(copying->bring->arena, "%s/%s", name, entry->d_name);
		if (!inner || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(info.st_mode))
			copy_directory(copying, fd, entry->d_name, inner, depth + 1);
		else if (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode))
			copy_file(copying, fd, entry->d_name, inner);
	}
	closedir(directory);
}

static void copy_entry(struct copying *copying, const char *name)
{
	const char *last;
	struct stat info;
	auto_close int from = inside_open_parent(copying->home_fd, name, false, &last);
	if (from < 0) {
		if (errno != ENOENT)
			say(copying, name, why_not(errno == ENOTDIR || errno == ELOOP ? ELOOP : EIO));
		return;
	}
	if (fstatat(from, last, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISDIR(info.st_mode))
		copy_directory(copying, from, last, name, 0);
	else
		copy_file(copying, from, last, name);
}

/* ---- members of a file ------------------------------------------------------------------------------------------- */

static json_t *load(int directory, const char *last)
{
	auto_free char *text = NULL;
	size_t length = 0;
	json_t *object = file_read_any(directory, last, FILE_SIZE_MAX, &text, &length) == 0
	                         ? json_loadb(text, length, 0, NULL)
	                         : NULL;
	if (json_is_object(object))
		return object;
	json_decref(object);
	return NULL;
}

/* What else the session has in its own copy stays. */
static void copy_part(struct copying *copying, const struct profile_file *part)
{
	const char *last, *inside_last;
	auto_close int from = inside_open_parent(copying->home_fd, part->name, false, &last);
	json_t *outside = from >= 0 ? load(from, last) : NULL;
	if (!outside)
		return;
	auto_close int to = inside_open_parent(copying->inside_fd, part->name, true, &inside_last);
	json_t *inside = to >= 0 ? load(to, inside_last) : NULL,
	       *whole = inside ? json_deep_copy(inside) : json_object();
	for (size_t i = 0; i < part->members.count; i++)
		if (json_object_get(outside, part->members.items[i]))
			json_object_set(whole, part->members.items[i],
			                json_object_get(outside, part->members.items[i]));
	/* An entry that cordon setup made would call cordon, which is not inside. */
	json_object_del(json_object_get(whole, "mcpServers"), "cordon");
	auto_free char *text = json_equal(inside, whole) ? NULL : json_dumps(whole, JSON_INDENT(2));
	if (text && put(copying, to, inside_last, text, strlen(text), 0600) < 0)
		say(copying, part->name, why_not(EIO));
	json_decref(inside);
	json_decref(whole);
	json_decref(outside);
}

/* ---- the login --------------------------------------------------------------------------------------------------- */

/* Text and time of a file beneath `root`. NULL: there is none, or it is nothing that could be one. */
static char *read_login(int root, const char *name, size_t *ret_length, struct stat *ret_info)
{
	const char *last;
	char *text = NULL;
	auto_close int directory = inside_open_parent(root, name, false, &last);
	if (directory < 0 || look(directory, last, ret_info) < 0 || ret_info->st_nlink > 1 ||
	    file_read_any(directory, last, LOGIN_SIZE_MAX, &text, ret_length) < 0)
		return NULL;
	return text;
}

static bool is_same(const char *one, size_t one_length, const char *other, size_t other_length)
{
	return one && other ? one_length == other_length && !memcmp(one, other, one_length) : !one && !other;
}

static bool put_login(struct copying *copying, int root, const char *name, const char *text, size_t length)
{
	const char *last;
	auto_close int directory = inside_open_parent(root, name, true, &last);
	return directory >= 0 && put(copying, directory, last, text, length, 0600) == 0;
}

/* True: it was copied back. */
static bool write_back(struct copying *copying, const struct profile_file *login, const char *before,
                       size_t before_length, const char *after, size_t after_length)
{
	if (!login->members.count)
		return false;
	if (!login_is_renewed(&login->members, before, before_length, after, after_length)) {
		say(copying, login->name,
		    "was changed inside to what is not only a renewed login, and was not copied back");
		return false;
	}
	if (put_login(copying, copying->home_fd, login->name, after, after_length))
		return true;
	say(copying, login->name, "was renewed inside and could not be copied back");
	return false;
}

/* A copy that is newer than the login was renewed in a start that did not come to its end. */
static void give_login(struct copying *copying, size_t number)
{
	const struct profile_file *login = &copying->bring->profile->logins[number];
	struct stat outside, inside;
	size_t length = 0, inside_length = 0;
	auto_free char *text = read_login(copying->home_fd, login->name, &length, &outside);
	auto_free char *renewed = read_login(copying->inside_fd, login->name, &inside_length, &inside);
	bool same = is_same(text, length, renewed, inside_length);
	if (!same && renewed && (!text || is_newer(&inside, &outside)) &&
	    (write_back(copying, login, text, length, renewed, inside_length) || !text)) {
		copying->bring->given[number].text = renewed;
		copying->bring->given[number].length = inside_length;
		renewed = NULL;
		return;
	}
	if (!same && text && !put_login(copying, copying->inside_fd, login->name, text, length))
		say(copying, login->name, why_not(EIO));
	copying->bring->given[number].text = text;
	copying->bring->given[number].length = length;
	text = NULL;
}

static void take_login(struct copying *copying, size_t number)
{
	const struct profile_file *login = &copying->bring->profile->logins[number];
	const char *given = copying->bring->given[number].text;
	struct stat info;
	size_t length = 0, inside_length = 0, given_length = copying->bring->given[number].length;
	auto_free char *text = read_login(copying->home_fd, login->name, &length, &info);
	auto_free char *renewed = read_login(copying->inside_fd, login->name, &inside_length, &info);
	if (!renewed || is_same(renewed, inside_length, given, given_length) ||
	    is_same(renewed, inside_length, text, length))
		return;
	if (text && !is_same(text, length, given, given_length))
		return say(copying, login->name, "was changed meanwhile, and stays so");
	if (!write_back(copying, login, text, length, renewed, inside_length))
		return;
	free(copying->bring->given[number].text);
	copying->bring->given[number].text = renewed;
	copying->bring->given[number].length = inside_length;
	renewed = NULL;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int open_both(struct bring *bring, struct copying *ret_copying, struct cordon_error *err)
{
	*ret_copying = (struct copying){ .bring = bring, .home_fd = -1, .inside_fd = -1 };
	ret_copying->home_fd = open(bring->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret_copying->home_fd < 0)
		return fail(err, CORDON_E_INVALID_REQUEST, errno, bring->home, "the home directory cannot be opened");
	ret_copying->inside_fd = open(bring->inside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (ret_copying->inside_fd >= 0)
		return 0;
	fail(err, CORDON_E_INTERNAL, errno, bring->inside, "the session's home cannot be opened");
	close_fd(&ret_copying->home_fd);
	return -1;
}

static void close_both(struct copying *copying)
{
	close_fd(&copying->home_fd);
	close_fd(&copying->inside_fd);
}

int bring_in(struct bring *bring, struct cordon_error *err)
{
	struct copying copying;
	if (open_both(bring, &copying, err) < 0)
		return -1;
	for (size_t i = 0; i < bring->profile->copy.count; i++)
		copy_entry(&copying, bring->profile->copy.items[i]);
	for (size_t i = 0; i < bring->profile->part_count; i++)
		copy_part(&copying, &bring->profile->parts[i]);
	for (size_t i = 0; i < bring->profile->login_count; i++)
		give_login(&copying, i);
	if (copying.files > TREE_FILES_MAX)
		fprintf(bring->remarks,
		        "cordon: the agent's directories have more than %d files; the rest was not copied\n",
		        TREE_FILES_MAX);
	close_both(&copying);
	return 0;
}

static void take_all(struct bring *bring, bool quiet)
{
	struct copying copying;
	struct cordon_error err;
	if (open_both(bring, &copying, &err) < 0)
		return;
	copying.quiet = quiet;
	for (size_t i = 0; i < bring->profile->login_count; i++)
		take_login(&copying, i);
	close_both(&copying);
}

/* A login that renews itself at each use is dead outside from that moment on. */
static void *watch(void *arg)
{
	struct bring *bring = arg;
	while (poll(&(struct pollfd){ .fd = bring->stop_fd, .events = POLLIN }, 1, LOOK_MS) == 0)
		take_all(bring, true);
	return NULL;
}

void bring_watch(struct bring *bring)
{
	sigset_t all, before;
	bring->stop_fd = bring->profile->login_count ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (bring->stop_fd < 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bring->is_watched = pthread_create(&bring->watcher, NULL, watch, bring) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void bring_back(struct bring *bring)
{
	if (bring->is_watched) {
		(void)!eventfd_write(bring->stop_fd, 1);
		pthread_join(bring->watcher, NULL);
	}
	cleanup_close(&bring->stop_fd);
	take_all(bring, false);
}

void bring_free(struct bring *bring)
{
	for (size_t i = 0; i < PROFILE_FILES_MAX; i++)
		free(bring->given[i].text);
}
