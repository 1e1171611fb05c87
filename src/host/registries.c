/* See registries.h. The files are the user's own or the system's. Only host names are taken from them, never the
 * names, passwords and tokens beside them. Reading line by line is enough for all of the formats (ini, TOML, YAML,
 * Debian's deb822): the value is on a line of its own, after its key, or on an indented line below it. */
#include "host/registries.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "base/text.h"
#include "policy/host.h"

#define FILE_SIZE_MAX ((size_t)1 << 20)
#define FILES_MAX 64            /* that one pattern may match */
#define HOSTS_MAX 256
#define KEY_SIZE 128
#define SEPARATORS " \t\r,'\"|(){}<>;="

const struct registry_row registry_rows[] = {
#define REGISTRY(...) { __VA_ARGS__ },
#include "host/registries.def"
};
const size_t registry_row_count = ARRAY_SIZE(registry_rows);

static void add(struct registry_scan *scan, struct strings *list, const char *item)
{
	if (item && strings_find(list, item) >= 0)
		return;
	scan->failed |= strings_add(scan->arena, list, item) < 0;
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

/* What is between the scheme and the path of a URL, without a user's name. */
static void add_authority(struct registry_scan *scan, const char *text, size_t length, uint16_t port)
{
	char entry[HOST_TEXT_SIZE];
	struct host host;
	const char *at = memrchr(text, '@', length);
	if (at) {
		length -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	if (host_parse_port(text, length, &host)) {
		if (host_parse(text, length, &host))
			return;
		host.port = port;
	}
	host_text(&host, entry);
	if (scan->hosts.count < HOSTS_MAX)
		add(scan, &scan->hosts, arena_strdup(scan->arena, entry));
}

static size_t span_until(const char *text, size_t length, const char *stops)
{
	size_t span = 0;
	while (span < length && text[span] && !strchr(stops, text[span]))
		span++;
	return span;
}

static void read_word(struct registry_scan *scan, const char *word, size_t length)
{
	static const char https[] = "https://", http[] = "http://";
	const char *at = memmem(word, length, https, sizeof(https) - 1);
	uint16_t port = at ? 443 : 80;
	struct host host;
	if (!at)
		at = memmem(word, length, http, sizeof(http) - 1);
	if (at) {
		at += port == 443 ? sizeof(https) - 1 : sizeof(http) - 1;
		add_authority(scan, at, span_until(at, (size_t)(word + length - at), "/?#"), port);
		return;
	}
	length = span_until(word, length, "+");
	if (scan->row->bare && memchr(word, '.', length) && !host_parse(word, length, &host) && host.form == HOST_NAME)
		add_authority(scan, word, length, 443);
}

static void read_value(struct registry_scan *scan, const char *value, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t word = span_until(value + at, length - at, SEPARATORS);
		if (word)
			read_word(scan, value + at, word);
		at += word ? word : 1;
	}
}

static bool is_listed(const char *keys, const char *key)
{
	size_t length = strlen(key);
	for (const char *at = keys; *at; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");
		bool suffix = *at == '*';
		if (suffix ? length >= word - 1 && !strncmp(key + length - (word - 1), at + 1, word - 1)
		           : length == word && !strncmp(key, at, word))
			return true;
		at += word;
	}
	return false;
}

/* The length of the text before the value, and the key in it in the form in which keys are compared; 0: there is
 * none. */
static size_t read_key(const char *line, size_t length, char ret_key[KEY_SIZE])
{
	size_t end = span_until(line, length, *line == '@' ? "=" : "=:"), used = 0;
	if (end == length)
		return 0;
	for (size_t i = 0; i < end; i++) {
		if (line[i] == ' ' || line[i] == '\t' || line[i] == '"' || line[i] == '\'')
			continue;
		if (used + 1 >= KEY_SIZE)
			return 0;
		ret_key[used++] = line[i] == '_' ? '-' : text_lower(line[i]);
	}
	ret_key[used] = '\0';
	return used ? end + 1 : 0;
}

static bool is_wanted(const struct registry_scan *scan, const char *key, bool by_default)
{
	if (by_default)
		return is_listed(scan->row->default_keys, key);
	return !strcmp(key, scan->row->main_key) || is_listed(scan->row->keys, key);
}

void registry_scan_text(struct registry_scan *scan, const char *text, size_t length, bool by_default)
{
	bool every_line = !*(by_default ? scan->row->default_keys : scan->row->main_key), goes_on = false;
	for (size_t at = 0; at < length;) {
		const char *line = text + at, *newline = memchr(line, '\n', length - at);
		size_t rest = newline ? (size_t)(newline - line) : length - at;
		char key[KEY_SIZE];
		at += rest + 1;
		bool indented = rest && (*line == ' ' || *line == '\t');
		while (rest && (*line == ' ' || *line == '\t')) {
			line++;
			rest--;
		}
		if (!rest || *line == '#' || *line == ';')
			continue;
		if (every_line) {
			read_value(scan, line, rest);
			continue;
		}
		size_t before = read_key(line, rest, key);
		if (before && is_wanted(scan, key, by_default)) {
			goes_on = strings_find(&scan->settled, key) < 0;
			if (goes_on)
				add(scan, &scan->fresh, arena_strdup(scan->arena, key));
			line += before;
			rest -= before;
		} else if (!indented || by_default) {
			goes_on = false;
		}
		if (goes_on)
			read_value(scan, line, rest);
	}
}

void registry_scan_next(struct registry_scan *scan)
{
	for (size_t i = 0; i < scan->fresh.count; i++)
		add(scan, &scan->settled, scan->fresh.items[i]);
	scan->fresh = (struct strings){ 0 };
}

/* ---- files and variables --------------------------------------------------------------------------------------- */

struct search {
	struct registry_scan scan;
	const char *home;
	char *const *environment;
};

static const char *variable(const struct search *search, const char *name, size_t length)
{
	for (char *const *item = search->environment; item && *item; item++)
		if (!strncmp(*item, name, length) && (*item)[length] == '=')
			return *item + length + 1;
	return NULL;
}

static void note_source(struct search *search, size_t before, const char *source)
{
	if (search->scan.hosts.count > before)
		add(&search->scan, &search->scan.sources, source);
}

static void read_variables(struct search *search)
{
	for (const char *at = search->scan.row->variables; *at; at += strspn(at, " ")) {
		size_t name = strcspn(at, "="), whole = strcspn(at, " "), before = search->scan.hosts.count;
		const char *value = variable(search, at, name);
		const char *key = arena_strndup(search->scan.arena, at + name + 1, whole - name - 1);
		const char *line = key && value ? arena_printf(search->scan.arena, "%s=%s", key, value) : NULL;
		search->scan.failed |= !key || (value && !line);
		if (line && *value) {
			registry_scan_text(&search->scan, line, strcspn(line, "\n"), false);
			note_source(search, before, arena_strndup(search->scan.arena, at, name));
			registry_scan_next(&search->scan);
		}
		at += whole;
	}
}

/* Files that another user could have written are ignored. */
static void read_file(struct search *search, const char *path, bool by_default)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat info;
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || (size_t)info.st_size > FILE_SIZE_MAX ||
	    (info.st_uid != 0 && info.st_uid != geteuid()) || (info.st_mode & S_IWOTH))
		return;
	char *text = arena_alloc(search->scan.arena, (size_t)info.st_size + 1);
	ssize_t length = text ? read(fd, text, (size_t)info.st_size) : 0;
	size_t before = search->scan.hosts.count;
	search->scan.failed |= !text;
	if (length <= 0)
		return;
	registry_scan_text(&search->scan, text, (size_t)length, by_default);
	note_source(search, before, path_normalise(search->scan.arena, path));
}

/* The directory in which a program really lies; NULL where there is none of that name. */
static const char *program_directory(const struct search *search, const char *name, size_t length)
{
	const char *path = variable(search, "PATH", strlen("PATH"));
	char candidate[PATH_MAX], real[PATH_MAX];
	while (path && *path) {
		size_t entry = strcspn(path, ":");
		int written = snprintf(candidate, sizeof(candidate), "%.*s/%.*s", (int)entry, path, (int)length, name);
		if (*path == '/' && written > 0 && (size_t)written < sizeof(candidate) &&
		    access(candidate, X_OK) == 0 && realpath(candidate, real))
			return arena_strndup(search->scan.arena, real, (size_t)(strrchr(real, '/') - real));
		path += entry + (path[entry] == ':');
	}
	return NULL;
}

/* NULL where it begins with something that is not there. */
static const char *expand(const struct search *search, const char *path, size_t length)
{
	size_t first = span_until(path, length, "/");
	const char *root = "";
	if (*path == '~')
		root = search->home;
	else if (*path == '$')
		root = variable(search, path + 1, first - 1);
	else if (*path == '@')
		root = program_directory(search, path + 1, first - 1);
	else
		first = 0;
	if (!root || (first && *root != '/'))
		return NULL;
	return arena_printf(search->scan.arena, "%s%.*s", root, (int)(length - first), path + first);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in `directory` that fit, in order. glob(3) would look for users' homes, and load shared objects for
 * that. */
static void list_names(struct search *search, const char *directory, const char *pattern, struct strings *ret_names)
{
	DIR *opened = opendir(directory);
	struct strings names = { 0 };
	for (struct dirent *entry; opened && (entry = readdir(opened)) && names.count < FILES_MAX;)
		if (entry->d_name[0] != '.' && glob_match_text(pattern, entry->d_name))
			add(&search->scan, &names, arena_strdup(search->scan.arena, entry->d_name));
	if (opened)
		closedir(opened);
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), compare_names);
	*ret_names = names;
}

/* Everything that `path` matches, from the first component with a star on. */
static void read_matching(struct search *search, const char *path, bool by_default)
{
	struct arena *arena = search->scan.arena;
	const char *star = strchr(path, '*');
	if (!star) {
		read_file(search, path, by_default);
		return;
	}
	const char *slash = memrchr(path, '/', (size_t)(star - path));
	size_t length = strcspn(slash + 1, "/");
	const char *directory = arena_strndup(arena, path, (size_t)(slash - path)),
		   *pattern = arena_strndup(arena, slash + 1, length);
	struct strings names = { 0 };
	search->scan.failed |= !directory || !pattern;
	if (directory && pattern)
		list_names(search, directory, pattern, &names);
	for (size_t i = 0; i < names.count; i++) {
		const char *next = arena_printf(arena, "%s/%s%s", directory, names.items[i], slash + 1 + length);
		search->scan.failed |= !next;
		/* A star in a name is no pattern. */
		if (next && !strchr(names.items[i], '*'))
			read_matching(search, next, by_default);
	}
}

/* Of the tool's own default, the first that says something. */
static void read_files(struct search *search, const char *files, bool by_default)
{
	for (const char *at = files; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " "), before = search->scan.hosts.count;
		const char *path = expand(search, at, length);
		at += length;
		if (!path)
			continue;
		read_matching(search, path, by_default);
		registry_scan_next(&search->scan);
		if (by_default && search->scan.hosts.count > before)
			return;
	}
}

int registries_find(struct arena *arena, const struct registry_row *row, const char *home, char *const *environment,
                    struct strings *ret_hosts, struct strings *ret_sources)
{
	struct search search = { { .arena = arena, .row = row }, home, environment };
	read_variables(&search);
	read_files(&search, row->files, false);
	if (strings_find(&search.scan.settled, row->main_key) < 0)
		read_files(&search, row->default_files, true);
	if (search.scan.failed)
		return -1;
	*ret_hosts = search.scan.hosts;
	*ret_sources = search.scan.sources;
	return 0;
}
