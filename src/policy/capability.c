/* Capability sets: the baseline, comparing, joining. Every list and every limit is one row of a table, and each list
 * knows how one entry covers another (cover.h); all else follows from that.
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

#include "base/text.h"
#include "policy/cover.h"

const char *const network_mode_names[] = { "none", "hosts", "all" };
_Static_assert(ARRAY_SIZE(network_mode_names) == NETWORK_MODE_MAX, "every mode has a name");

typedef bool (*covered_fn)(const struct strings *roots, const char *entry, bool by_another);

/* What stands for itself alone. */
static bool is_same(const struct strings *roots, const char *entry, bool by_another)
{
	return !by_another && strings_find(roots, entry) >= 0;
}

static const struct list {
	const char *name;
	size_t offset, also;            /* `also`: the list that covers it as well */
	covered_fn covered;
} lists[] = {
#define LIST(list, other, covered) { #list, offsetof(struct capability_set, list), \
	offsetof(struct capability_set, other), covered }
	LIST(fs_read, fs_write, cover_path),
	LIST(fs_write, fs_write, cover_path),
	LIST(programs, programs, cover_path),
	LIST(devices, devices, cover_path),
	LIST(sockets, sockets, cover_path),
	LIST(hosts, hosts, cover_host),
	LIST(publish, publish, is_same),
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
	"**/.env", "**/.env.*", "**/*.pem", "**/*.key", "**/id_rsa*", "**/id_ed25519*",
	"**/.ssh", "**/.aws", "**/.gnupg", "**/.netrc",
};

/* What would run later, outside. */
static const char *const baseline_protect[] = {
	".git/hooks",
	".git/config",
	".git/config.worktree",
	".git/commondir",
	/* of submodules and further working trees; a submodule's name may have slashes */
	".git/modules/**/hooks",
	".git/modules/**/config",
	".git/modules/**/config.worktree",
	".git/modules/**/commondir",
	".git/worktrees/**/hooks",
	".git/worktrees/**/config",
	".git/worktrees/**/config.worktree",
	".git/worktrees/**/commondir",
	".git/**/worktrees/*/gitdir",
	/* as a file or a link: it says where the repository is */
	".git",
	".hg/hgrc",
	".hg/hgrc-not-shared",
	".hg/sharedpath",
	/* as a file: it says where the repository is */
	".jj/repo",
	".jj/repo/config.toml",
	".jj/workspace-config.toml",
	".cordon.toml",
};

/* Repositories, also those of submodules that bear such a name, and branches that do; but a submodule called as
 * branches are is none (names.h). */
static const char *const baseline_exempt[] = {
	".jj/repo/", ".git/", ".git/**/config/", ".git/**/config.worktree/", ".git/**/commondir/", ".git/**/gitdir/",
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
		if (strings_add(arena, list, items[i]) < 0)
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

static enum network_mode effective_network(const struct capability_set *set)
{
	return set->network == NETWORK_HOSTS && !set->hosts.count ? NETWORK_NONE : set->network;
}

/* What exceeds the ceiling in this list, or NULL. */
static const char *list_excess(const struct list *list, const struct capability_set *set,
                               const struct capability_set *ceiling)
{
	const struct strings *entries = list_in(set, list->offset), *roots = list_in(ceiling, list->offset);
	if (list->covered == cover_host &&
	    (effective_network(set) != NETWORK_HOSTS || effective_network(ceiling) != NETWORK_HOSTS))
		return NULL;
	if (entries == &set->programs && !roots->count)
		return NULL;
	if (entries == &set->programs && !entries->count)
		return "any";
	for (size_t i = 0; i < entries->count; i++)
		if (!list->covered(roots, entries->items[i], false) &&
		    (list->also == list->offset ||
		     !list->covered(list_in(ceiling, list->also), entries->items[i], false)))
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
			return exceeds(lists[i].covered == cover_host ? "network" : lists[i].name, subject, ret_excess,
			               ret_subject);
	}
	if (set->spawn && !ceiling->spawn)
		return exceeds("spawn", "true", ret_excess, ret_subject);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limit_in(set, limits[i].offset) > limit_in(ceiling, limits[i].offset))
			return exceeds("limits", limits[i].name, ret_excess, ret_subject);
	return true;
}

/* One entry by itself, so that within decides about it as about any set. */
static int list_excess_of(struct arena *arena, const struct list *list, const struct capability_set *set,
                          const struct capability_set *ceiling, struct strings *ret_list)
{
	const struct strings *entries = list_in(set, list->offset);
	for (size_t i = 0; i < entries->count; i++) {
		struct capability_set one = { .network = list->covered == cover_host ? set->network : NETWORK_NONE };
		if (strings_add(arena, list_of(&one, list->offset), entries->items[i]) < 0)
			return -1;
		if (list_excess(list, &one, ceiling) && strings_add(arena, ret_list, entries->items[i]) < 0)
			return -1;
	}
	return 0;
}

int capability_excess(struct arena *arena, const struct capability_set *set, const struct capability_set *ceiling,
                      struct capability_set *ret_excess)
{
	struct capability_set excess = { .spawn = set->spawn && !ceiling->spawn };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (list_excess_of(arena, &lists[i], set, ceiling, list_of(&excess, lists[i].offset)) < 0)
			return -1;
	if (effective_network(set) > effective_network(ceiling)) {
		excess.network = effective_network(set);
		excess.hosts = excess.network == NETWORK_HOSTS ? set->hosts : (struct strings){ 0 };
	} else if (excess.hosts.count) {
		excess.network = NETWORK_HOSTS;
	}
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limit_in(set, limits[i].offset) > limit_in(ceiling, limits[i].offset))
			*limit_of(&excess, limits[i].offset) = limit_in(set, limits[i].offset);
	*ret_excess = excess;
	return 0;
}

/* Both, in order, where both are in order: what is merged can then be searched as fast as what it was merged from. */
static int join_sorted(struct arena *arena, const struct strings *first, const struct strings *second,
                       struct strings *list)
{
	for (size_t i = 0, j = 0; i < first->count || j < second->count; ) {
		int order = i == first->count ? 1 : j == second->count ? -1 : strcmp(first->items[i], second->items[j]);
		const char *next = order <= 0 ? first->items[i++] : second->items[j++];
		if ((!list->count || strcmp(list->items[list->count - 1], next)) && strings_add(arena, list, next) < 0)
			return -1;
	}
	return 0;
}

/* Otherwise the first list's items come first. */
static int join_unsorted(struct arena *arena, const struct strings *first, const struct strings *second,
                         struct strings *list)
{
	size_t size = 8, total = first->count + second->count;
	while (size < 2 * total)
		size *= 2;
	const char **seen = arena_alloc(arena, size * sizeof(*seen));
	for (size_t i = 0; seen && i < total; i++) {
		const char *item = i < first->count ? first->items[i] : second->items[i - first->count];
		size_t slot = text_hash(TEXT_HASH, item, strlen(item)) & (size - 1);
		while (seen[slot] && strcmp(seen[slot], item))
			slot = (slot + 1) & (size - 1);
		if (!seen[slot] && strings_add(arena, list, item) < 0)
			return -1;
		seen[slot] = item;
	}
	return seen ? 0 : -1;
}

/* The items of both, each once. */
static int join(struct arena *arena, const struct strings *first, const struct strings *second,
                struct strings *ret_list)
{
	struct strings list = { 0 };
	bool unsorted = first->unsorted || second->unsorted;
	if ((unsorted ? join_unsorted : join_sorted)(arena, first, second, &list) < 0)
		return -1;
	*ret_list = list;
	return 0;
}

void capability_choose_limits(struct capability_set *set, const struct limits *chosen)
{
	struct capability_set with = { .limits = *chosen };
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (*limit_of(&with, limits[i].offset))
			*limit_of(set, limits[i].offset) = *limit_of(&with, limits[i].offset);
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
		if (lists[i].covered == cover_host) {
			first = base->network == NETWORK_HOSTS && set.network == NETWORK_HOSTS ? first : &no_hosts;
			second = grant->network == NETWORK_HOSTS && set.network == NETWORK_HOSTS ? second : &no_hosts;
		}
		if (join(arena, first, second, list_of(&set, lists[i].offset)) < 0)
			return -1;
	}
	if (join(arena, &base->deny, &grant->deny, &set.deny) < 0 ||
	    join(arena, &base->protect, &grant->protect, &set.protect) < 0)
		return -1;
	capability_choose_limits(&set, &grant->limits);
	*ret_set = set;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort(struct strings *list)
{
	if (list->unsorted)
		qsort(list->items, list->count, sizeof(*list->items), by_text);
	list->unsorted = false;
}

/* The sorted entries that nothing else in the list, or in `also`, covers; `also` may be the list itself. */
static int smallest(struct arena *arena, const struct list *list, const struct strings *also, struct strings *entries)
{
	struct strings kept = { 0 };
	for (size_t i = 0; i < entries->count; i++) {
		bool needless = (i && !strcmp(entries->items[i], entries->items[i - 1])) ||
		                list->covered(entries, entries->items[i], true) ||
		                (also != entries && list->covered(also, entries->items[i], false));
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
		if (lists[i].covered == cover_host && made.network != NETWORK_HOSTS)
			continue;
		for (size_t j = 0; j < entries->count; j++) {
			const char *entry = entries->items[j];
			if (lists[i].covered != is_same)
				entry = lists[i].covered == cover_host ? cover_host_normalise(arena, entry) :
				                                         path_normalise(arena, entry);
			if (strings_add(arena, normal, entry) == 0)
				continue;
			if (ret_subject && lists[i].covered == cover_path && entries->items[j][0] != '/')
				*ret_subject = entries->items[j];
			return -1;
		}
		sort(normal);
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
