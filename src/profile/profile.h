/* The walls for one command, as plain data. Nothing here makes a system call: the walk gathers the facts,
 * profile_make() turns them into this, a driver raises it. Everything is borrowed from the arena that made it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/place.h"
#include "cordon-internal.h"
#include "policy/capability.h"
#include "profile/egress.h"

enum view { VIEW_SYSTEM, VIEW_HOST_READONLY, VIEW_BARE, VIEW_MAX };
extern const char *const view_names[VIEW_MAX];

/* One step in building the private root; played in order. Targets are absolute paths inside. */
enum mount_kind {
	MOUNT_DIRECTORY,        /* make the directory `target`, and its parents, if missing */
	MOUNT_FILE,             /* an empty file to mount a file on */
	MOUNT_LINK,             /* a symbolic link to the text `source` */
	MOUNT_TEXT,             /* a small read-only file holding `source` */
	MOUNT_BIND,             /* the host's `source`, with all that is mounted beneath; onto "/" only as the first */
	MOUNT_SCRATCH,          /* an empty writable directory of its own, in memory, at most `size` bytes */
	MOUNT_PROC,             /* a fresh procfs */
	MOUNT_PTS,              /* a fresh devpts */
	MOUNT_MASK,             /* nothing readable: covers a file or a directory */
	MOUNT_REPLACE,          /* the file at `target` inside, covered by one that holds `source` */
	MOUNT_FREEZE,           /* what is at `target` inside, read-only from here on */
	MOUNT_PIN,              /* what is at `target` inside, made a mount of its own so that it cannot be renamed
	                           away */
	MOUNT_LAYER,            /* the host's directory `source`, and over it a private layer that takes what is
	                           written */
	MOUNT_LOCK,             /* the mount at `target`, and all that is mounted beneath so far, read-only */
	MOUNT_KIND_MAX
};
extern const char *const mount_kind_names[MOUNT_KIND_MAX];

enum mount_flag {
	MOUNT_READ_ONLY = 1 << 0,
	MOUNT_NO_EXEC = 1 << 1,
	MOUNT_GRANTED = 1 << 2,         /* the caller's files: id-mapped for a root caller */
	MOUNT_OWNED = 1 << 3,           /* the caller's files too, but named by cordon itself */
	MOUNT_OPTIONAL = 1 << 4,        /* skipped where the path is gone meanwhile */
	MOUNT_DEVICE = 1 << 5,          /* device nodes stay usable */
	MOUNT_BASE = 1 << 6,            /* of the base view: gets its attributes from the lock that follows */
};

struct mount_op {
	enum mount_kind kind;
	unsigned flags;
	const char *target, *source;
	uint64_t size;                  /* MOUNT_SCRATCH, MOUNT_LAYER in memory; of a small file of the base, its
	                                   stamp */
	unsigned mode;                  /* MOUNT_SCRATCH; MOUNT_DIRECTORY: 0 is 0755 */
	bool is_directory;              /* MOUNT_MASK */
	const char *layer;              /* MOUNT_LAYER: the name of its layer */
	uint64_t device, inode;         /* MOUNT_BIND, MOUNT_LAYER: what the source must be; 0: whatever it is */
};

struct mount_plan {
	struct mount_op *ops;
	size_t count, capacity;
};

/* What Landlock allows beneath a path (or on a file). */
enum landlock_access {
	LANDLOCK_SEE = 1 << 0,          /* read files and list directories */
	LANDLOCK_START = 1 << 1,        /* execute */
	LANDLOCK_CHANGE = 1 << 2,       /* write, create, remove, rename, truncate */
	LANDLOCK_USE = 1 << 3,          /* read, write and ioctl on files that are there: devices, /proc */
	LANDLOCK_IF_PUBLIC = 1 << 4,    /* nothing of this, unless every user may read it by its mode */
};

struct landlock_rule {
	const char *path;
	unsigned access;
	bool is_file;                   /* there is nothing beneath it */
};

struct landlock_plan {
	struct landlock_rule *rules;
	size_t count, capacity;
};

/* ---- What the walk found out, from which a profile is made ----------------------------------------------------- */

/* What a driver can do to a profile. */
struct profile_abilities {
	const char *driver;
	bool private_root;              /* mounts: what is not granted is not there */
	bool network_namespace;
	int landlock_abi;               /* 0: none */
	bool caller_is_root;
};

struct profile_input {
	struct profile_abilities abilities;
	bool answers_offline;           /* without a network, the proxy's address and the name server's answer all
	                                   the same */
	const struct capability_set *capabilities;
	enum view view;
	const char *session_id, *sandbox_id;
	struct place workspace;
	struct places reads, writes, devices, sockets, programs;
	struct places interpreters;     /* what the kernel starts to run the programs: loaders, #! lines */
	struct strings libraries;       /* directories that programs map code from */
	const char *cwd;
	const char *home, *home_source; /* inside, and outside (NULL: in memory) */
	const char *home_alias;         /* a link that leads there, by which the caller knows it; or NULL */
	const char *scratch;            /* without a private root: the command's own directory for temporary files */
	const struct place *tmp;        /* of a session: what is /tmp and /var/tmp inside; NULL: memory */
	const char *data_dir;           /* cordon's own data, never shown */
	struct host_entries host;
	struct host_entries shown;      /* toolchains, read-only */
	struct host_caches caches;      /* package caches */
	const char *layers;             /* what is written there: a directory of layers (base/layer-slot.h); NULL:
	                                   memory */
	struct places masked;           /* denied names, sockets, credentials */
	struct strings protect;         /* absolute: protected names that exist */
	struct strings ways;            /* absolute: links and directories by which names lead to what is in these
	                                   two */
	uint32_t required;
	const char *cgroup;
	const char *git_config;         /* text of /etc/gitconfig, or NULL */
	const char *git_ignore;         /* of /etc/gitignore, which that names; or NULL */
	const char *user;
	uint32_t uid, gid;              /* as seen inside */
	struct strings argv, environment;
	const char *program;            /* the path to start it by; NULL: what argv[0] means inside */
	bool tty;
	const char *unmasked;
};

struct profile {
	const char *driver;
	enum view view;
	const char *session_id, *sandbox_id;
	const char *workspace, *cwd, *home;
	const char *program;                    /* argv[0] */
	struct strings argv, environment;       /* environment as K=V */
	struct strings candidates;              /* paths to try for the program, in order */
	struct mount_plan mounts;
	const char *layers;                     /* where the layers of MOUNT_LAYER are kept; NULL: in memory */
	struct landlock_plan landlock;
	/* For a system that holds names by rules instead of mounts (profile/seatbelt.h). */
	struct places masked, sockets;
	struct strings protect;
	const char *data_dir;
	unsigned seccomp;                       /* enum seccomp_option: what this command's filter refuses besides */
	enum network_mode network;
	struct egress_plan egress;              /* of listed hosts, or of no network where that is answered */
	bool spawn, tty;
	struct strings programs;
	struct limits limits;
	uint32_t walls;                         /* 1 << enum cordon_wall: what must hold, or nothing runs */
	uint32_t required;                      /* the same: limits that must hold for the whole tree of processes */
	const char *cgroup;                     /* where groups for limits are to be made; NULL: where it can be done */
	const char *unmasked;                   /* what the bound on finding names left unseen, or NULL */
};

/* 0, or -1 when memory is short. */
int profile_make(struct arena *arena, const struct profile_input *input, struct profile *ret_profile);
/* What to execute, NULL-ended: `program`, where one was judged, or what a shell would find for this name. */
int profile_candidates(struct arena *arena, const char *name, const char *program, const struct strings *environment,
                       struct strings *ret_candidates);
int profile_make_mounts(struct arena *arena, const struct profile_input *input, struct mount_plan *ret_plan);
int profile_make_landlock(struct arena *arena, const struct profile_input *input, struct landlock_plan *ret_plan);

/* What of it are walls of a session: the same bytes where two commands can do with one view of its sandbox. The
 * command, its limits, the names that are hidden or protected, and hosts are no part of it. -1 when memory is short. */
struct profile_key {
	const char *bytes;
	size_t length;
};
int profile_session_key(struct arena *arena, const struct profile *profile, struct profile_key *ret_key);
bool profile_key_same(const struct profile_key *a, const struct profile_key *b);

struct json;
void profile_write_json(struct json *json, const struct profile *profile);
