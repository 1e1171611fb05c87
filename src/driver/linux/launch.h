/* Starting a command behind its walls.
 *
 *     caller ──clone──▶ first ──clone──▶ command ──exec──▶ the program
 *       │ (waits)           └──exec──▶ init: reaps, forwards, ends the tree
 *
 * `first` and `command` run in the caller's memory (CLONE_VM: the cost does not grow with the caller), so they touch
 * only this struct, their own stacks and raw system calls, and report failure by writing `error` here. `command`
 * begins while `first` raises the walls: it makes the network, which takes the kernel as long, and waits for them.
 * The caller waits until `first` has become init, and `command` the program: both have left its memory. Of two
 * failures the first is told. `first` keeps its capabilities over the new user namespace until it becomes init, so
 * the program cannot trace it. It unmounts the host's tree while `command` seals itself: the program begins when that
 * is gone. */
#pragma once
#include <linux/filter.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "profile/profile.h"
#include "driver/linux/await.h"

#define LAUNCH_PASS_MAX 16
#define LAUNCH_JOIN_MAX 3
/* The namespaces of a sandbox that all its starters share. */
#define LAUNCH_SANDBOX_SHARED (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)
/* In the base, what masks are made of: neither can be read. */
#define LAUNCH_MASK_FILE "proc/file"
#define LAUNCH_MASK_DIRECTORY "proc/directory"

struct launch_rlimit {
	int resource;
	struct rlimit value;
};

/* What a MOUNT_LAYER is made of (layers.h). */
struct launch_layer {
	const char *directory;          /* `upper` and `work` are in it; NULL: memory */
	int source_tree, directory_tree;        /* both as detached mounts made by a privileged caller, or -1 */
};

/* How the private root is made; all of it is played by `first`. */
struct launch_root {
	const struct mount_op *ops;
	size_t count;
	const int *trees;               /* per op: a detached mount made by a privileged caller, or -1; or NULL */
	const char *skeleton;           /* a directory to use as the base instead of fresh memory; or NULL */
	int skeleton_tree;              /* the same as a detached mount made by a privileged caller, or -1 */
	uint64_t root_bytes;            /* bound on the root's own tmpfs */
	const struct launch_layer *layers;      /* per op; of those that are MOUNT_LAYER; or NULL */
	int layers_lock;                /* of the slot they are in, for init to keep; or -1 */
};

/* What `command` does to itself last. Nothing in it can be undone by the program. */
struct launch_seal {
	const struct landlock_rule *rules;
	size_t rule_count;
	int landlock_abi;               /* 0: without Landlock */
	const struct sock_filter *filter;
	unsigned short filter_length;   /* 0: without seccomp */
	const struct launch_rlimit *rlimits;
	size_t rlimit_count;
	bool drop_privileges;           /* capabilities, bounding set, no_new_privs */
	bool new_keyring;
	bool landlock_execute;          /* without it, Landlock does not look at execution */
	uint64_t landlock_scopes;       /* LANDLOCK_SCOPE_* */
};

struct launch {
	uint64_t namespaces;            /* CLONE_NEW* */
	bool become;                    /* a root caller: become this unprivileged user first */
	uint32_t uid, gid;
	const char *uid_map, *gid_map;  /* texts for the new user namespace, or NULL */
	bool in_group;                  /* begins in a control group: born there, or else by joining it */
	int group_fd;                   /* the group to be born in, -1: joining it is all there is */
	uint64_t group_most;            /* processes that `group_fd` may have when `become`, which is one more, is
	                                   gone; 0: no matter */
	int group_joins[LAUNCH_JOIN_MAX];       /* files: a process that writes "0" to them joins the group; below 0:
	                                           none */
	bool command_joins;             /* `command` joins it, and `first` stays out of it */
	const char *hostname;           /* or NULL */
	bool loopback;                  /* the network is new: bring loopback up, and make the listeners */
	const struct egress_listener *listeners;        /* made inside, and handed out over the control socket */
	size_t listener_count;
	bool listeners_optional;        /* where they cannot be made, the command starts without them */
	const struct launch_root *root; /* NULL: the caller's own view */
	struct launch_seal seal;
	bool other_network;             /* launch_start_inside(): not in the network of the sandbox's init, but in the
	                                   following; or, where that is -1, in the caller's, or a new one of
	                                   `namespaces` */
	int other_network_fd;
	char *words;                    /* launch_start_inside(): of this process, as /proc/PID/cmdline shows them; */
	size_t words_length;            /* wiped in the copy of its memory that commands can see */
	bool starter;                   /* the program is a session's starter (starter.h) */
	unsigned helpers;               /* cordon's processes besides init that count among the user's in the sandbox */
	bool narrow;                    /* of a command that a starter starts: it may start no others */
	bool own_session;               /* setsid: no terminal of the caller's */
	bool close_descriptors;
	bool tty;                       /* a fresh terminal, made inside */
	unsigned short rows, columns;   /* its size */
	unsigned umask;
	const char *cwd;
	int cwd_fd;                     /* used instead of `cwd` where there is no private root; -1 otherwise */
	const char *const *candidates;  /* what to execute: the first that is there */
	const char *const *argv, *const *environment;
	bool tells_renames;             /* the program's renames are told to the supervisor: renames.h */
	bool check_program;             /* refuse a setuid, setgid or capable program */
	bool program_judged;            /* refuse any other file than this one */
	uint64_t program_device, program_inode;
	int stdio[3];
	int pass[LAUNCH_PASS_MAX];      /* handed to the program as 3, 4, …; ended by the first below 0 */
	int init_fd;                    /* the init program */
	const char *init_mode;          /* one of INIT_… (control.h) */
	int control_fd;                 /* init's end of the control socket */
	int init_socket_fd;             /* the caller's end, by which init reports that it runs; -1: it does not */
	int report_fd;                  /* where an external driver reports to, read at the end; -1 where there is
	                                   none */
	int ready_fd, go_fd;            /* where it reports that its namespaces are made, and waits; the same */
	const struct patience *patience;        /* until there is a program; NULL: any */

	/* ---- what is above is the plan; what is below is filled while it is carried out
	 * -------------------------------- */

	/* Filled by launch_start(), for `first` and `command`. */
	bool group_entered;
	int joined_fd; /* `become` enters these namespaces, which were made before: a user namespace (user.h), or those
	                * of a sandbox, by its init's pidfd; -1: `first` makes its own */
	uint64_t joined;                /* CLONE_NEW* of what is entered */
	int dumpable;                   /* where there is `become`: what the caller was before, */
	int become_fd;                  /* and a pidfd */
	int alone;                      /* not 0 once `become` is gone and waited for */
	uint64_t late;                  /* of the namespaces what `command` makes, beside `first`; 0: it begins when
	                                   the walls are up */

	/* Filled by launch_visit(), for the visitor. */
	int user_fd, network_fd, maker_fd;

	/* Filled by `first`. */
	int root_fd;                    /* the private root, before it is switched to; -1 where there is none */
	int hidden_fd;                  /* a directory in it that /proc covers; masks are made of it, and of: */
	int mask_fd;                    /* a file */
	int command;                    /* its pid, as `first` has it */
	int loading;                    /* 0 once `command` has left this memory */
	int standing;                   /* the same of `first` */
	bool watched;                   /* `first` is about to become init, which from then on handles the end of
	                                   `command` */
	int walls;                      /* not 0 once they are up, which `command` waits for */
	enum launch_network {
		NETWORK_AWAITED, NETWORK_UP, NETWORK_FAILED
	} network;                      /* told to `command`, which starts its program only then */

	/* Filled by `command`. */
	int late_made;                  /* not 0 once it has made what is late, which `first` waits for */

	/* Filled by launch_start(). */
	int pidfd;                      /* of init, or of the command's reaper */
	int renames_fd;                 /* of the same: the listener for its renames; or -1 */
	int terminal_fd;                /* of a command that a starter started: its terminal's master; or -1 */
	long clone_result;
	bool cut_short;                 /* that was over first: it was ended, and is or was never the program */
	bool failed;
	struct cordon_error error;
	void *first_stack, *command_stack;
	size_t stack_size;
};

/* Starts it. On success the program is running, launch->pidfd is the caller's, and init holds the other end of the
 * control socket; or the patience has run out, and all of that has ended or is about to. On failure nothing is left
 * running. The descriptors in `launch` stay the caller's to close. */
int launch_start(struct launch *launch, struct cordon_error *err) must_check;

/* Starts a further starter in the namespaces of a sandbox that is up, known by a pidfd of its init, but for its
 * mounts. Commands run there, and can stop and kill what is the command's user and in their pid namespace. So `first`
 * and `command` have a copy of the caller's memory, which is never dumpable, and nothing waits for them: on success
 * launch->pidfd is that of `first`, a child of the caller's. What becomes of it the starter's socket tells: its first
 * message, or the end, with launch->error where launch->failed. `launch` is in memory that is shared. */
int launch_start_inside(struct launch *launch, int sandbox_fd, struct cordon_error *err) must_check;

/* Whether anything can be started by this process at all; a check that comes before everything else. */
int launch_check(struct cordon_error *err) must_check;

/* After it: makes the listeners in namespaces that another process made, the network's and the user namespace that
 * owns it. They are handed out as those of `first` are. Waits until loopback is up there, or the maker, a pidfd, has
 * ended. */
int launch_visit(struct launch *launch, int user_fd, int network_fd, int maker_fd, struct cordon_error *err) must_check;

/* A descriptor of the embedded init program, made once per process; borrowed. */
int launch_init_fd(struct cordon_error *err) must_check;

/* Between clone and exec; in child*.c. */
void launch_first(void *launch);
void launch_command(void *launch);
void launch_become(void *launch);
void launch_visitor(void *launch);
/* The command's process of a reaper, which has a starter's seal. */
void launch_ordered(void *launch);
int launch_limit(struct launch *launch);
int launch_forbid_spawning(struct launch *launch);
/* Hands a listener for renames out over the socket at CONTROL_FD, which it closes. Where the kernel has none, or
 * somebody around us has it, the program starts without. */
int launch_tell_renames(struct launch *launch);
/* In a process of its own, which enters the namespaces of a sandbox that is up. launch->root_fd, mask_fd and hidden_fd
 * are its: plays operations that cover names in it. */
void launch_cover(void *launch);
/* The same: has detached copies of its mounts in memory made, for those of launch->root->ops that are to be the same,
 * and puts them into launch->root->trees. */
void launch_clone_scratch(void *launch);
/* `become` and these: enters launch->joined by launch->joined_fd, as the sandbox's user. 0 or a negative errno. */
long launch_join(struct launch *launch);
/* A terminal of the sandbox's own; its master goes out over the control socket. */
int launch_make_terminal(struct launch *launch);
/* Of the private root: a detached mount of the host's directory under its layer; read-only where there can be no
 * layer. Or a negative errno. What it is made of leaves the namespace with the host's tree. */
struct builder;
long launch_make_layer(struct builder *builder, const struct mount_op *op, const struct launch_layer *layer);
/* What `first` does, part by part. The command's process and the walls, one beside the other or after it: a pid or a
 * negative number. Then the network, which the program is started in, while the command seals itself. */
long launch_raise(struct launch *launch);
/* In a user namespace that has no maps yet: writes those of the launch. */
int launch_map_identity(struct launch *launch);
int launch_raise_network(struct launch *launch);
/* Sends a message with descriptors over the control socket; does not wait for a reader. 0 or more, or a negative
 * errno. */
struct msghdr;
long launch_hand_out(int control_fd, const struct msghdr *message);
/* In the network namespace. */
int launch_raise_loopback(struct launch *launch);
/* The addresses of the proxy, and the listeners; loopback is up. */
int launch_listen(struct launch *launch);
/* Joins the group, where it was not born in it, and has a view of groups with that as its root. */
int launch_enter_group(struct launch *launch);
/* Closes descriptors, or with CLOSE_RANGE_CLOEXEC marks them to be closed by exec. 0 or a negative errno. */
long launch_close_all(unsigned first, unsigned last, unsigned flags);
/* What the caller ignores or handles, its children do neither. */
void launch_reset_signals(void);
/* Waits to be killed, by the process of this pid or by its death. */
void launch_wait(void *parent);
/* Clones `first`; `more` is added to the flags. A pid or a negative errno. */
long launch_clone(struct launch *launch, uint64_t more);
/* Clones one that begins at `enter`, born in the launch's group if that can be. `pidfd` may be NULL. */
long launch_clone_at(struct launch *launch, uint64_t flags, void *stack, int *pidfd, void (*enter)(void *launch));
/* Reports a failure from there: fills launch->error and returns -1. */
int launch_fail(struct launch *launch, enum cordon_class class, long negative_errno, const char *boundary,
                const char *subject, const char *reason, const char *remediation);
int launch_unavailable(struct launch *launch, long negative_errno, const char *boundary, const char *subject,
                       const char *reason);
/* Builds the private root. The command enters it by itself; the host's tree leaves the namespace meanwhile, because
 * that takes the kernel longer than anything else here. */
int launch_raise_root(struct launch *launch);
int launch_enter_root(struct launch *launch);
int launch_leave_host(struct launch *launch);
int launch_seal(struct launch *launch);
/* For the calling thread: no program it executes can gain a capability any more. */
void launch_empty_bounding_set(const struct launch *launch);
