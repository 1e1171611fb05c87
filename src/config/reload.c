/* A watched file: see reload.h.
 *
 *     look     the stamp has changed: read and parse it              → disk, or bad
 *     settle   is it good on top of the files before it?             → good
 *              if not, is what was good before?                      → good, fallen
 *              if not, nothing runs                                  → config_invalid
 *
 * Whether a file is good depends on the files before it: settling is done again when one of these changes. */
#include "config/reload.h"

#include <string.h>

#include "base/error.h"
#include "config/keep.h"

void config_version_ref(struct config_version *version)
{
	if (version)
		atomic_fetch_add(&version->refs, 1);
}

void config_version_unref(struct config_version *version)
{
	if (!version || atomic_fetch_sub(&version->refs, 1) != 1)
		return;
	arena_free(&version->arena);
	free(version->text);
	free(version);
}

static void replace(struct config_version **place, struct config_version *version)
{
	config_version_unref(*place);
	*place = version;
}

void config_watched_free(struct config_watched *watched)
{
	replace(&watched->disk, NULL);
	replace(&watched->good, NULL);
	free(watched->bad_text);
	free(watched->path);
	*watched = (struct config_watched){ 0 };
}

int config_version_default(struct config_version **ret_version, struct cordon_error *err)
{
	struct config_version *version = calloc(1, sizeof(*version));
	if (!version)
		return fail_oom(err);
	atomic_init(&version->refs, 1);
	if (config_defaults(&version->arena, version->file.values, err) < 0) {
		config_version_unref(version);
		return -1;
	}
	*ret_version = version;
	return 0;
}

/* `text` is taken only on success. */
static int make_version(struct config_shelf *shelf, const char *path, char *text, size_t length,
                        struct config_version **ret_version, struct cordon_error *err)
{
	struct config_version *version = calloc(1, sizeof(*version));
	if (!version)
		return fail_oom(err);
	atomic_init(&version->refs, 1);
	version->id = ++shelf->last_id;
	version->path = arena_strdup(&version->arena, path);
	const struct config_reader reader = { .arena = &version->arena, .file = version->path, .home = shelf->home };
	if (!version->path || config_parse(&reader, text, length, &version->file, err) < 0) {
		int result = version->path ? -1 : fail_oom(err);
		config_version_unref(version);
		return result;
	}
	version->text = text;
	version->length = length;
	*ret_version = version;
	return 0;
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

static bool is_same_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
	return a && b ? a_length == b_length && !memcmp(a, b, a_length) : a == b;
}

static void take_bad(struct config_watched *watched, char *text, size_t length, const struct cordon_error *why)
{
	replace(&watched->disk, NULL);
	free(watched->bad_text);
	watched->bad_text = text;
	watched->bad_length = length;
	watched->error = *why;
	watched->bad = true;
}

static int take_text(struct config_shelf *shelf, struct config_watched *watched, char *text, size_t length,
                     struct cordon_error *err)
{
	struct config_version *version = NULL;
	struct cordon_error why;
	if (text && make_version(shelf, watched->path, text, length, &version, &why) < 0) {
		if (why.class != CORDON_E_CONFIG_INVALID) {
			free(text);
			*err = why;
			return -1;
		}
		take_bad(watched, text, length, &why);
		return 0;
	}
	replace(&watched->disk, version);
	free(watched->bad_text);
	watched->bad_text = NULL;
	watched->bad = false;
	return 0;
}

int config_look(struct config_shelf *shelf, struct config_watched *watched, const struct config_place *place,
                struct cordon_error *err)
{
	struct config_stamp stamp;
	struct cordon_error why;
	char *text = NULL;
	size_t length = 0;
	config_stat(place, &stamp);
	if (watched->looked && !watched->fresh && config_stamp_same(&stamp, &watched->stamp))
		return 0;
	int result = config_read(place, &stamp, &text, &length, &why);
	if (result < 0 && why.class != CORDON_E_CONFIG_INVALID) {
		*err = why;
		return -1;
	}
	bool first = !watched->looked;
	watched->looked = true;
	watched->stamp = stamp;
	watched->fresh = config_stamp_is_fresh(&stamp);
	if (result == 0 && !text && watched->strict) {
		result = fail(&why, CORDON_E_CONFIG_INVALID, ENOENT, watched->path, "cannot read the configuration");
		fail_remedy(&why, "name a file that is there");
	}
	if (result < 0) {
		take_bad(watched, NULL, 0, &why);
		watched->looks++;
		return 0;
	}
	bool same = watched->bad ? text && is_same_text(text, length, watched->bad_text, watched->bad_length)
	                         : is_same_text(text, length, watched->disk ? watched->disk->text : NULL,
	                                        watched->disk ? watched->disk->length : 0);
	if (same && !first) {
		free(text);
		return 0;
	}
	watched->looks++;
	return take_text(shelf, watched, text, length, err);
}

/* ---- settling --------------------------------------------------------------------------------------------------- */

int config_stack(struct arena *arena, const struct config_shelf *shelf, struct config_version *const *layers,
                 const char *session_id, struct config_state *ret_state, struct cordon_error *err)
{
	config_state_begin(shelf->defaults->file.values, ret_state);
	for (enum config_layer layer = 0; layer < CONFIG_LAYER_MAX; layer++)
		if (layers[layer] && config_apply(arena, ret_state, layer, &layers[layer]->file, session_id, err) < 0)
			return -1;
	return 0;
}

/* Is this version good on top of the others? */
static int try_version(const struct config_shelf *shelf, const struct config_watched *watched,
                       struct config_version *const *below, struct config_version *version, struct cordon_error *err)
{
	struct config_version *layers[CONFIG_LAYER_MAX];
	struct config_state state;
	struct arena arena = { 0 };
	memcpy(layers, below, sizeof(layers));
	layers[watched->layer] = version;
	int result = config_stack(&arena, shelf, layers, NULL, &state, err);
	arena_free(&arena);
	return result;
}

/* What was good before, to be unreferenced; NULL where there is none or it is not good any more. */
static struct config_version *find_earlier(struct config_shelf *shelf, const struct config_watched *watched,
                                           struct config_version *const *below)
{
	char kept_path[CONFIG_KEPT_PATH_SIZE];
	struct config_version *version = NULL;
	struct cordon_error why;
	size_t length = 0;
	if (watched->good && watched->good != watched->disk &&
	    try_version(shelf, watched, below, watched->good, &why) == 0) {
		config_version_ref(watched->good);
		return watched->good;
	}
	char *text = config_keep_load(shelf->data_dir, watched->path, &length, kept_path);
	if (!text || make_version(shelf, kept_path, text, length, &version, &why) < 0) {
		free(text);
		return NULL;
	}
	if (try_version(shelf, watched, below, version, &why) < 0)
		replace(&version, NULL);
	return version;
}

static void keep(const struct config_shelf *shelf, struct config_watched *watched)
{
	if (watched->strict || watched->fallen || watched->kept_looks == watched->looks)
		return;
	const struct config_version *good = watched->good;
	config_keep_good(shelf->data_dir, watched->path, good ? good->text : NULL, good ? good->length : 0);
	watched->kept_looks = watched->looks;
}

static bool is_settled(const struct config_watched *watched, struct config_version *const *below)
{
	bool same = watched->settled.looks == watched->looks;
	for (int layer = 0; layer < CONFIG_LAYER_MAX; layer++)
		same = same && watched->settled.below[layer] == (below[layer] ? below[layer]->id : 0);
	return same;
}

static int decide(struct config_shelf *shelf, struct config_watched *watched, struct config_version *const *below,
                  struct cordon_error *err)
{
	struct cordon_error why = watched->error;
	if (!watched->bad && try_version(shelf, watched, below, watched->disk, &why) == 0) {
		config_version_ref(watched->disk);
		replace(&watched->good, watched->disk);
		watched->fallen = false;
		return 0;
	}
	struct config_version *earlier = why.class == CORDON_E_CONFIG_INVALID && !watched->strict
		? find_earlier(shelf, watched, below) : NULL;
	if (!earlier) {
		*err = why;
		return fail_boundary(err, "configuration");
	}
	replace(&watched->good, earlier);
	watched->fallen = true;
	watched->said = false;
	watched->error = why;
	return 0;
}

int config_settle(struct config_shelf *shelf, struct config_watched *watched, struct config_version *const *below,
                  enum config_keeping keeping, struct cordon_error *err)
{
	if (!is_settled(watched, below)) {
		if (decide(shelf, watched, below, err) < 0)
			return -1;
		watched->settled.looks = watched->looks;
		for (int layer = 0; layer < CONFIG_LAYER_MAX; layer++)
			watched->settled.below[layer] = below[layer] ? below[layer]->id : 0;
	}
	if (keeping != CONFIG_KEEP_NOTHING)
		keep(shelf, watched);
	return 0;
}

const char *config_watched_news(struct arena *arena, const struct config_shelf *shelf, struct config_watched *watched,
                                enum config_keeping keeping)
{
	if (!watched->fallen || watched->said)
		return NULL;
	const struct cordon_error *why = &watched->error;
	const char *text = watched->bad ? watched->bad_text : watched->disk ? watched->disk->text : NULL;
	size_t length = watched->bad ? watched->bad_length : watched->disk ? watched->disk->length : 0;
	const char *note = arena_printf(arena, "%s: %s%s%s; the last good version of this file stays in force",
	                                why->subject, why->reason, *why->remediation ? ": " : "", why->remediation);
	bool news =
		note && config_keep_is_news(shelf->data_dir, watched->path, text, length, note, keeping == CONFIG_KEEP);
	watched->said = note && (keeping == CONFIG_KEEP || !news);
	return news ? note : NULL;
}
