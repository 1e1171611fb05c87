/* The store: the files that are watched, and the snapshots made of them.
 *
 * A snapshot depends on three versions of files and on which of their [[session]] match, and on nothing else. So few
 * are ever made, whatever the number of sessions, and none where nothing changed: a stat for each file, and one
 * reference more. */
#include "config/store.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/path-given.h"
#include "config/reload.h"

#define SNAPSHOTS_MAX 32
#define PROJECTS_MAX 32
#define WORD_BITS 64

/* Which [[session]] of each file say something about a session. */
struct matched {
	uint64_t words[CONFIG_LAYER_MAX][CONFIG_BLOCKS_MAX / WORD_BITS];
};

struct snapshot {
	struct config config;                   /* first: it is what callers have */
	atomic_uint refs;
	struct arena arena;
	struct config_version *defaults, *layers[CONFIG_LAYER_MAX];
	struct matched matched;
	struct config_state state;
	struct snapshot *base;                  /* whose copy this is, with a note; or NULL */
	uint64_t used;
};

struct config_store {
	pthread_mutex_t mutex;
	struct arena arena;
	struct config_files names;
	struct config_shelf shelf;
	struct config_version *defaults;
	struct config_watched files[CONFIG_PROJECT];
	struct config_watched *projects;        /* PROJECTS_MAX of them, as soon as there is one */
	struct snapshot *snapshots[SNAPSHOTS_MAX];
	uint64_t ticks;
	/* Over the two files; or NULL. The workspace's file is looked at each time. */
	struct host_watch_set *watches;
};

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static const char *copy(struct config_store *store, const char *text, bool *failed)
{
	const char *copied = text ? arena_strdup(&store->arena, text) : NULL;
	*failed |= text && !copied;
	return copied;
}

static int fill(struct config_store *store, const char *data_dir, const struct config_files *files,
                struct cordon_error *err)
{
	const char *const paths[] = { files->only ? NULL : files->system, files->only ? files->only : files->user };
	bool failed = false;
	store->names = (struct config_files){ copy(store, files->system, &failed), copy(store, files->user, &failed),
	                                      copy(store, files->only, &failed), copy(store, files->home, &failed) };
	store->shelf = (struct config_shelf){ .data_dir = copy(store, data_dir, &failed), .home = store->names.home };
	for (enum config_layer layer = 0; layer < CONFIG_PROJECT; layer++) {
		store->files[layer] = (struct config_watched){ .layer = layer, .strict = files->only != NULL,
		                                               .path = paths[layer] ? strdup(paths[layer]) : NULL };
		failed |= paths[layer] && !store->files[layer].path;
	}
	return failed ? fail_oom(err) : 0;
}

int config_store_open_files(const char *data_dir, const struct config_files *files, struct config_store **ret_store,
                            struct cordon_error *err)
{
	struct config_store *store = calloc(1, sizeof(*store));
	if (!store)
		return fail_oom(err);
	pthread_mutex_init(&store->mutex, NULL);
	if (fill(store, data_dir, files, err) < 0) {
		config_store_unref(store);
		return -1;
	}
	*ret_store = store;
	return 0;
}

/* From where it is now: the program may go elsewhere. */
static const char *absolute(struct arena *arena, const char *path)
{
	char here[PATH_MAX], room[PATH_MAX];
	const char *why, *given = path_given(path, room, sizeof(room), &why);
	/* What cannot be a path is looked for as it is, and not found. */
	path = given && given != path ? arena_strdup(arena, given) : path;
	return !path || *path == '/' || !getcwd(here, sizeof(here)) ? path : arena_printf(arena, "%s/%s", here, path);
}

int config_store_open(const char *data_dir, const char *only, struct config_store **ret_store, struct cordon_error *err)
{
	const char *home = getenv("HOME"), *config_home = getenv("XDG_CONFIG_HOME");
	struct arena arena = { 0 };
	struct config_files files = { .system = CONFIG_SYSTEM_FILE,
		                      .only = only && *only ? absolute(&arena, only) : NULL,
		                      .home = home && *home == '/' ? home : NULL };
	bool named = config_home && *config_home == '/';
	if (named || files.home)
		files.user = arena_printf(&arena, "%s%s/cordon/config.toml", named ? config_home : files.home,
		                          named ? "" : "/.config");
	bool failed = ((named || files.home) && !files.user) || (only && *only && !files.only);
	int result = failed ? fail_oom(err) : config_store_open_files(data_dir, &files, ret_store, err);
	arena_free(&arena);
	return result;
}

int config_store_watch(struct config_store *store, struct host_watch *host_watch, struct cordon_error *err)
{
	store->watches = host_watch_set_new(host_watch);
	return store->watches ? 0 : fail_oom(err);
}

const struct config_files *config_store_files(const struct config_store *store)
{
	return &store->names;
}

void config_store_unref(struct config_store *store)
{
	if (!store)
		return;
	for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
		if (store->snapshots[i])
			config_unref(&store->snapshots[i]->config);
	for (size_t i = 0; store->projects && i < PROJECTS_MAX; i++)
		config_watched_free(&store->projects[i]);
	free(store->projects);
	for (size_t i = 0; i < ARRAY_SIZE(store->files); i++)
		config_watched_free(&store->files[i]);
	host_watch_set_free(store->watches);
	config_version_unref(store->defaults);
	pthread_mutex_destroy(&store->mutex);
	arena_free(&store->arena);
	free(store);
}

/* ---- snapshots -------------------------------------------------------------------------------------------------- */

static const struct snapshot *snapshot_of(const struct config *config)
{
	const struct snapshot *snapshot = (const struct snapshot *)config;
	return snapshot->base ? snapshot->base : snapshot;
}

const struct config *config_ref(const struct config *config)
{
	atomic_fetch_add(&((struct snapshot *)config)->refs, 1);
	return config;
}

void config_unref(const struct config *config)
{
	struct snapshot *snapshot = (struct snapshot *)config;
	if (!snapshot || atomic_fetch_sub(&snapshot->refs, 1) != 1)
		return;
	for (size_t i = 0; i < CONFIG_LAYER_MAX; i++)
		config_version_unref(snapshot->layers[i]);
	config_version_unref(snapshot->defaults);
	config_unref(snapshot->base ? &snapshot->base->config : NULL);
	arena_free(&snapshot->arena);
	free(snapshot);
}

const struct config_value *config_snapshot_values(const struct config *config)
{
	return snapshot_of(config)->state.values;
}

const struct config_value *config_snapshot_defaults(const struct config *config)
{
	return snapshot_of(config)->defaults->file.values;
}

const struct config_block *config_snapshot_blocks(const struct config *config, enum config_layer layer,
                                                  size_t *ret_count)
{
	const struct config_version *version = snapshot_of(config)->layers[layer];
	*ret_count = version ? version->file.block_count : 0;
	return version ? version->file.blocks : NULL;
}

const struct config_block *config_snapshot_tables(const struct config *config, enum config_layer layer,
                                                  enum config_section section, size_t *ret_count)
{
	const struct config_version *version = snapshot_of(config)->layers[layer];
	bool is_gateway = section == SECTION_gateway;
	*ret_count = !version ? 0 : is_gateway ? version->file.gateway_count : version->file.credential_count;
	return !version ? NULL : is_gateway ? version->file.gateways : version->file.credentials;
}

const char *config_snapshot_file(const struct config *config, enum config_layer layer)
{
	const struct config_version *version = snapshot_of(config)->layers[layer];
	return version ? version->path : NULL;
}

/* That a project only narrows was checked key by key; this is the whole, once more. */
static int check_ceiling(struct config_store *store, struct snapshot *snapshot, const char *session_id,
                         struct cordon_error *err)
{
	struct config_version *layers[CONFIG_LAYER_MAX];
	struct config_state state;
	struct capability_set ceiling;
	const char *excess = NULL, *subject = NULL;
	memcpy(layers, snapshot->layers, sizeof(layers));
	layers[CONFIG_PROJECT] = NULL;
	if (!snapshot->layers[CONFIG_PROJECT])
		return 0;
	if (config_stack(&snapshot->arena, &store->shelf, layers, session_id, &state, err) < 0)
		return -1;
	if (config_capabilities(&snapshot->arena, state.values, &ceiling) < 0)
		return fail_oom(err);
	if (capability_within(&snapshot->config.baseline, &ceiling, &excess, &subject))
		return 0;
	return fail(err, CORDON_E_CONFIG_INVALID, 0, snapshot->layers[CONFIG_PROJECT]->path,
	            "the project's configuration exceeds what is in force: %s (%s)", excess, subject ? subject : "");
}

static int make_snapshot(struct config_store *store, struct config_version *const *layers,
                         const struct matched *matched, const char *session_id, struct snapshot **ret_snapshot,
                         struct cordon_error *err)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	if (!snapshot)
		return fail_oom(err);
	atomic_init(&snapshot->refs, 1);
	snapshot->matched = *matched;
	snapshot->defaults = store->defaults;
	config_version_ref(store->defaults);
	for (size_t i = 0; i < CONFIG_LAYER_MAX; i++) {
		snapshot->layers[i] = layers[i];
		config_version_ref(layers[i]);
	}
	if (config_stack(&snapshot->arena, &store->shelf, layers, session_id, &snapshot->state, err) < 0 ||
	    config_assemble(&snapshot->arena, &snapshot->state, &snapshot->config, err) < 0 ||
	    check_ceiling(store, snapshot, session_id, err) < 0) {
		config_unref(&snapshot->config);
		return -1;
	}
	*ret_snapshot = snapshot;
	return 0;
}

static void match_blocks(struct config_version *const *layers, const char *session_id, struct matched *ret_matched)
{
	*ret_matched = (struct matched){ 0 };
	for (size_t layer = 0; session_id && layer < CONFIG_LAYER_MAX; layer++)
		for (size_t i = 0; layers[layer] && i < layers[layer]->file.block_count; i++)
			if (config_block_matches(&layers[layer]->file.blocks[i], session_id))
				ret_matched->words[layer][i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
}

/* One that was made before, or a new one in the place of what was not used the longest. Borrowed from the store. */
static int find_snapshot(struct config_store *store, struct config_version *const *layers, const char *session_id,
                         struct snapshot **ret_snapshot, struct cordon_error *err)
{
	struct matched matched;
	struct snapshot **oldest = &store->snapshots[0], *made = NULL;
	match_blocks(layers, session_id, &matched);
	for (struct snapshot **at = store->snapshots; at < store->snapshots + SNAPSHOTS_MAX; at++) {
		if (*at && !memcmp((*at)->layers, layers, sizeof((*at)->layers)) &&
		    !memcmp(&(*at)->matched, &matched, sizeof(matched))) {
			(*at)->used = ++store->ticks;
			*ret_snapshot = *at;
			return 0;
		}
		if (*oldest && (!*at || (*at)->used < (*oldest)->used))
			oldest = at;
	}
	if (make_snapshot(store, layers, &matched, session_id, &made, err) < 0)
		return -1;
	if (*oldest)
		config_unref(&(*oldest)->config);
	made->used = ++store->ticks;
	*ret_snapshot = *oldest = made;
	return 0;
}

/* ---- taking ----------------------------------------------------------------------------------------------------- */

/* The project of this workspace among those that are watched. Without a file there is nothing to watch: *ret is NULL.
 */
static int find_project(struct config_store *store, const struct config_place *place, struct config_watched **ret,
                        struct cordon_error *err)
{
	struct config_watched *oldest = store->projects;
	struct config_stamp stamp;
	*ret = NULL;
	for (struct config_watched *at = store->projects; at && at < store->projects + PROJECTS_MAX; at++) {
		if (at->path && !strcmp(at->path, place->path)) {
			at->used = ++store->ticks;
			*ret = at;
			return 0;
		}
		if (oldest->path && (!at->path || at->used < oldest->used))
			oldest = at;
	}
	config_stat(place, &stamp);
	if (stamp.problem == ENOENT)
		return 0;
	if (!oldest)
		oldest = store->projects = calloc(PROJECTS_MAX, sizeof(*oldest));
	if (!oldest)
		return fail_oom(err);
	config_watched_free(oldest);
	*oldest =
		(struct config_watched){ .layer = CONFIG_PROJECT, .path = strdup(place->path), .used = ++store->ticks };
	if (!oldest->path)
		return fail_oom(err);
	*ret = oldest;
	return 0;
}

static int bring_up(struct config_store *store, bool stands, int workspace_fd, const char *workspace_path,
                    enum config_keeping keeping, struct config_version **layers, struct config_watched **watched,
                    struct cordon_error *err)
{
	uncleared char path[PATH_MAX + sizeof(CONFIG_PROJECT_NAME) + 1];
	for (enum config_layer layer = 0; layer < CONFIG_PROJECT; layer++)
		watched[layer] = store->files[layer].path ? &store->files[layer] : NULL;
	const struct config_place project = { CONFIG_PROJECT, workspace_fd, CONFIG_PROJECT_NAME, path, NULL };
	if (workspace_fd >= 0) {
		snprintf(path, sizeof(path), "%s/" CONFIG_PROJECT_NAME, workspace_path ? workspace_path : "");
		if (find_project(store, &project, &watched[CONFIG_PROJECT], err) < 0)
			return -1;
	}
	for (enum config_layer layer = 0; layer < CONFIG_LAYER_MAX; layer++) {
		if (!watched[layer])
			continue;
		const struct config_place place = layer == CONFIG_PROJECT ? project
			: (struct config_place){ layer, AT_FDCWD, watched[layer]->path, watched[layer]->path, NULL };
		bool known = layer != CONFIG_PROJECT && stands && watched[layer]->looked;
		if ((!known && config_look(&store->shelf, watched[layer], &place, err) < 0) ||
		    config_settle(&store->shelf, watched[layer], layers, keeping, err) < 0)
			return -1;
		layers[layer] = watched[layer]->good;
	}
	return 0;
}

/* What is to be said about the files now, or NULL; in the arena. */
static const char *gather_news(struct arena *arena, struct config_store *store, struct config_watched *const *watched,
                               enum config_keeping keeping)
{
	const char *all = NULL;
	for (size_t i = 0; i < CONFIG_LAYER_MAX; i++) {
		const char *news = watched[i] ? config_watched_news(arena, &store->shelf, watched[i], keeping) : NULL;
		all = all && news ? arena_printf(arena, "%s\n%s", all, news) : news ? news : all;
	}
	return all;
}

/* In the place of the snapshot, and of the reference to it, comes a copy that also has the arena's note. */
static int with_note(struct snapshot **snapshot, struct arena *arena, const char *note, struct cordon_error *err)
{
	struct snapshot *noted = calloc(1, sizeof(*noted));
	if (!noted) {
		config_unref(&(*snapshot)->config);
		return fail_oom(err);
	}
	atomic_init(&noted->refs, 1);
	noted->base = *snapshot;
	noted->config = noted->base->config;
	noted->config.note = note;
	noted->arena = *arena;
	*arena = (struct arena){ 0 };
	*snapshot = noted;
	return 0;
}

/* Are all but the workspace's as they were when this was last asked? If not, they are watched from here on. */
static bool are_unchanged(struct config_store *store, uint64_t mounts)
{
	if (!store->watches)
		return false;
	if (host_watch_unchanged(store->watches, mounts))
		return true;
	host_watch_begin(store->watches, mounts);
	for (size_t i = 0; i < ARRAY_SIZE(store->files); i++)
		if (store->files[i].path)
			host_watch_path(store->watches, store->files[i].path);
	return false;
}

static int take(struct config_store *store, const char *session_id, int workspace_fd, const char *workspace_path,
                enum config_keeping keeping, uint64_t mounts, struct snapshot **ret_snapshot, struct cordon_error *err)
{
	struct config_version *layers[CONFIG_LAYER_MAX] = { 0 };
	struct config_watched *watched[CONFIG_LAYER_MAX] = { 0 };
	struct snapshot *snapshot = NULL;
	struct arena arena = { 0 };
	if (!store->defaults && config_version_default(&store->defaults, err) < 0)
		return -1;
	store->shelf.defaults = store->defaults;
	bool unchanged = are_unchanged(store, mounts);
	if (bring_up(store, unchanged, workspace_fd, workspace_path, keeping, layers, watched, err) < 0 ||
	    find_snapshot(store, layers, session_id, &snapshot, err) < 0)
		return -1;
	const char *note = gather_news(&arena, store, watched, keeping);
	atomic_fetch_add(&snapshot->refs, 1);
	int result = note ? with_note(&snapshot, &arena, note, err) : 0;
	arena_free(&arena);
	*ret_snapshot = snapshot;
	return result;
}

int config_store_take(struct config_store *store, const char *session_id, int workspace_fd, const char *workspace_path,
                      enum config_keeping keeping, uint64_t mounts, const struct config **ret_config,
                      struct cordon_error *err)
{
	struct snapshot *snapshot = NULL;
	pthread_mutex_lock(&store->mutex);
	int result = take(store, session_id, workspace_fd, workspace_path, keeping, mounts, &snapshot, err);
	pthread_mutex_unlock(&store->mutex);
	if (result == 0)
		*ret_config = &snapshot->config;
	return result;
}

int config_builtin(const struct config **ret_config, struct cordon_error *err)
{
	const struct config_files none = { 0 };
	struct config_store *store;
	if (config_store_open_files(NULL, &none, &store, err) < 0)
		return -1;
	int result = config_store_take(store, NULL, -1, NULL, CONFIG_KEEP_NOTHING, 0, ret_config, err);
	config_store_unref(store);
	return result;
}
