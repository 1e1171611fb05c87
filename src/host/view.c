/* The system base view: which of its paths exist here, and which of /etc (etc.h) are public (public.h). A link is kept
 * as a link if it leads into the view, and replaced by its target if it does not (a resolv.conf that points into
 * /run).
 *
 * What was found is cached between commands until a change is reported (base/host-watch.h). Where changes cannot be
 * watched: a name in / or /etc cannot appear, disappear or be replaced without changing that directory. So while both
 * are unchanged, only what may change by itself is looked at again: regular files, what leads out of the view, and
 * names that lie deeper. */
#include "host/view.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/text.h"
#include "host/etc.h"
#include "host/host.h"
#include "host/public.h"
#include "host/system.h"

/* A directory or file that changed so recently may change once more without its time telling. */
#define RACY_S 2

struct name {
	const char *path;
	struct host_entry entry;
	bool use, fleeting;                     /* `fleeting`: to be looked at each time */
};

struct host_view {
	pthread_mutex_t mutex;
	struct host_watch_set *watches;
	uint64_t era;                           /* how often the watches was begun */
	struct arena entries_arena;
	struct host_entries entries;            /* what was found last */
	struct arena arena;
	bool known;                             /* and to be relied on */
	struct stat directories[2];             /* "/" and "/etc" when everything was looked at */
	struct strings extra;                   /* what the configuration added to /etc then */
	struct name *names;
	size_t name_count;
	struct {
		bool known;
		uint64_t era;                   /* of the watches, when it was read */
		unsigned uid;
		struct stat file;               /* /etc/passwd when it was read */
		char name[HOST_USER_MAX + 1];
	} user;
};

static bool in_view(const struct host_view *view, const char *path)
{
	for (size_t i = 0; i < view->name_count; i++)
		if (path_within(path, view->names[i].path))
			return true;
	return path_within(path, "/proc");
}

/* Where the link leads by its text alone; NULL when memory is short. */
static const char *lead(struct arena *arena, const char *path, const char *text)
{
	const char *joined = *text == '/' ? text : arena_printf(arena, "%s/../%s", path, text);
	return joined ? path_normalise(arena, joined) : NULL;
}

static int add_link(struct arena *arena, const struct host_view *view, const char *path, struct host_entry *ret_entry,
                    bool *ret_use)
{
	uncleared char text[PATH_MAX], real[PATH_MAX];
	struct stat info;
	ssize_t length = readlink(path, text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	const char *leads = lead(arena, path, text);
	if (!leads)
		return -1;
	if (length > 0 && in_view(view, leads)) {
		*ret_entry = (struct host_entry){ .path = path, .source = leads, .link = arena_strdup(arena, text),
		                                  .kind = HOST_LINK };
		return ret_entry->link ? 0 : -1;
	}
	host_watch_path(view->watches, path);
	*ret_use = length > 0 && realpath(path, real) && stat(real, &info) == 0;
	if (!*ret_use)
		return 0;
	*ret_entry = (struct host_entry){ .path = path, .source = arena_strdup(arena, real),
	                                  .link = arena_strdup(arena, text) };
	if (!ret_entry->source || !ret_entry->link)
		return -1;
	ret_entry->kind = in_view(view, real) ? HOST_LINK : S_ISDIR(info.st_mode) ? HOST_DIRECTORY : HOST_FILE;
	ret_entry->stamp = host_file_stamp(&info);
	return 0;
}

static bool has_parent(const char *path, const char *parent, size_t length)
{
	return !strncmp(path, parent, length) && path[length] == '/' && !strchr(path + length + 1, '/');
}

/* Only its own directory tells whether it is still there. Where there is no such directory, / or /etc tells. */
static bool lies_deeper(const char *path)
{
	uncleared char parent[PATH_MAX];
	struct stat info;
	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	return !has_parent(path, "", 0) && !has_parent(path, "/etc", 4) &&
	       (lstat(parent, &info) == 0 || errno != ENOENT);
}

/* *ret_use: whether it is there, and something to show. */
static int look(struct arena *arena, const struct host_view *view, const char *path, struct host_entry *ret_entry,
                bool *ret_use)
{
	struct stat info;
	*ret_use = lstat(path, &info) == 0;
	if (!*ret_use)
		return 0;
	if (S_ISLNK(info.st_mode))
		return add_link(arena, view, path, ret_entry, ret_use);
	*ret_entry = (struct host_entry){ .path = path, .source = path,
	                                  .kind = S_ISDIR(info.st_mode) ? HOST_DIRECTORY : HOST_FILE,
	                                  .stamp = host_file_stamp(&info) };
	*ret_use = S_ISDIR(info.st_mode) || S_ISREG(info.st_mode);
	return 0;
}

struct host_view *host_view_new(struct host_watch *host_watch)
{
	struct host_view *view = calloc(1, sizeof(*view));
	if (!view || !(view->watches = host_watch_set_new(host_watch))) {
		free(view);
		return NULL;
	}
	pthread_mutex_init(&view->mutex, NULL);
	return view;
}

void host_view_free(struct host_view *view)
{
	if (!view)
		return;
	host_watch_set_free(view->watches);
	arena_free(&view->entries_arena);
	arena_free(&view->arena);
	pthread_mutex_destroy(&view->mutex);
	free(view);
}

static bool is_unchanged(const struct stat *before, const struct stat *now)
{
	return before->st_dev == now->st_dev && before->st_ino == now->st_ino &&
	       before->st_ctim.tv_sec == now->st_ctim.tv_sec && before->st_ctim.tv_nsec == now->st_ctim.tv_nsec;
}

static int copy_strings(struct arena *arena, const struct strings *from, struct strings *ret_copy)
{
	struct strings copy = { 0 };
	for (size_t i = 0; from && i < from->count; i++) {
		const char *item = arena_strdup(arena, from->items[i]);
		if (!item || strings_add(arena, &copy, item) < 0)
			return -1;
	}
	*ret_copy = copy;
	return 0;
}

static int list_names(struct host_view *view, const struct strings *extra)
{
	struct arena *arena = &view->arena;
	struct strings paths;
	size_t count = 0;
	while (host_system_view[count])
		count++;
	if (copy_strings(arena, extra, &view->extra) < 0 || etc_find(arena, "/etc", extra, &paths) < 0 ||
	    !(view->names = arena_alloc(arena, (count + paths.count) * sizeof(*view->names))))
		return -1;
	for (size_t i = 0; i < count; i++)
		view->names[view->name_count++].path = host_system_view[i];
	for (size_t i = 0; i < paths.count; i++)
		view->names[view->name_count++].path = paths.items[i];
	return 0;
}

static void watch_names(struct host_view *view)
{
	for (size_t i = 0; i < view->name_count; i++)
		host_watch_link(view->watches, view->names[i].path);
}

static int look_at_names(struct host_view *view)
{
	for (size_t i = 0; i < view->name_count; i++) {
		struct name *name = &view->names[i];
		if (look(&view->arena, view, name->path, &name->entry, &name->use) < 0)
			return -1;
		bool leads_out = name->use && name->entry.link && name->entry.kind != HOST_LINK;
		name->fleeting = lies_deeper(name->path) || leads_out || (name->use && name->entry.kind == HOST_FILE);
	}
	return 0;
}

/* Looks at everything, unless the cache is valid; *ret_fresh says which. */
static int look_at_all(struct host_view *view, const struct strings *extra, bool *ret_fresh)
{
	static const char *const directories[] = { "/", "/etc" };
	struct stat now[ARRAY_SIZE(directories)] = { 0 };
	bool stands = view->known && strings_same(&view->extra, extra), settled = true;
	time_t time_now = time(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		bool there = stat(directories[i], &now[i]) == 0;
		stands = stands && there && is_unchanged(&view->directories[i], &now[i]);
		settled = settled && there && time_now - now[i].st_ctim.tv_sec >= RACY_S;
	}
	*ret_fresh = !stands;
	if (stands) {
		watch_names(view);
		return 0;
	}
	arena_free(&view->arena);
	view->known = false;
	view->extra = (struct strings){ 0 };
	view->name_count = 0;
	if (list_names(view, extra) < 0)
		return -1;
	watch_names(view);
	if (look_at_names(view) < 0)
		return -1;
	memcpy(view->directories, now, sizeof(now));
	view->known = settled;
	return 0;
}

static int look_again(struct host_view *view, const struct strings *extra)
{
	struct arena *arena = &view->entries_arena;
	bool fresh;
	arena_free(arena);
	view->entries = (struct host_entries){ 0 };
	if (look_at_all(view, extra, &fresh) < 0 ||
	    !(view->entries.items = arena_alloc(arena, view->name_count * sizeof(*view->entries.items))))
		return -1;
	for (size_t i = 0; i < view->name_count; i++) {
		struct host_entry *entry = &view->entries.items[view->entries.count];
		bool use = view->names[i].use, again = view->names[i].fleeting && !fresh;
		*entry = view->names[i].entry;
		if (again && look(arena, view, view->names[i].path, entry, &use) < 0)
			return -1;
		view->entries.count += use;
	}
	return host_public_keep(arena, view->watches, &view->entries);
}

/* Whether the cache is valid; if not, everything is watched from here on. */
static bool stands(struct host_view *view, const struct strings *extra, uint64_t mounts)
{
	if (host_watch_unchanged(view->watches, mounts) && strings_same(&view->extra, extra))
		return true;
	host_watch_begin(view->watches, mounts);
	view->era++;
	view->entries.items = NULL;
	host_watch_path(view->watches, HOST_PASSWD);
	host_watch_names(view->watches, "/etc");
	return false;
}

static int copy(struct arena *arena, struct host_entry *entry)
{
	const char *path = arena_strdup(arena, entry->path);
	entry->source = entry->source == entry->path ? path : arena_strdup(arena, entry->source);
	entry->path = path;
	if (entry->link)
		entry->link = arena_strdup(arena, entry->link);
	return entry->path && entry->source ? 0 : -1;
}

static int take(struct arena *arena, struct host_view *view, const struct strings *extra, uint64_t mounts,
                struct host_entries *ret_entries)
{
	if ((!stands(view, extra, mounts) || !view->entries.items) && look_again(view, extra) < 0) {
		view->entries.items = NULL;
		return -1;
	}
	struct host_entries entries = { .count = view->entries.count, .capacity = view->entries.count };
	entries.items = arena_alloc(arena, (entries.count + 1) * sizeof(*entries.items));
	if (!entries.items)
		return -1;
	memcpy(entries.items, view->entries.items, entries.count * sizeof(*entries.items));
	for (size_t i = 0; i < entries.count; i++)
		if (copy(arena, &entries.items[i]) < 0)
			return -1;
	*ret_entries = entries;
	return 0;
}

int host_base_view(struct arena *arena, struct host_view *view, const struct strings *extra, uint64_t mounts,
                   struct host_entries *ret_entries, struct cordon_error *err)
{
	pthread_mutex_lock(&view->mutex);
	int taken = take(arena, view, extra, mounts, ret_entries);
	pthread_mutex_unlock(&view->mutex);
	return taken < 0 ? fail_oom(err) : 0;
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

static const char *find_user(struct arena *arena, struct host_view *view, uint64_t mounts, unsigned uid)
{
	struct stat file = { 0 };
	/* The base view begins the watches, once for each command: who runs a single one watches nothing. */
	if (host_watch_unchanged(view->watches, mounts) && view->user.known && view->user.uid == uid &&
	    view->user.era == view->era)
		return arena_strdup(arena, view->user.name);
	bool there = stat(HOST_PASSWD, &file) == 0;
	if (view->user.known && there && view->user.uid == uid && is_unchanged(&view->user.file, &file)) {
		view->user.era = view->era;
		return arena_strdup(arena, view->user.name);
	}
	const char *name = host_user_name(arena, uid);
	view->user.known = name && there && time(NULL) - file.st_ctim.tv_sec >= RACY_S;
	if (view->user.known) {
		view->user.uid = uid;
		view->user.era = view->era;
		view->user.file = file;
		snprintf(view->user.name, sizeof(view->user.name), "%s", name);
	}
	return name;
}

const char *host_view_user(struct arena *arena, struct host_view *view, uint64_t mounts, unsigned uid)
{
	pthread_mutex_lock(&view->mutex);
	const char *name = find_user(arena, view, mounts, uid);
	pthread_mutex_unlock(&view->mutex);
	return name;
}
