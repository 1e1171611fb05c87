/* What changes in a watched directory: see watch.h. */
#include "api/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/error.h"
#include "base/text.h"
#include "paths/index/look.h"

#define EVENTS                                                                                                         \
	(IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |                \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

/* ---- directories ----------------------------------------------------------------------------------------------- */

static struct watched_directory *find_directory(const struct watch *watch, int number)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->directories[i].number == number)
			return &watch->directories[i];
	return NULL;
}

static void forget(struct watch *watch, struct watched_directory *directory)
{
	free(directory->path);
	*directory = watch->directories[--watch->count];
}

/* Those at a path and beneath it: there is something else now, or nothing. */
static void forget_beneath(struct watch *watch, const char *path)
{
	size_t length = strlen(path);
	for (size_t i = watch->count; i--;) {
		const char *each = watch->directories[i].path;
		if (strncmp(each, path, length) != 0 || (length && each[length] && each[length] != '/'))
			continue;
		inotify_rm_watch(watch->fd, watch->directories[i].number);
		forget(watch, &watch->directories[i]);
	}
}

/* The directory that is held. What cannot be watched is said. */
static int add_directory(struct watch *watch, int fd, const char *path, struct cordon_error *err)
{
	char held[64];
	snprintf(held, sizeof(held), "/proc/self/fd/%d", fd);
	if (watch->count == WATCH_DIRECTORIES_MAX) {
		watch->missed = true;
		return 0;
	}
	int number = inotify_add_watch(watch->fd, held, EVENTS);
	if (number < 0) {
		watch->missed = true;
		return 0;
	}
	struct watched_directory *known = find_directory(watch, number);
	struct watched_directory *grown =
		known ? watch->directories : reallocarray(watch->directories, watch->count + 1, sizeof(*grown));
	char *copy = strdup(path);
	if (!grown || !copy) {
		free(copy);
		return fail_oom(err);
	}
	watch->directories = grown;
	if (known)
		free(known->path);
	else
		known = &grown[watch->count++];
	*known = (struct watched_directory){ number, copy };
	return 0;
}

static size_t depth_of(const char *path)
{
	size_t depth = *path != '\0';
	while ((path = strchr(path, '/'))) {
		depth++;
		path++;
	}
	return depth;
}

struct adding {
	struct watch *watch;
	const char *above; /* the path of where the walk began */
	json_t *changes;   /* where what is found is told; or NULL */
};

static void add_change(json_t *changes, const char *path, const char *change)
{
	size_t count = json_array_size(changes);
	const json_t *last = count ? json_array_get(changes, count - 1) : NULL;
	if (last && !strcmp(json_string_value(json_object_get(last, "path")), path) &&
	    !strcmp(json_string_value(json_object_get(last, "change")), change))
		return;
	json_array_append_new(changes,
			      json_pack("{s:o, s:s}", "path", value_bytes(path, strlen(path)), "change", change));
}

static int visit(void *arg, const struct files_entry *entry, struct cordon_error *err)
{
	struct adding *adding = arg;
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s%s%s", adding->above, *adding->above ? "/" : "", entry->path) >=
	    (int)sizeof(path))
		return 0;
	if (adding->changes)
		add_change(adding->changes, path, "created");
	if (!S_ISDIR(entry->info.st_mode) || (adding->watch->depth && depth_of(path) >= adding->watch->depth))
		return 0;
	auto_close int fd = openat(entry->directory_fd, entry->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? 0 : add_directory(adding->watch, fd, path, err);
}

/* The directory and those in it. Each is watched before it is listed, so that nothing is made in it unseen. */
static int add_tree(struct watch *watch, const struct files *files, const struct files_place *place, const char *path,
		    json_t *changes, struct cordon_error *err)
{
	struct adding adding = { watch, path, changes };
	struct files_walked walked;
	const struct files_walk walk = { .depth = watch->depth ? watch->depth - depth_of(path) : 0,
					 .visit = visit,
					 .arg = &adding };
	if (add_directory(watch, place->fd, path, err) < 0 || files_walk(files, place, &walk, &walked, err) < 0)
		return -1;
	watch->missed |= walked.too_deep || walked.too_many || walked.too_long || walked.unreadable;
	return 0;
}

/* One that has come, at a path from the place on. */
static int add_new(struct watch *watch, const struct files *files, const struct files_place *place, const char *path,
		   const char *absolute, json_t *changes, struct cordon_error *err)
{
	struct files_place found = {
		.root = place->root, .given = path, .path = absolute, .named = absolute, .parent_fd = -1
	};
	auto_close int fd = names_open(place->fd, path, O_PATH | O_DIRECTORY);
	if (fd < 0 || fstat(fd, &found.info) < 0)
		return 0;
	found.fd = fd;
	return add_tree(watch, files, &found, path, changes, err);
}

/* ---- what the kernel tells ------------------------------------------------------------------------------------- */

static const char *change_of(uint32_t mask)
{
	return mask & (IN_CREATE | IN_MOVED_TO)     ? "created"
	       : mask & (IN_DELETE | IN_MOVED_FROM) ? "removed"
	       : mask & IN_ATTRIB                   ? "attributes"
						    : "changed";
}

static int take_named(struct watch *watch, const struct files *files, const struct files_place *place,
		      const struct inotify_event *event, const char *directory, json_t *changes,
		      struct cordon_error *err)
{
	char path[PATH_MAX], absolute[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s%s%s", directory, *directory ? "/" : "", event->name) >=
		    (int)sizeof(path) ||
	    snprintf(absolute, sizeof(absolute), "%s/%s", strcmp(place->path, "/") ? place->path : "", path) >=
		    (int)sizeof(absolute))
		return 0;
	bool is_directory = event->mask & IN_ISDIR;
	if (is_directory && event->mask & IN_MOVED_FROM)
		forget_beneath(watch, path);
	if (files_hides(files, place->root, absolute))
		return 0;
	add_change(changes, path, change_of(event->mask));
	if (!is_directory || !(event->mask & (IN_CREATE | IN_MOVED_TO)) ||
	    (watch->depth && depth_of(path) >= watch->depth))
		return 0;
	return add_new(watch, files, place, path, absolute, changes, err);
}

static int take_event(struct watch *watch, const struct files *files, const struct files_place *place,
		      const struct inotify_event *event, json_t *changes, struct cordon_error *err)
{
	if (event->mask & IN_Q_OVERFLOW) {
		watch->missed = true;
		forget_beneath(watch, "");
		return add_tree(watch, files, place, "", NULL, err);
	}
	struct watched_directory *directory = find_directory(watch, event->wd);
	if (!directory)
		return 0;
	if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) {
		if (!*directory->path)
			watch->ended = "the directory was removed, or has another name";
		if (event->mask & IN_IGNORED)
			forget(watch, directory);
		return 0;
	}
	if (!event->len)
		return 0;
	/* The table may move while its entry is used. */
	char above[PATH_MAX];
	snprintf(above, sizeof(above), "%s", directory->path);
	return take_named(watch, files, place, event, above, changes, err);
}

static int take_events(struct watch *watch, const struct files *files, const struct files_place *place, json_t *changes,
		       struct cordon_error *err)
{
	char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	while (json_array_size(changes) < WATCH_CHANGES_MAX && !watch->ended) {
		ssize_t got = read(watch->fd, buffer, sizeof(buffer));
		if (got <= 0)
			return 0;
		for (ssize_t at = 0; at < got;) {
			const struct inotify_event *event = (const void *)(buffer + at);
			at += (ssize_t)(sizeof(*event) + event->len);
			if (take_event(watch, files, place, event, changes, err) < 0)
				return -1;
		}
	}
	return 0;
}

static void write_told(struct watch *watch, const json_t *changes, struct json *json)
{
	size_t i;
	json_t *each;
	json_key_string(json, "watch", watch->id);
	json_key(json, "changes");
	json_array_begin(json);
	json_array_foreach(changes, i, each)
	{
		const json_t *path = json_object_get(each, "path");
		json_object_begin(json);
		json_key_bytes(json, "path", json_string_value(path), json_string_length(path));
		json_key_string(json, "change", json_string_value(json_object_get(each, "change")));
		json_object_end(json);
	}
	json_array_end(json);
	json_key_bool(json, "missed", watch->missed);
	json_key_bool(json, "ended", watch->ended);
	json_key_string(json, "why", watch->ended);
	watch->missed = false;
}

/* What is at the path now need not be what is watched. */
int watch_act(struct watch *watch, const struct files *files, const struct files_place *place, struct json *json,
	      struct cordon_error *err)
{
	auto_tree json_t *changes = json_array();
	int result = 0;
	if (!changes)
		return fail_oom(err);
	if (!watch->count && !watch->ended) {
		watch->device = place->info.st_dev;
		watch->inode = place->info.st_ino;
		result = files_require_directory(place, err) < 0 ? -1 : add_tree(watch, files, place, "", NULL, err);
	} else if (watch->device != place->info.st_dev || watch->inode != place->info.st_ino) {
		watch->ended = "another directory is in its place";
	} else {
		result = take_events(watch, files, place, changes, err);
	}
	if (result == 0)
		write_told(watch, changes, json);
	return result;
}
