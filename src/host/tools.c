/* See tools.h. A few answers are kept, since a process may run commands of callers whose environments differ; the
 * one that was used longest ago makes room. An answer is its request's, word for word, and stands as long as its
 * watches does. Of the environment, which has secrets in it, only a hash is kept. */
#include "host/tools.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "host/cache.h"
#include "host/git-global.h"
#include "host/git-identity.h"
#include "host/git-user.h"
#include "host/toolchain.h"
#include "session/beneath.h"

#define KEPT_MAX 8
#define HASH 32

struct answer {
	struct arena arena;
	struct host_watch_set *watches;
	struct host_tools_request request;      /* without its environment */
	unsigned char environment[HASH];
	struct strings chosen, writable;        /* of the request */
	bool known;
	uint64_t used;
	struct host_tools tools;
};

struct host_tools_kept {
	pthread_mutex_t mutex;
	struct host_watch *host_watch;
	uint64_t clock;
	unsigned char key[HASH];
	struct answer answers[KEPT_MAX];
};

struct host_tools_kept *host_tools_new(struct host_watch *host_watch)
{
	struct host_tools_kept *kept = calloc(1, sizeof(*kept));
	if (!kept)
		return NULL;
	kept->host_watch = host_watch;
	randombytes_buf(kept->key, sizeof(kept->key));
	pthread_mutex_init(&kept->mutex, NULL);
	return kept;
}

static void forget(struct answer *answer)
{
	host_watch_set_free(answer->watches);
	arena_free(&answer->arena);
	*answer = (struct answer){ 0 };
}

void host_tools_free(struct host_tools_kept *kept)
{
	if (!kept)
		return;
	for (size_t i = 0; i < KEPT_MAX; i++)
		forget(&kept->answers[i]);
	pthread_mutex_destroy(&kept->mutex);
	free(kept);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

static int add_shown(struct arena *arena, struct host_entries *shown, const struct host_entry *entry)
{
	if (shown->count == shown->capacity) {
		size_t capacity = shown->capacity ? shown->capacity * 2 : 16;
		struct host_entry *items = arena_alloc(arena, capacity * sizeof(*items));
		if (!items)
			return -1;
		if (shown->count)
			memcpy(items, shown->items, shown->count * sizeof(*items));
		shown->items = items;
		shown->capacity = capacity;
	}
	shown->items[shown->count++] = *entry;
	return 0;
}

static int show(struct arena *arena, const char *path, const char *workspace, struct host_watch_set *watches,
                struct host_entries *shown)
{
	struct place place;
	host_watch_path(watches, path);
	if (path_within(path, workspace) || beneath_resolve(arena, path, &place, NULL, NULL) < 0)
		return 0;
	return add_shown(arena, shown, &(struct host_entry){ .path = path, .source = place.path,
	                                                     .kind = place.is_directory ? HOST_DIRECTORY : HOST_FILE,
	                                                     .device = place.device, .inode = place.inode });
}

static int mask(struct arena *arena, const char *path, struct host_watch_set *watches, struct places *masked)
{
	struct stat info;
	host_watch_path(watches, path);
	if (stat(path, &info) < 0)
		return 0;
	return places_add(arena, masked, &(struct place){ .path = path, .is_directory = S_ISDIR(info.st_mode) });
}

static const char *variable(const char *const *environment, const char *name)
{
	size_t length = strlen(name);
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static int find_caches(struct arena *arena, const struct host_tools_request *request, const char *home,
                       struct host_watch_set *watches, struct host_tools *tools)
{
	const struct host_cache_search search = { .home = home,
		                                  .environment = request->environment,
		                                  .writable = request->writable,
		                                  .inside_home = request->inside_home,
		                                  .watches = watches };
	struct host_cache_answer found;
	if (host_cache_find(arena, &search, &found) < 0 ||
	    strings_add_all(arena, &tools->environment, &found.environment) < 0)
		return -1;
	tools->caches = found.caches;
	for (size_t i = 0; i < found.mask.count; i++)
		if (places_add(arena, &tools->masked, &(struct place){ .path = found.mask.items[i] }) < 0)
			return -1;
	return 0;
}

/* The text of /etc/gitconfig, and what core.excludesFile in it names. */
static int find_git(struct arena *arena, const struct host_tools_request *request, const char *home,
                    const struct strings *shown, struct host_watch_set *watches, struct host_tools *tools,
                    struct cordon_error *err)
{
	const char *xdg = variable(request->environment, "XDG_CONFIG_HOME"), *name, *email, *settings;
	const struct git_global global = { .home = home, .xdg_config_home = xdg, .environment = request->environment,
		                           .workspace = request->workspace, .watches = watches };
	if (git_identity(arena, home, xdg, request->environment, watches, &name, &email, err) < 0)
		return -1;
	if (git_global_identity(arena, &global, &name, &email) < 0 ||
	    git_global_ignored(arena, &global, &tools->git_ignore) < 0)
		return fail_oom(err);
	const char *identity = git_identity_text(arena, name, email);
	const struct git_user_search search = { home, xdg, request->environment, shown, watches };
	if (!identity || git_user_settings(arena, &search, &settings) < 0)
		return fail_oom(err);
	const char *ignore = tools->git_ignore ? "[core]\n\texcludesFile = " HOST_GIT_IGNORE "\n" : "";
	if ((name || email || settings || *ignore) &&
	    !(tools->git_config = arena_printf(arena, "%s%s%s", identity, settings ? settings : "", ignore)))
		return fail_oom(err);
	return 0;
}

static int find_all(struct arena *arena, const struct host_tools_request *request, struct host_watch_set *watches,
                    struct host_tools *tools, struct cordon_error *err)
{
	const char *home = variable(request->environment, "HOME");
	struct toolchains found;
	if (toolchain_find(arena, home, request->environment, request->chosen, request->writable, watches, &found,
	                   err) < 0 ||
	    toolchain_environment(arena, &found, request->inside_home, &tools->environment, err) < 0)
		return -1;
	for (size_t i = 0; i < found.show.count; i++)
		if (show(arena, found.show.items[i], request->workspace, watches, &tools->shown) < 0)
			return fail_oom(err);
	for (size_t i = 0; i < found.mask.count; i++)
		if (mask(arena, found.mask.items[i], watches, &tools->masked) < 0)
			return fail_oom(err);
	if (find_caches(arena, request, home, watches, tools) < 0)
		return fail_oom(err);
	return find_git(arena, request, home, &found.show, watches, tools, err);
}

/* `watches` may be NULL. */
static int look(struct arena *arena, const struct host_tools_request *request, struct host_watch_set *watches,
                struct host_tools *ret_tools, struct cordon_error *err)
{
	struct host_tools tools = { 0 };
	if (request->tools_dir && show(arena, request->tools_dir, request->workspace, watches, &tools.shown) < 0)
		return fail_oom(err);
	if (!request->only_tools_dir && find_all(arena, request, watches, &tools, err) < 0)
		return -1;
	*ret_tools = tools;
	return 0;
}

/* ---- keeping ---------------------------------------------------------------------------------------------------- */

static bool same_list(const char *const *a, const char *const *b)
{
	size_t i = 0;
	if (!a || !b)
		return (!a || !*a) && (!b || !*b);
	while (a[i] && b[i] && !strcmp(a[i], b[i]))
		i++;
	return !a[i] && !b[i];
}

static bool same_strings(const struct strings *a, const struct strings *b)
{
	return !a == !b && (!a || same_list(a->items, b->items));
}

static bool same_text(const char *a, const char *b)
{
	return !a == !b && (!a || !strcmp(a, b));
}

/* In this order, as what was looked for first may come first. */
static void hash_environment(const struct host_tools_kept *kept, const char *const *environment,
                             unsigned char ret_hash[HASH])
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, kept->key, sizeof(kept->key), HASH);
	for (; environment && *environment; environment++)
		crypto_generichash_update(&state, (const unsigned char *)*environment, strlen(*environment) + 1);
	crypto_generichash_final(&state, ret_hash, HASH);
	sodium_memzero(&state, sizeof(state));
}

/* All but the version, which the watches compares. */
static bool is_about(const struct answer *answer, const struct host_tools_request *request,
                     const unsigned char environment[HASH])
{
	const struct host_tools_request *own = &answer->request;
	return answer->watches && own->user == request->user && own->only_tools_dir == request->only_tools_dir &&
	       same_text(own->workspace, request->workspace) && same_text(own->inside_home, request->inside_home) &&
	       same_text(own->tools_dir, request->tools_dir) && same_strings(own->chosen, request->chosen) &&
	       same_strings(own->writable, request->writable) && !memcmp(answer->environment, environment, HASH);
}

static int copy_list(struct arena *arena, const char *const *from, struct strings *to)
{
	for (; from && *from; from++)
		if (strings_add(arena, to, arena_strdup(arena, *from)) < 0)
			return -1;
	return 0;
}

static const char *copy_text(struct arena *arena, const char *text, bool *failed)
{
	char *copy = text ? arena_strdup(arena, text) : NULL;
	*failed |= text && !copy;
	return copy;
}

static int keep_request(struct answer *answer, const struct host_tools_request *request,
                        const unsigned char environment[HASH])
{
	struct arena *arena = &answer->arena;
	bool failed = false;
	answer->request = *request;
	memcpy(answer->environment, environment, HASH);
	answer->chosen = answer->writable = (struct strings){ 0 };
	failed |= (request->chosen && copy_list(arena, request->chosen->items, &answer->chosen) < 0) ||
	          (request->writable && copy_list(arena, request->writable->items, &answer->writable) < 0);
	answer->request.environment = NULL;
	answer->request.chosen = request->chosen ? &answer->chosen : NULL;
	answer->request.writable = request->writable ? &answer->writable : NULL;
	answer->request.workspace = copy_text(arena, request->workspace, &failed);
	answer->request.inside_home = copy_text(arena, request->inside_home, &failed);
	answer->request.tools_dir = copy_text(arena, request->tools_dir, &failed);
	return failed ? -1 : 0;
}

/* The answer to this request, or the one to make room for it. */
static struct answer *find_answer(struct host_tools_kept *kept, const struct host_tools_request *request,
                                  const unsigned char environment[HASH])
{
	struct answer *oldest = &kept->answers[0];
	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (is_about(&kept->answers[i], request, environment))
			return &kept->answers[i];
		if (kept->answers[i].used < oldest->used)
			oldest = &kept->answers[i];
	}
	forget(oldest);
	return oldest;
}

static int copy_tools(struct arena *arena, const struct host_tools *from, struct host_tools *ret_tools)
{
	struct host_tools tools = { 0 };
	bool failed = copy_list(arena, from->environment.items, &tools.environment) < 0;
	for (size_t i = 0; i < from->shown.count && !failed; i++) {
		struct host_entry entry = from->shown.items[i];
		entry.path = copy_text(arena, entry.path, &failed);
		entry.source = copy_text(arena, entry.source, &failed);
		failed |= add_shown(arena, &tools.shown, &entry) < 0;
	}
	for (size_t i = 0; i < from->caches.count && !failed; i++) {
		struct host_cache cache = from->caches.items[i];
		cache.source = copy_text(arena, cache.source, &failed);
		cache.target = copy_text(arena, cache.target, &failed);
		failed |= host_cache_add(arena, &tools.caches, &cache) < 0;
	}
	for (size_t i = 0; i < from->masked.count && !failed; i++) {
		struct place place = from->masked.items[i];
		place.path = copy_text(arena, place.path, &failed);
		failed |= places_add(arena, &tools.masked, &place) < 0;
	}
	tools.git_config = copy_text(arena, from->git_config, &failed);
	tools.git_ignore = copy_text(arena, from->git_ignore, &failed);
	*ret_tools = tools;
	return failed ? -1 : 0;
}

/* What is found may point into the environment, so it is copied. */
static int look_anew(struct answer *answer, const struct host_tools_request *request, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct host_tools tools;
	int status = look(&arena, request, answer->watches, &tools, err);
	if (status == 0 && copy_tools(&answer->arena, &tools, &answer->tools) < 0)
		status = fail_oom(err);
	arena_wipe(&arena);
	return status;
}

static int renew(struct host_tools_kept *kept, struct answer *answer, const struct host_tools_request *request,
                 const unsigned char environment[HASH], struct cordon_error *err)
{
	answer->known = false;
	arena_free(&answer->arena);
	if ((!answer->watches && !(answer->watches = host_watch_set_new(kept->host_watch))) ||
	    keep_request(answer, request, environment) < 0) {
		forget(answer);
		return fail_oom(err);
	}
	host_watch_begin(answer->watches, request->mounts);
	if (look_anew(answer, request, err) < 0) {
		forget(answer);
		return -1;
	}
	answer->known = true;
	return 0;
}

int host_tools_find(struct arena *arena, struct host_tools_kept *kept, const struct host_tools_request *request,
                    struct host_tools *ret_tools, struct cordon_error *err)
{
	struct host_tools tools;
	unsigned char environment[HASH];
	hash_environment(kept, request->environment, environment);
	pthread_mutex_lock(&kept->mutex);
	struct answer *answer = find_answer(kept, request, environment);
	int status = answer->known && host_watch_unchanged(answer->watches, request->mounts)
	               ? 0 : renew(kept, answer, request, environment, err);
	answer->used = ++kept->clock;
	if (status == 0 && copy_tools(arena, &answer->tools, &tools) < 0)
		status = fail_oom(err);
	pthread_mutex_unlock(&kept->mutex);
	if (status == 0)
		*ret_tools = tools;
	return status;
}
