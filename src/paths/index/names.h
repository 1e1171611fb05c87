/* Names inside a granted root that a driver must hide or keep from change: masked ones (the `deny` globs), protected
 * ones (`protect`), unix sockets, FIFOs. Found by walking the root once; later calls recheck what a cache file
 * remembers. A directory that git takes for a repository although it is not called `.git` is found by what lies in
 * it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"

struct cordon_error;

#define NAMES_MATCHES_MAX (1024 * 1024) /* of each kind, in one tree */
#define NAMES_COMPLETE UINT64_MAX       /* as a budget: check every known directory, for at most NAMES_WALK_US */

/* NAME_JUDGED: never covered, only judged when a command has ended: a symbolic link where git itself writes, and what
 * git reads or runs from a repository that is not called `.git`. NAME_FIFO: to be hidden in what is mounted read-only,
 * since that does not keep a command from writing to it. */
enum name_kind { NAME_MASKED, NAME_PROTECTED, NAME_SOCKET, NAME_JUDGED, NAME_FIFO, NAME_KIND_MAX };
extern const char *const name_kind_names[NAME_KIND_MAX];

struct name {
	enum name_kind kind;            /* a name that is several things is masked, else a socket, else protected,
	                                   else judged or a FIFO */
	const char *path;               /* relative to the root */
	bool is_directory;
	bool is_link;                   /* a symbolic link: covering it means covering what it leads to */
	bool is_fifo;                   /* of whatever kind */
	bool is_shown;                  /* masked by its name, but not to be hidden: shown.h */
	bool is_closed;                 /* a directory masked only because it cannot be looked into */
	bool is_older;                  /* neither it nor the way to it has changed since names_keep.since_ns */
	uint64_t device, inode;         /* but for files that are masked, and sockets: what was there when it was
	                                   found */
	int64_t ctime_ns, born_ns;
	uint32_t links;                 /* how many names it has */
};

struct names {
	struct name *items;             /* by kind, then by path */
	size_t count;
	size_t directories;             /* known beneath the root, and the root */
	int64_t since_ns;               /* what is older is older than this; 0: nothing is */
	size_t unchecked;               /* of those, how many the budget left as they were known before */
	const char *note;               /* what a bound left unsearched, for display; or NULL */
	bool unseen;                    /* parts of the tree have never been searched */
	bool unfinished;                /* the time did not suffice: the next search continues where this one stopped */
	size_t late;                    /* of the masked names, files whose content was not read for want of time */
	bool too_many;                  /* more than the table holds: some are missing */
};

struct name_rules {
	const struct strings *deny;     /* globs (base/glob.h); may be NULL */
	const struct strings *protect;  /* names such as `.git/hooks`, at any depth, whatever the case, also where the
	                                   root lies  in that `.git`; NULL or none: nor links */
	const struct strings *exempt;   /* likewise: what `protect` means and yet must stay free; ending in `/`, if a
	                                   directory;   otherwise unless it lies in what can be a repository */
};

/* Where what was found is kept. All may be left out. */
struct names_memory;
struct host_watch;
/* A directory that only cordon can write, opened when it is first asked for, and made if that may be. */
struct names_place {
	const char *path;
	bool may_make, tried;
	int fd;                         /* then, or -1; to be closed by whose place it is */
};
struct names_keep {
	struct names_place *place;      /* of the files; or NULL */
	struct names_memory *memory;    /* for a process that will search again; as current as the events its
	                                   host_watch has read */
	uint64_t mounts;                /* the version for that */
	int64_t since_ns;               /* on the clock of change times: see struct name; 0: nothing counts as older */
};
/* NULL when memory is short. Shared by threads. */
struct names_memory *names_memory_new(struct host_watch *host_watch);
void names_memory_free(struct names_memory *memory);

/* `root_fd` is the directory (O_PATH will do) and `root_path` its canonical absolute path; both borrowed, as are the
 * rules. `budget_us` bounds the rechecking of known directories; directories that are new or changed are read however
 * long that takes, up to the bounds of a first walk. A search that was not `unfinished` saw all that its bounds allow.
 * Symbolic links are never followed; mounts are entered, except those of the kernel's own pseudo-filesystems. A
 * directory that the caller cannot look into is masked as a whole if it is its own, since a command could give itself
 * the right to, or if it may be entered all the same. */
int names_find(struct arena *arena, int root_fd, const char *root_path, const struct name_rules *rules,
               const struct names_keep *keep, uint64_t budget_us, struct names *ret_names,
               struct cordon_error *err) must_check;

/* Both, of the same root: what lies beneath a masked directory of either is left out, and of a path that both have, the
 * first kind counts. Borrows the paths. -1 when memory is short. */
int names_join(struct arena *arena, const struct names *one, const struct names *other,
               struct names *ret_names) must_check;

/* By kind, then by path, as all of them are. */
void names_sort(struct names *names);

/* The item of this kind and path, or NULL. */
const struct name *names_get(const struct names *names, enum name_kind kind, const char *path);
/* Adds those items of `more` that are not there by kind and path, and borrows their paths. -1 when memory is short. */
int names_add(struct arena *arena, struct names *names, const struct names *more) must_check;
