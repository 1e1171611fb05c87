/* The directory trees that one command was granted, from step 4 to the end of step 5: which names in them must be
 * hidden from the command or kept as they are, and what the command left behind under protected names.
 *
 *     trees_find()                   names before the start; takes the record of what is there (paths/planted/judged.h)
 *     own_files_keep()               cordon's own files that lie in a writable tree
 *     trees_keep_read_only()         paths that the configuration keeps read-only
 *     trees_mask_whole_view()        with the whole host in view: known places of secrets
 *     the command runs
 *     trees_judge()                  compares with the record; harmful files go to quarantine
 *     trees_free()                   always */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/denials.h"
#include "base/place.h"
#include "paths/index/names.h"
#include "paths/planted/judged.h"
#include "policy/capability.h"

struct own_file;
struct profile_input;

/* Plain facts about the command; all borrowed until trees_free(). */
struct trees_facts {
	const char *data_dir, *data_named;      /* cordon's data: its real path, and the path that led there */
	const char *session_id;                 /* NULL: a one-off */
	const char *audit_id;                   /* names the command's directory in quarantine */
	bool dry;                               /* nothing runs: no record is taken, nothing is cached on disk */
	struct place workspace;
	int workspace_fd;
	bool own_workspace;                     /* made by cordon: no other session has files there */
	bool disposable;                        /* made for this one command */
	const struct capability_set *set;       /* its deny, protect and exempt globs */
	struct places reads, writes, sockets;
	const struct strings *by_name;          /* paths that a person granted by this very name: never masked */
	const struct strings *project_deny, *project_protect;   /* globs that only the project's file adds */
	const struct strings *read_only;        /* paths that the configuration keeps read-only */
	const char *config_files[2], *manifest; /* that decide about later commands; or NULL */
	const char *home;                       /* the caller's HOME; or NULL */
	const char *private_home;               /* the command's own, inside */
	struct trees_driver {
		const char *name;
		bool private_root, holds_writes, keeps_names;
	} driver;
	struct names_memory *memory;            /* cache of known directories; or NULL */
	uint64_t (*mounts)(void *arg);          /* the current version of the host's mounts */
	void *mounts_arg;
};

/* One granted directory. */
struct tree {
	struct place place;
	int fd;                                 /* of the workspace, the workspace's own */
	bool writable;
	struct names before;
	struct strings shown;                   /* of a session: what the shown files had in them at the start
	                                           (trees-shown.c) */
	struct contents *contents;              /* of its masked files; or NULL: it has none */
	struct planted_before planted;          /* of a writable tree: what was there when the command started */
	struct judged *judged;                  /* the record, shared with other commands; or NULL */
	bool unsettled;                         /* what earlier commands left there is not judged to the end */
};

struct trees {
	struct trees_facts facts;
	struct arena *arena;                    /* the request's */
	struct denials *denials;                /* gets what is found out */
	struct tree *items;
	size_t count;
	struct strings roots;                   /* these trees by all their names */
	struct places links;                    /* masked names that are links, as `alias`: what they led to */
	size_t hidden_count;                    /* names that are masked because they may hold secrets; one of them: */
	const char *hidden;
	uint64_t links_us;                      /* time spent following links */
	struct own_file *own;                   /* cordon's own files that the command might change; or NULL */
	struct names_place names;               /* the cache on disk */
	uint64_t mounts;                        /* the version of the host's mounts at the start */
};

/* Fills the names to mask and to protect into `input`. Locks and takes the records of the writable trees: from here on
 * the trees count as having a running command, until trees_judge() or trees_free(). */
int trees_find(struct trees *trees, struct profile_input *input, struct cordon_error *err) must_check;
int trees_keep_read_only(struct trees *trees, struct profile_input *input, struct cordon_error *err) must_check;
int trees_mask_whole_view(struct trees *trees, struct profile_input *input, struct cordon_error *err) must_check;
/* own-files.c: refuses where a file that decides about later commands could be made or changed by this one. */
int own_files_keep(struct trees *trees, struct profile_input *input, struct cordon_error *err) must_check;

/* trees-kept.c: after the command has failed: says what was hidden from it: the name that its output has in it, or,
 * with `any`, the first. -1 when memory is short. */
int trees_tell_hidden(struct trees *trees, const char *output, size_t length, bool any) must_check;
/* trees-kept.c: the protected name that this path (relative: to `cwd`, or to a directory that the command went to)
 * names, lies in or is around; or NULL. */
const char *trees_kept_as_it_is(const struct trees *trees, const char *cwd, const char *word);
/* trees-shown.c: which masked names are shown, at the start; at the end, what the command made of them. -1 when memory
 * is short. */
int trees_judge_shown(struct trees *trees, struct tree *tree) must_check;
int trees_keep_shown(struct trees *trees) must_check;
/* After the command has ended. -1 when memory is short: what was left could not be told. */
int trees_judge(struct trees *trees) must_check;
/* `started`: the command ran. NULL is allowed. */
void trees_free(struct trees *trees, bool started);

/* ---- Between the files of this room ------------------------------------------------------------------------------ */

int own_files_judge(struct trees *trees) must_check;
/* trees-record.c: opens and locks the records; judges what an earlier command left unjudged. Then, with the names
 * known: takes the records. */
int trees_open_records(struct trees *trees, struct cordon_error *err) must_check;
int trees_begin(struct trees *trees, struct cordon_error *err) must_check;

/* How to look for names in one tree. */
struct names_search {
	bool masks;                             /* false: look behind what masks hide */
	struct names_keep keep;
	uint64_t budget_us;
};
/* The names to hide or keep in a tree (tree-names.c). A driver that cannot cover names searches as without `masks`. */
int tree_names_find(struct trees *trees, struct arena *arena, const struct tree *tree,
                    const struct names_search *search, struct names *ret_names, struct cordon_error *err) must_check;
/* The caches for a search. A directory made for one command is searched once, so nothing of it is cached. */
struct names_keep trees_keep(struct trees *trees);
