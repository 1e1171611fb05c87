/* `cordon setup`: the entries in an agent's own settings that make its commands run by cordon, and taking them away
 * again.
 *
 * A plan is a list of edits for an agent. Each file is changed by byte ranges (jsonc.h, edit.c), written beside and
 * renamed into place. A record in the user's state directory keeps what each file was before and after, so that --undo
 * gives back the very bytes; where a file was changed meanwhile, cordon's entries go and all else stays (undo.c). Of a
 * file in which they cannot be undone the record is kept. The record is written first: whatever dies when, an undo
 * finds it. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/agent/agent.h"

enum edit_kind {
	EDIT_SET,               /* a member of JSON */
	EDIT_APPEND,            /* an element of an array of JSON */
	EDIT_TOML_KEY,          /* a top-level key of TOML: path[0], text is its line */
	EDIT_TOML_BLOCK,        /* a table at the end of TOML; text is its lines */
	EDIT_FILE,              /* a file that is cordon's own; text is its content */
};

#define EDIT_PATH_MAX 6
#define EDITS_MAX 8

struct edit {
	enum edit_kind kind;
	const char *file;
	const char *beneath;                    /* a project that it lies in, whose links are not followed; or NULL */
	const char *path[EDIT_PATH_MAX];        /* ended by NULL */
	json_t *value;
	const char *text;
};

struct plan {
	enum agent_id agent;
	struct edit edits[EDITS_MAX];           /* those of one file stand together */
	size_t count;
	bool is_by_hand;                        /* nothing can be written; `covered` says what to do */
	const char *covered, *open;             /* what runs in cordon now, and what does not; lines */
	const char *tmp;                        /* a directory to make; or NULL */
	bool mcp_only;
	const char *program; /* what its entries call, which must be there: cordon, or cordon-shell */
};

struct setup_paths {
	const char *cordon, *shell;             /* the programs */
	const char *home, *here;                /* the user's home; the project, for agents that have settings in it */
};

/* *ret_plan is to be released with plan_free(). */
int plan_make(struct arena *arena, enum agent_id agent, bool mcp_only, const struct setup_paths *paths,
              struct plan *ret_plan, struct cordon_error *err) must_check;
void plan_free(struct plan *plan);

/* The text of a file with the edit. NULL: there is no file. */
int setup_edit_apply(struct arena *arena, const struct edit *edit, const char *text, const char **ret_text,
                     struct cordon_error *err) must_check;
/* Without it: `before` is the text that it was made in. NULL: no file is left. 1: what is there now calls another
 * program, and stays. An error: it is still there, and cannot be taken out of the text. */
int setup_edit_undo(struct arena *arena, const struct edit *edit, const char *before, const char *text,
                    const char **ret_text, struct cordon_error *err) must_check;
/* Is what it writes there? */
bool setup_edit_holds(const struct edit *edit, const char *text);

struct setup_options {
	bool undo, dry_run, mcp_only;
};

/* Says on `out` what was done. */
int setup_agent(struct arena *arena, enum agent_id agent, const struct setup_options *options,
                const struct setup_paths *paths, FILE *out, struct cordon_error *err) must_check;
/* What became of the agents that are set up, as an array: for each its name as `agent`; `fault`, or null where all is
 * as it was written; where its program is and of which version, and the version it was `tried` with; `remarks`; and
 * what `outside` it could still do. To be released with json_decref(). */
json_t *setup_look(struct arena *arena, const char *home, const char *here);
/* What cordon wrote into the settings of the agent of this name: an array, or NULL. To be released with json_decref().
 */
json_t *setup_written(struct arena *arena, const char *agent, const char *home);
/* A file's text without it; NULL: nothing else is in it. */
const char *setup_without(struct arena *arena, json_t *written, const char *path, const char *text);

/* ---- what the parts need of each other --------------------------------------------------------------------------- */

/* The record of an agent's setup: what is in it as an object, or NULL where there is none. */
const char *setup_record_path(struct arena *arena, enum agent_id agent, const char *home);
int setup_record(struct arena *arena, const char *path, json_t **ret_record, struct cordon_error *err) must_check;
json_t *setup_edit_to_json(const struct edit *edit);
/* An edit of it. False: it is none. All is borrowed from the record. */
bool setup_edit_recorded(json_t *made, const char *file, struct edit *ret_edit);
/* The project that a recorded file lies in; NULL: in none. */
const char *setup_beneath_of(json_t *recorded, const char *path);
