/* Capability sets: the baseline, comparing, joining. Every list and every limit is one row of a table, and each list
 * knows how one entry covers another; all else follows from that.
 *
 *     within    each entry is covered by one of the ceiling's      (fs_read: or by one of its fs_write)
 *     merge     the entries of both
 *     normalise the entries that no other one covers, sorted
 *
 * An entry that names a directory covers all beneath it; that holds for programs, devices and sockets as for files. */
#include "policy/capability.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

const char *const network_mode_names[] = { "none", "hosts", "all" };
_Static_assert(ARRAY_SIZE(network_mode_names) == NETWORK_MODE_MAX, "every mode has a name");

typedef bool (*covers_fn)(const char *root, const char *entry);

static bool is_normal(const char *path)
{
	if (path[0] != '/')
		return false;
	if (!path[1])
		return true;
	while (*path == '/') {
		size_t size = strcspn(++path, "/");
		if (size == 0 || (size == 1 && path[0] == '.') || (size == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += size;
	}
	return true;
}

/* A path that is not normalised could say one place and mean another. */
static bool path_covers(const char *root, const char *entry)
{
	return is_normal(root) && is_normal(entry) && path_within(entry, root);
}

/* Is the host an address rather than a name? As browsers tell: the last label begins with a digit, or it is in
 * brackets. Such a host is never covered by a wildcard. */
static bool is_address(const char *host, size_t length)
{
	const char *dot = memrchr(host, '.', length);
	const char *last = dot ? dot + 1 : host;
	return length == 0 || host[0] == '[' || memchr(host, ':', length) || (*last >= '0' && *last <= '9');
}

/* "*.example.com:443" covers "a.example.com:443" and "*.a.example.com:443", not "example.com:443". */
static bool host_covers(const char *root, const char *entry)
{
	if (!strcasecmp(root, entry))
		return true;
	size_t root_length = strlen(root), length = strlen(entry);
	const char *colon = strrchr(entry, ':');
	if (root_length < 3 || root[0] != '*' || root[1] != '.' || length < root_length || !colon ||
	    is_address(entry, (size_t)(colon - entry)))
		return false;
	return entry[0] != '.' && !strcasecmp(entry + length - (root_length - 1), root + 1);
}

static const struct list {
	const char *name;
	size_t offset, also;            /* `also`: the list that covers it as well */
	covers_fn covers;
} lists[] = {
#define LIST(list, other, covers) { #list, offsetof(struct capability_set, list), \
	offsetof(struct capability_set, other), covers }
	LIST(fs_read, fs_write, path_covers),
	LIST(fs_write, fs_write, path_covers),
	LIST(programs, programs, path_covers),
	LIST(devices, devices, path_covers),
	LIST(sockets, sockets, path_covers),
	LIST(hosts, hosts, host_covers),
#undef LIST
};

/* The defaults. */
static const struct limit {
	const char *name;
	size_t offset;
	uint64_t baseline;
} limits[] = {
#define LIMIT(name, field, baseline) { name, offsetof(struct capability_set, limits.field), baseline }
	LIMIT("memory", memory_bytes, 2048ull << 20),
	LIMIT("cpu", cpu_percent, 100),
	LIMIT("processes", processes, 64),
	LIMIT("disk", disk_bytes, 1024ull << 20),
	LIMIT("time", wall_ms, 60000),
	LIMIT("stdout", stdout_bytes, 1ull << 20),
	LIMIT("stderr", stderr_bytes, 256ull << 10),
	LIMIT("open_files", open_files, 1024),
	LIMIT("tmp", tmp_bytes, 256ull << 20),
#undef LIMIT
};
_Static_assert(ARRAY_SIZE(limits) * sizeof(uint64_t) == sizeof(struct limits), "every limit has a row");

/* Secrets that lie about in projects and homes. */
static const char *const baseline_deny[] = {
	"**/.env", "**/.env.*", "**/*.pem", "**/id_rsa*", "**/id_ed25519*",
	"**/.ssh", "**/.aws", "**/.gnupg", "**/.netrc",
};

/* What would run later, outside. */
static const char *const baseline_protect[] = {
	".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir",
	/* of submodules and further working trees; a submodule's name may have slashes */
	".git/modules/**/hooks", ".git/modules/**/config", ".git/modules/**/config.worktree", ".git/modules/**/commondir",
	".git/worktrees/**/hooks", ".git/worktrees/**/config", ".git/worktrees/**/config.worktree",
	".git/worktrees/**/commondir", ".git/**/worktrees/*/gitdir",
	/* as a file or a link: it says where the repository is */
	".git",
	".cordon.toml",
};

/* Repositories, also those of submodules that bear such a name, and branches that do. */
static const char *const baseline_exempt[] = {
	".git/", ".git/**/config/", ".git/**/config.worktree/", ".git/**/commondir/", ".git/**/gitdir/",
	".git/**/refs/heads/**", ".git/**/refs/remotes/**", ".git/**/refs/tags/**", ".git/**/logs/refs/**",
};

static struct strings *list_of(struct capability_set *set, size_t offset)
{
	return (struct strings *)((char *)set + offset);
}

static const struct strings *list_in(const struct capability_set *set, size_t offset)
{
	return (const struct strings *)((const char *)set + offset);
}

static uint64_t *limit_of(struct capability_set *set, size_t offset)
{
	return (uint64_t *)((char *)set + offset);
}

static uint64_t limit_in(const struct capability_set *set, size_t offset)
{
	uint64_t value = *(const uint64_t *)((const char *)set + offset);
	return value ? value : UINT64_MAX;
}

static int add_all(struct arena *arena, struct strings *list, const char *const *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strings_find(list, items[i]) < 0 && strings_add(arena, list, items[i]) < 0)
			return -1;
	return 0;
}

int capability_baseline(struct arena *arena, bool spawn, struct capability_set *ret_set)
{
	struct capability_set set = { .network = NETWORK_NONE, .spawn = spawn };
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		*limit_of(&set, limits[i].offset) = limits[i].baseline;
	if (add_all(arena, &set.deny, baseline_deny, ARRAY_SIZE(baseline_deny)) < 0 ||
	    add_all(arena, &set.protect, baseline_protect, ARRAY_SIZE(baseline_protect)) < 0 ||
	    add_all(arena, &set.exempt, baseline_exempt, ARRAY_SIZE(baseline_exempt)) < 0)
		return -1;
	*ret_set = set;
	return 0;
}

static bool covered(const struct strings *roots, const char *entry, covers_fn covers)
{
	for (size_t i = 0; i < roots->count; i++)
		if (covers(roots->items[i], entry))
			return true;
	return false;
}

static enum network_mode effective_network(const struct capability_set *set)
{
	return set->network == NETWORK_HOSTS && !set->hosts.count ? NETWORK_NONE : set->network;
}

/* What exceeds the ceiling in this list, or NULL. */
static const char *list_excess(const struct list *list, const struct capability_set *set,
                               const struct capability_set *ceiling)
{
	const struct strings *entries = list_in(set, list->offset), *roots = list_in(ceiling, list->offset);
	if (list->covers == host_covers &&
	    (effective_network(set) != NETWORK_HOSTS || effective_network(ceiling) != NETWORK_HOSTS))
		return NULL;
	if (entries == &set->programs && !roots->count)
		return NULL;
	if (entries == &set->programs && !entries->count)
		return "any";
	for (size_t i = 0; i < entries->count; i++)
		if (!covered(roots, entries->items[i], list->covers) &&
		    !covered(list_in(ceiling, list->also), entries->items[i], list->covers))
			return entries->items[i];
	return NULL;
}

static bool exceeds(const char *part, const char *subject, const char **ret_excess, const char **ret_subject)
{
	if (ret_excess)
		*ret_excess = part;
	if (ret_subject)
		*ret_subject = subject;
	return false;
}

bool capability_within(const struct capability_set *set, const struct capability_set *ceiling, const char **ret_excess,
                       const char **ret_subject)
{
	if (effective_network(set) > effective_network(ceiling))
		return exceeds("network", set->network == NETWORK_HOSTS ? set->hosts.items[0] :
		               network_mode_names[set->network], ret_excess, ret_subject);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const char *subject = list_excess(&lists[i], set, ceiling);
		if (subject)
			return exceeds(lists[i].covers == host_covers ? "network" : lists[i].name, subject, ret_excess,
			               ret_subject);
	}
	if (set->spawn && !ceiling->spawn)
		return exceeds("spawn", "true", ret_excess, ret_subject);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limit_in(set, limits[i].offset) > limit_in(ceiling, limits[i].offset))
			return exceeds("limits", limits[i].name, ret_excess, ret_subject);
	return true;
}

static int join(struct arena *arena, const struct strings *first, const struct strings *second,
                struct strings *ret_list)
{
	struct strings list = { 0 };
	if (add_all(arena, &list, first->items, first->count) < 0 ||
	    add_all(arena, &list, second->items, second->count) < 0)
		return -1;
	*ret_list = list;
	return 0;
}

int capability_merge(struct arena *arena, const struct capability_set *base, const struct capability_set *grant,
                     struct capability_set *ret_set)
{
	static const struct strings no_hosts;
	struct capability_set set = { .network = base->network > grant->network ? base->network : grant->network,
	                              .spawn = base->spawn || grant->spawn, .limits = base->limits,
	                              .exempt = base->exempt };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const struct strings *first = list_in(base, lists[i].offset), *second = list_in(grant, lists[i].offset);
		if (lists[i].covers == host_covers) {
			first = base->network == NETWORK_HOSTS && set.network == NETWORK_HOSTS ? first : &no_hosts;
			second = grant->network == NETWORK_HOSTS && set.network == NETWORK_HOSTS ? second : &no_hosts;
		}
		if (join(arena, first, second, list_of(&set, lists[i].offset)) < 0)
			return -1;
	}
	if (join(arena, &base->deny, &grant->deny, &set.deny) < 0 ||
	    join(arena, &base->protect, &grant->protect, &set.protect) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (*limit_of(&(struct capability_set){ .limits = grant->limits }, limits[i].offset))
			*limit_of(&set, limits[i].offset) = limit_in(grant, limits[i].offset);
	*ret_set = set;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *normal_entry(struct arena *arena, const struct list *list, const char *entry)
{
	if (list->covers == path_covers)
		return path_normalise(arena, entry);
	char *host = arena_strdup(arena, entry);
	for (char *at = host; at && *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at += 'a' - 'A';
	return host;
}

/* The sorted entries that nothing else in the list, or in `also`, covers. */
static int smallest(struct arena *arena, const struct list *list, const struct strings *also, struct strings *entries)
{
	struct strings kept = { 0 };
	if (entries->count)
		qsort(entries->items, entries->count, sizeof(*entries->items), by_text);
	for (size_t i = 0; i < entries->count; i++) {
		bool needless = i && !strcmp(entries->items[i], entries->items[i - 1]);
		for (size_t j = 0; j < entries->count && !needless; j++)
			needless = strcmp(entries->items[i], entries->items[j]) &&
			           list->covers(entries->items[j], entries->items[i]);
		if (!needless && also != entries)
			needless = covered(also, entries->items[i], list->covers);
		if (!needless && strings_add(arena, &kept, entries->items[i]) < 0)
			return -1;
	}
	*entries = kept;
	return 0;
}

int capability_normalise(struct arena *arena, const struct capability_set *set, struct capability_set *ret_set,
                         const char **ret_subject)
{
	struct capability_set made = *set;
	made.network = effective_network(set);
	if (ret_subject)
		*ret_subject = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const struct strings *entries = list_in(set, lists[i].offset);
		struct strings *normal = list_of(&made, lists[i].offset);
		*normal = (struct strings){ 0 };
		if (lists[i].covers == host_covers && made.network != NETWORK_HOSTS)
			continue;
		for (size_t j = 0; j < entries->count; j++) {
			if (strings_add(arena, normal, normal_entry(arena, &lists[i], entries->items[j])) == 0)
				continue;
			if (ret_subject && lists[i].covers == path_covers && entries->items[j][0] != '/')
				*ret_subject = entries->items[j];
			return -1;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct strings *entries = list_of(&made, lists[i].offset);
		if (smallest(arena, &lists[i], list_of(&made, lists[i].also), entries) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (*limit_of(&made, limits[i].offset) == UINT64_MAX)
			*limit_of(&made, limits[i].offset) = 0;
	*ret_set = made;
	return 0;
}
