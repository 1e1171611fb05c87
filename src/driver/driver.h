/* What raises walls on one system, and starts commands behind them. What every driver has:
 *
 *     describe   what holds each wall
 *     raise      the walls of a profile: a sandbox, in which nothing runs yet
 *     start      a command in it, which is followed and ended by way of struct running (run/running.h)
 *     lower      ends the sandbox, and everything in it
 *
 * A one-off command raises, starts, lowers. A session raises once and starts many, where the driver can keep a sandbox
 * (struct driver_keeping); elsewhere each of its commands has walls of its own over the same files. What raise() finds
 * out about one command it may leave to start() to carry out, where that is cheaper done together. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/ulimit.h"
#include "profile/profile.h"
#include "run/running.h"

/* Walls that are up. Begins each driver's own struct. */
struct sandbox {
	const struct driver *driver;
};

/* The input of raise(). */
struct walls {
	struct arena *arena;
	const struct profile *profile;
	int cwd_fd;                     /* the working directory, open */
	const char *data_dir;           /* cordon's own; for what is worth keeping between commands */
	uint64_t mounts;                /* the version of the host's mounts */
	/* For many commands: all of this is borrowed for the call. For one: until lower(). */
	bool stays;
};

/* What output goes through before it is kept and handed on; it comes back by running->ops->deliver(). No `add`: it is
 * delivered as it comes. */
struct output_filter {
	void (*add)(void *arg, enum cordon_stream stream, const void *bytes, size_t length);
	uint64_t (*held_ms)(void *arg);         /* how long what is held may still be held; 0: as long as it takes */
	void (*release)(void *arg);
	void (*finish)(void *arg);              /* after the last of it */
	void *arg;
};

/* Directories in which a `config.lock` of the command's may be about to become `config`. */
struct rename_watch {
	const struct rename_place {
		int fd;
		uint64_t device, inode; /* of the directory */
	} *places;
	size_t count;
	/* It is about to. True: it was done, and the command is told so; false: the kernel decides. In the thread that
	 * steps. */
	bool (*take)(void *arg, size_t place);
	void *arg;
};

/* A descriptor that the loop of a command watches besides its own: whenever it is readable, `handle` is called, in the
 * thread that steps. */
struct watched {
	int fd;
	void (*handle)(void *arg);
	void *arg;
};
#define WATCHED_MAX 2

/* What is to become of a command: of its session, which others decide about. */
enum command_wish { COMMAND_GO_ON, COMMAND_STAND_STILL, COMMAND_END };

/* One command; all of it is borrowed until running->ops->free(). */
struct command {
	struct arena *arena;
	const struct profile *profile;          /* the program, its arguments and limits; the walls are raised */
	const struct strings *environment;      /* the profile's, with secrets in it: for start() alone */
	struct sandbox_view *view;              /* of a sandbox that stays: what keeping->enter() gave; else NULL */
	int cwd_fd;
	const struct place *program;            /* the program must be this very file; or NULL */
	int stdin_fd;                           /* -1: empty input */
	bool tty, one_stream;                   /* a terminal of its own; stderr is its stdout */
	unsigned short rows, columns;
	unsigned umask;
	const struct ulimits *ulimits;          /* besides those of the profile */
	uint64_t stdout_cap, stderr_cap;
	cordon_output_fn output;                /* or NULL */
	void *output_arg;
	struct output_filter filter;
	enum command_wish (*wish)(void *arg);   /* asked again and again once it has run for a moment; or NULL */
	void *wish_arg;
	const struct rename_watch *renames;     /* if the driver tells of them; or NULL */
	struct watched watched[WATCHED_MAX];    /* the first `watched_count` */
	unsigned watched_count;
	int disk_roots[4];                      /* directories that count for the limit on disk space; -1: none */
	bool disk_growth;                       /* the limit is on what is added to them */
	int interrupt_fd;                       /* readable: the program that is being loaded is not waited for; or
	                                           -1 */
	const char **isolation;                 /* [CORDON_WALL_MAX], described; gets, before anything starts, what
	                                           holds the limits */
};

/* Of a driver whose sandbox can stay up for the commands of a session, one after the other and beside each other. The
 * caller sees to it that one thread at a time changes a sandbox; starting a command changes nothing. */
struct driver_keeping {
	/* Brings the sandbox up to date with these walls, and counts a command in. 1: another sandbox is needed.
	 * `may_add`: else only if it has these walls by now; otherwise *ret_view is NULL. */
	int (*enter)(struct sandbox *sandbox, const struct walls *walls, bool may_add, struct sandbox_view **ret_view,
	             struct cordon_error *err);
	void (*leave)(struct sandbox *sandbox, struct sandbox_view *view);
	/* Makes listeners in its network. */
	int (*listen)(struct sandbox *sandbox, const struct egress_listener *listeners, size_t count, int *ret_fds,
	              struct cordon_error *err);
	bool (*is_up)(const struct sandbox *sandbox);
	/* Ends everything in it now; it is lowered later. */
	void (*kill)(struct sandbox *sandbox);
};

struct driver {
	const char *name;
	bool is_named_only;     /* never chosen by `auto` */
	/* Walls, as 1 << enum cordon_wall. Of those that a profile asks for, nothing runs without these; a weaker tier
	 * requires none, since it runs only where it was named. */
	uint32_t required;
	uint32_t cannot;        /* held for no profile: describe() says "none" of them */
	const char *(*fix)(enum cordon_wall wall);      /* what to do where this wall is "none" */
	bool private_root, network_namespace;
	bool answers_offline;   /* a command without a network finds the proxy's listeners, which refuse everything
	                           at once */
	bool holds_writes;      /* nothing outside the grants can be written, or nothing runs */
	bool keeps_names;       /* protected names that exist cannot be changed while the command runs */
	bool sets_ulimits;      /* those of a command */
	bool tells_renames;     /* what a command renames is told before it happens */
	bool layers;            /* package caches of the host can be mounted under layers of the command's own */
	const struct driver_keeping *keeping;   /* or NULL */
	/* For each wall of the profile the mechanism that holds it in this sandbox, or "none"; the arena's, or static.
	 * start() says more of the limits. */
	void (*describe)(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
	                 const char *isolation[CORDON_WALL_MAX]);
	/* The same of every wall that this machine would hold, whether raise() refuses here or not; or NULL: only that
	 * tells. */
	void (*survey)(const char *isolation[CORDON_WALL_MAX]);
	int (*raise)(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
	             struct cordon_error *err);
	/* The listeners of walls->profile->egress that were made with the walls, below 0 for those that were not:
	 * once, after raise(), or where that left them to start(), after that. -1: none came. */
	int (*take_listeners)(struct sandbox *sandbox, int *ret_fds);
	/* Of a driver without a network namespace: the port of 127.0.0.1 that raise() listens at for the proxy, the
	 * only one that a command of listed hosts can connect to; the first of take_listeners(). NULL: listed hosts
	 * have a network namespace, or are refused. */
	uint16_t (*loopback_port)(const struct sandbox *sandbox);
	/* The user namespace and the network in it, once a command or a lasting sandbox is up; 0 or a negative errno.
	 * NULL: there is no network that a process outside could enter. */
	int (*network)(const struct sandbox *sandbox, int *ret_user, int *ret_network);
	/* 1, with an error: the sandbox does not answer, and is to be lowered. */
	int (*start)(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
	             struct cordon_error *err);
	void (*lower)(struct sandbox *sandbox);
};

/* By strength, the strongest first; the order `auto` tries them in. Ended by NULL. One list for each system. */
extern const struct driver *const drivers[];
const struct driver *driver_find(const char *name);

/* The strongest of this system: what a command runs under where no other was named. */
const struct driver *driver_default(void);

#define WALL_BIT(name) (UINT32_C(1) << CORDON_WALL_##name)
#define WALLS_ALL ((UINT32_C(1) << CORDON_WALL_MAX) - 1)
#define WALLS_LIMITS                                                                                                   \
	(WALL_BIT(LIMIT_MEMORY) | WALL_BIT(LIMIT_PROCESSES) | WALL_BIT(LIMIT_CPU) | WALL_BIT(LIMIT_DISK) |             \
	 WALL_BIT(LIMIT_TIME) | WALL_BIT(LIMIT_OUTPUT) | WALL_BIT(LIMIT_FILES))

/* Is it a limit that takes a control group, and that a command runs without unless it is required? */
bool driver_limit_is_optional(enum cordon_wall wall);
/* Refuses where the policy requires a limit (limits.required) that this driver cannot hold. */
int driver_require_limits(const struct driver *driver, const struct profile *profile,
                          struct cordon_error *err) must_check;
/* Refuses where a wall that this driver requires is "none". */
int driver_require(const struct driver *driver, const char *const isolation[CORDON_WALL_MAX],
                   struct cordon_error *err) must_check;
struct driver_mechanism {
	enum cordon_wall wall;
	const char *mechanism;
};
/* Writes the rows of walls that are asked for; every other wall that is asked for is "none". */
void driver_describe(const struct profile *profile, const struct driver_mechanism *rows, size_t count,
                     const char *isolation[CORDON_WALL_MAX]);
