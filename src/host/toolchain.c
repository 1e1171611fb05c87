/* Finding toolchains: see toolchain.h, and toolchains.def for what is known of each.
 *
 * For each row, each place is turned into a path and tested with access(2); for what is not installed, nothing else is
 * done. A root that exists and has its marker is resolved to its canonical path and judged (toolchain-judge.h): the
 * variables that name roots are not trusted. So is each single path that would be shown, since a sub-path may be a
 * link.
 *
 * A failed allocation is remembered in `finder` and reported once, at the end. */
#include "host/toolchain.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "host/toolchain-judge.h"
#include "host/toolchain-table.h"

#define MAX_MATCHES 4096        /* names that a * may match */
#define MAX_PATH_ENTRIES 64
#define LISTING_SIZE ((size_t)32 * 1024)

struct path_entry {
	const char *text;
	size_t length;
	uint64_t initials;              /* bit c % 64 is set where c comes after a slash */
};

struct finder {
	struct arena *arena;
	struct judge judge;             /* `home_real` is asked for when first needed */
	const char *const *environment;
	struct path_entry path[MAX_PATH_ENTRIES];
	size_t path_count;
	struct toolchains found;        /* `mask` holds canonical paths until finish() */
	struct strings real;            /* what each of `found.show` is */
	struct strings roots;           /* found by the row at hand */
	size_t home_length;
	const char *listing;            /* what is in the home, as getdents64 gives it; NULL where that is too much */
	size_t listing_length;
	const struct strings *writable;
	bool failed;
};

/* Every path is made known before it is looked at. */
static bool is_there(const struct finder *finder, const char *path)
{
	host_watch_path(finder->judge.watches, path);
	return access(path, F_OK) == 0;
}

static bool find_real(const struct finder *finder, const char *path, char real[static PATH_MAX])
{
	host_watch_path(finder->judge.watches, path);
	return realpath(path, real);
}

static void add(struct finder *finder, struct strings *list, const char *item)
{
	if (item && strings_find(list, item) >= 0)
		return;
	if (strings_add(finder->arena, list, item) < 0)
		finder->failed = true;
}

static const char *variable(const struct finder *finder, const char *name, size_t length)
{
	for (const char *const *item = finder->environment; item && *item; item++)
		if (**item == *name && !strncmp(*item, name, length) && (*item)[length] == '=')
			return *item + length + 1;
	return NULL;
}

/* "root/sub", or "root" for "."; false if it is too long. */
static bool join(char buffer[static PATH_MAX], const char *root, const char *sub)
{
	size_t root_length = strlen(root), sub_length = strcmp(sub, ".") ? strlen(sub) : 0;
	if (root_length + sub_length + 2 > PATH_MAX)
		return false;
	memcpy(buffer, root, root_length);
	if (sub_length)
		buffer[root_length++] = '/';
	memcpy(buffer + root_length, sub, sub_length);
	buffer[root_length + sub_length] = '\0';
	return true;
}

static bool has(const struct finder *finder, const char *root, const char *sub)
{
	uncleared char path[PATH_MAX];
	return join(path, root, sub) && is_there(finder, path);
}

static bool has_any(const struct finder *finder, const char *root, const char *const *subs)
{
	for (; *subs; subs++)
		if (has(finder, root, *subs))
			return true;
	return false;
}

/* The paths that `pattern` matches: itself, or one for each name that fits its one *. If too many do, it is their
 * directory, which is never a root, and which a mask then hides as a whole. */
static struct strings expand(struct finder *finder, const char *pattern)
{
	struct strings list = { 0 };
	const char *star = strchr(pattern, '*');
	if (!star) {
		add(finder, &list, pattern);
		return list;
	}
	const char *slash = memrchr(pattern, '/', (size_t)(star - pattern));
	char *directory = arena_strndup(finder->arena, pattern, (size_t)(slash - pattern));
	if (directory)
		host_watch_names(finder->judge.watches, directory);
	DIR *stream = directory ? opendir(directory) : NULL;
	finder->failed |= !directory;
	if (!stream)
		return list;
	for (struct dirent *entry; !finder->failed && list.count < MAX_MATCHES && (entry = readdir(stream)); ) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") && strcmp(name, "..") && !strncmp(name, slash + 1, (size_t)(star - slash) - 1))
			finder->failed |=
				strings_add(finder->arena, &list,
			                    arena_printf(finder->arena, "%s/%s%s", directory, name, star + 1)) < 0;
	}
	closedir(stream);
	if (list.count == MAX_MATCHES) {
		list.count = 1;
		list.items[0] = directory;
	}
	return list;
}

/* A path in a row: a place of its own, or beneath the root. */
static const char *resolve(struct finder *finder, const char *root, const char *sub)
{
	uncleared char path[PATH_MAX];
	if (sub[0] == '/')
		return sub;
	if (!strncmp(sub, "~/", 2)) {
		if (!finder->judge.home)
			return NULL;
		root = finder->judge.home;
		sub += 2;
	}
	if (!join(path, root, sub))
		return NULL;
	const char *copy = path_normalise(finder->arena, path);
	finder->failed |= !copy;
	return copy;
}

static void add_shown(struct finder *finder, const char *path, const char *real)
{
	if (!path || strings_add(finder->arena, &finder->found.show, path) < 0 ||
	    strings_add(finder->arena, &finder->real, real) < 0)
		finder->failed = true;
}

/* True if it can be seen inside. */
static bool show(struct finder *finder, const char *root, const char *root_real, const char *sub)
{
	uncleared char real[PATH_MAX];
	const char *path = resolve(finder, root, sub);
	if (!path || !is_there(finder, path) || !find_real(finder, path, real) ||
	    !judge_may_show(&finder->judge, real, root_real))
		return false;
	const char *canonical = arena_strdup(finder->arena, real);
	add_shown(finder, canonical, canonical);
	if (judge_may_name(&finder->judge, path))
		add_shown(finder, path, canonical);
	return true;
}

/* A token comes with an address, or is assigned: a small file that has neither is safe to show. */
static bool names_no_address(const char *path)
{
	uncleared char text[4096];
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	ssize_t length = read(fd, text, sizeof(text));
	return length >= 0 && (size_t)length < sizeof(text) && !memchr(text, '/', (size_t)length) &&
	       !memchr(text, '@', (size_t)length) && !memchr(text, '=', (size_t)length);
}

static void mask(struct finder *finder, const char *root, const char *sub)
{
	bool sparing = *sub == '?';
	const char *pattern = resolve(finder, root, sub + sparing);
	struct strings paths = pattern ? expand(finder, pattern) : (struct strings){ 0 };
	for (size_t i = 0; i < paths.count; i++) {
		uncleared char real[PATH_MAX];
		if (is_there(finder, paths.items[i]) && find_real(finder, paths.items[i], real) &&
		    !(sparing && names_no_address(real)))
			add(finder, &finder->found.mask, arena_strdup(finder->arena, real));
	}
}

static bool is_set(const struct strings *environment, const char *item, size_t length)
{
	for (size_t i = 0; i < environment->count; i++)
		if (!strncmp(environment->items[i], item, length + 1))
			return true;
	return false;
}

static void set(struct finder *finder, const char *root, const char *item)
{
	size_t length = strcspn(item, "=");
	const char *value = item + length + 1, *at = strchr(value, '@');
	if (is_set(&finder->found.environment, item, length))
		return;
	if (value == at) {
		const char *own = variable(finder, item, length);
		char *path = own ? path_normalise(finder->arena, own) : NULL;
		if (path && path_within(path, root) && !text_has_control(path) && is_there(finder, path)) {
			add(finder, &finder->found.environment,
			    arena_printf(finder->arena, "%.*s=%s", (int)length, item, path));
			return;
		}
		if (at[1] && !has(finder, root, at + 2))
			return;
	}
	if (at)
		item = arena_printf(finder->arena, "%.*s%s%s", (int)(at - item), item, root, at + 1);
	add(finder, &finder->found.environment, item);
}

/* One listing of the home answers for most places at once that nothing is there; but not for what comes after it, so
 * where that is watched for, each is asked for. */
static void list_home(struct finder *finder)
{
	/* Not on the stack, all of whose pages would be touched on the way to what is called next. */
	auto_free char *entries = malloc(LISTING_SIZE);
	auto_close int fd = entries ? open(finder->judge.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	ssize_t length = fd < 0 ? -1 : getdents64(fd, entries, LISTING_SIZE);
	if (length <= 0 || getdents64(fd, entries + length, LISTING_SIZE - (size_t)length) != 0)
		return;
	finder->listing = arena_strndup(finder->arena, entries, (size_t)length);
	finder->listing_length = (size_t)length;
}

static bool is_absent(const struct finder *finder, const char *path)
{
	size_t home_length = finder->home_length;
	if (!finder->listing || strncmp(path, finder->judge.home, home_length) || path[home_length] != '/')
		return false;
	const char *name = path + home_length + 1;
	size_t length = strcspn(name, "/");
	if (!length)
		return false;
	for (size_t at = 0; at < finder->listing_length;) {
		const struct dirent64 *entry = (const struct dirent64 *)(const void *)(finder->listing + at);
		if (!strncmp(entry->d_name, name, length) && !entry->d_name[length])
			return false;
		at += entry->d_reclen;
	}
	return true;
}

static void know_home(struct finder *finder)
{
	uncleared char real[PATH_MAX];
	if (!finder->judge.home || finder->judge.home_real || !find_real(finder, finder->judge.home, real))
		return;
	finder->judge.home_real = arena_strdup(finder->arena, real);
	finder->failed |= !finder->judge.home_real;
}

static bool is_writable(const struct finder *finder, const char *path)
{
	for (size_t i = 0; finder->writable && i < finder->writable->count; i++)
		if (path_within(path, finder->writable->items[i]))
			return true;
	return false;
}

/* `path` need not exist, nor be normalised. */
static void try_root(struct finder *finder, const struct toolchain *row, const char *path)
{
	uncleared char real[PATH_MAX];
	if (is_absent(finder, path) || !is_there(finder, path) || strchr(path, '*'))
		return;         /* a * in its own name would be taken for one of the row's */
	const char *root = path_normalise(finder->arena, path);
	if (!root || is_writable(finder, root) || strings_find(&finder->roots, root) >= 0 ||
	    !has_any(finder, root, row->markers) || !find_real(finder, root, real))
		return;
	know_home(finder);
	if (finder->failed || is_writable(finder, real) || !judge_may_show(&finder->judge, real, NULL))
		return;
	bool seen = false;
	for (const char *const *sub = row->show; *sub; sub++)
		seen |= show(finder, root, real, *sub) && **sub != '/' && **sub != '~';
	if (!seen)
		return;
	add(finder, &finder->roots, root);
	add(finder, &finder->found.names, row->name);
	for (const char *const *sub = row->mask; *sub; sub++)
		mask(finder, root, *sub);
	for (const char *const *item = row->set; *item; item++)
		set(finder, root, *item);
}

static bool on_path(const struct finder *finder, const char *path)
{
	for (size_t i = 0; i < finder->path_count; i++)
		if (!strncmp(path, finder->path[i].text, finder->path[i].length) && !path[finder->path[i].length])
			return true;
	return false;
}

/* $VARIABLE or $VARIABLE/sub, for each element of its value. */
static void try_variable(struct finder *finder, const struct toolchain *row, const char *place, bool only_on_path)
{
	size_t length = strcspn(place + 1, "/");
	const char *value = variable(finder, place + 1, length), *rest = place + 1 + length;
	for (; value && *value; value += *value == ':') {
		size_t size = strcspn(value, ":");
		if (*value == '/') {
			const char *text = arena_printf(finder->arena, "%.*s%s", (int)size, value, rest);
			const char *path = text ? path_normalise(finder->arena, text) : NULL;
			finder->failed |= !path;
			if (path && (!only_on_path || on_path(finder, path)))
				try_root(finder, row, path);
		}
		value += size;
	}
}

static void try_place(struct finder *finder, const struct toolchain *row, const char *place)
{
	bool only_on_path = *place == ':';
	uncleared char path[PATH_MAX];
	place += only_on_path;
	if (*place == '$') {
		try_variable(finder, row, place, only_on_path);
		return;
	}
	if (*place == '~' && (!finder->judge.home || !join(path, finder->judge.home, place + 2)))
		return;
	const char *pattern = *place == '~' ? path : place;
	if (!strchr(place, '*')) {
		if (!only_on_path || on_path(finder, pattern))
			try_root(finder, row, pattern);
		return;
	}
	struct strings paths = !is_absent(finder, pattern) ? expand(finder, pattern) : (struct strings){ 0 };
	for (size_t i = 0; i < paths.count; i++)
		try_root(finder, row, paths.items[i]);
}

static uint64_t initial(char byte)
{
	return UINT64_C(1) << ((unsigned char)byte % 64);
}

/* Is a directory of PATH beneath what is a ~/usual place, but of another home or elsewhere? */
static void try_path(struct finder *finder, const struct toolchain *row, const char *place)
{
	place += *place == ':';
	if (*place != '~' || strchr(place, '*'))
		return;
	const char *usual = place + 1, *tried = NULL;
	size_t length = strlen(usual), tried_length = 0;
	for (size_t i = 0; i < finder->path_count; i++) {
		const char *text = finder->path[i].text, *end = text + finder->path[i].length, *at = text;
		if (!(finder->path[i].initials & initial(usual[1])))
			continue;
		for (; at && at + length <= end; at = memchr(at + 1, '/', (size_t)(end - at) - 1)) {
			if (at[1] != usual[1] || strncmp(at, usual, length) || (at + length < end && at[length] != '/'))
				continue;
			if (finder->judge.home && finder->home_length == (size_t)(at - text) &&
			    !strncmp(text, finder->judge.home, finder->home_length))
				break;
			size_t size = (size_t)(at - text) + length;
			if (tried_length == size && !memcmp(tried, text, size))
				break;
			char *root = arena_strndup(finder->arena, text, size);
			tried = text;
			tried_length = size;
			finder->failed |= !root;
			if (root)
				try_root(finder, row, root);
			break;
		}
	}
}

static void split_path(struct finder *finder)
{
	const char *text = variable(finder, "PATH", 4);
	while (text && *text && finder->path_count < MAX_PATH_ENTRIES) {
		size_t size = strcspn(text, ":"), length = size;
		while (length > 1 && text[length - 1] == '/')
			length--;
		/* What the system itself has needs no row. */
		if (*text == '/' && length > 1 && strncmp(text, "/usr/", 5)) {
			struct path_entry *entry = &finder->path[finder->path_count++];
			*entry = (struct path_entry){ .text = text, .length = length };
			for (size_t i = 1; i < length; i++)
				if (text[i - 1] == '/')
					entry->initials |= initial(text[i]);
		}
		text += size;
		text += *text == ':';
	}
}

static bool is_kept(const struct strings *shown, size_t index)
{
	for (size_t i = 0; i < shown->count; i++)
		if (i != index && path_within(shown->items[index], shown->items[i]) &&
		    (i < index || strcmp(shown->items[index], shown->items[i])))
			return false;
	return true;
}

/* Shows only what is within nothing else that is shown, and masks by every path under which a file can be reached. */
static void finish(struct finder *finder, struct toolchains *ret)
{
	const struct toolchains *found = &finder->found;
	*ret = (struct toolchains){ .names = found->names, .environment = found->environment };
	for (size_t i = 0; i < found->show.count; i++) {
		const char *path = found->show.items[i], *real = finder->real.items[i];
		if (!is_kept(&found->show, i))
			continue;
		add(finder, &ret->show, path);
		for (size_t j = 0; j < found->mask.count; j++)
			if (path_within(found->mask.items[j], real))
				add(finder, &ret->mask,
				    arena_printf(finder->arena, "%s%s", path, found->mask.items[j] + strlen(real)));
	}
}

int toolchain_find(struct arena *arena, const char *home, const char *const *environment, const struct strings *chosen,
                   const struct strings *writable, struct host_watch_set *watches, struct toolchains *ret,
                   struct cordon_error *err)
{
	struct finder finder = {
		.arena = arena, .environment = environment, .writable = writable, .judge = { .watches = watches }
	};
	struct toolchains found;
	size_t count;
	const struct toolchain *rows = toolchain_rows(&count);
	if (toolchain_check_chosen(chosen, err) < 0)
		return -1;
	if (home && *home == '/') {
		finder.judge.home = path_normalise(arena, home);
		finder.failed |= !finder.judge.home;
		finder.home_length = finder.judge.home ? strlen(finder.judge.home) : 0;
		if (finder.judge.home && !host_watch_is_active(watches))
			list_home(&finder);
	}
	split_path(&finder);
	for (size_t i = 0; i < count; i++) {
		if (!toolchain_is_chosen(chosen, rows[i].name))
			continue;
		finder.roots = (struct strings){ 0 };
		for (const char *const *place = rows[i].places; *place; place++)
			try_place(&finder, &rows[i], *place);
		for (const char *const *place = rows[i].places; *place; place++)
			try_path(&finder, &rows[i], *place);
	}
	if (!finder.failed)
		finish(&finder, &found);
	if (finder.failed)
		return fail_oom(err);
	*ret = found;
	return 0;
}

int toolchain_environment(struct arena *arena, const struct toolchains *found, const char *inside_home,
                          struct strings *list, struct cordon_error *err)
{
	for (size_t i = 0; i < found->environment.count; i++) {
		const char *item = found->environment.items[i], *value = strchr(item, '=') + 1;
		if (!strncmp(value, "~/", 2))
			item = arena_printf(arena, "%.*s%s%s", (int)(value - item), item, inside_home, value + 1);
		if (strings_add(arena, list, item) < 0)
			return fail_oom(err);
	}
	return 0;
}
