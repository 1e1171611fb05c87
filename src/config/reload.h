/* One file of the configuration, looked at before every command: what is on the disk, and what of it is in force. */
#pragma once
#include <stdatomic.h>

#include "cordon-internal.h"
#include "config/read.h"
#include "config/resolve.h"

/* What a file said at some time. Shared, never changed. */
struct config_version {
	atomic_uint refs;
	uint64_t id;
	struct arena arena;
	const char *path;                       /* where it was read */
	char *text;
	size_t length;
	struct config_file file;
};
/* The rows' own defaults. */
int config_version_default(struct config_version **ret_version, struct cordon_error *err) must_check;
void config_version_ref(struct config_version *version);
void config_version_unref(struct config_version *version);

struct config_watched {
	enum config_layer layer;
	char *path;                             /* for display, and as the key under which it is kept */
	bool strict;                            /* it must be there and good: there is nothing to fall back to */
	struct config_stamp stamp;
	bool looked, fresh;
	uint64_t looks;                         /* which of them brought what is there now */
	struct config_version *disk, *good;     /* what is there, what is in force; NULL: nothing */
	char *bad_text;                         /* what is there, where that cannot be parsed */
	size_t bad_length;
	bool bad;
	struct cordon_error error;              /* why not what is there, where `bad` or `fallen` */
	bool fallen, said;                      /* `good` is an earlier text, and the user was told */
	struct {
		uint64_t looks, below[CONFIG_LAYER_MAX];
	} settled;                              /* with what it was decided */
	uint64_t kept_looks;                    /* what of it was kept */
	uint64_t used;                          /* when it was last used: the oldest is evicted */
};

/* What all of them share; borrowed. */
struct config_shelf {
	const char *data_dir, *home;
	const struct config_version *defaults;
	uint64_t last_id;
};

void config_watched_free(struct config_watched *watched);

/* Reads the file if it is not what it was. Fails only where memory is short. */
int config_look(struct config_shelf *shelf, struct config_watched *watched, const struct config_place *place,
                struct cordon_error *err) must_check;

/* Decides what is in force on top of `below` (CONFIG_LAYER_MAX of them, each may be NULL): what is there if it is good,
 * else what was good before, in this process or in an earlier one. With neither, `config_invalid`. */
int config_settle(struct config_shelf *shelf, struct config_watched *watched, struct config_version *const *below,
                  enum config_keeping keeping, struct cordon_error *err) must_check;

/* What is to be told about it, now and not again; NULL: nothing. In the arena. */
const char *config_watched_news(struct arena *arena, const struct config_shelf *shelf, struct config_watched *watched,
                                enum config_keeping keeping);

/* The state with these files in force. */
int config_stack(struct arena *arena, const struct config_shelf *shelf, struct config_version *const *layers,
                 const char *session_id, struct config_state *ret_state, struct cordon_error *err) must_check;
