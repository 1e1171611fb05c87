/* A session's sandbox on Linux: walls that stay up, and commands that are started in them.
 *
 *     sandbox   user, pid, network, ipc and uts namespaces; its init is their pid 1. With init everything in it ends
 *     view      a mount namespace and a starter (starter.h) in it. Another view, after a grant or a change of the
 * policy, has the sandbox's other namespaces and its memory (/dev/shm, /run); what runs in the older view goes on.
 * Where its network is the host's, and those before had the sandbox's own, or the other way round, it has another one
 *
 * Nothing here is locked: the caller sees to it that a sandbox and its views are changed by one thread at a time.
 * Starting a command changes neither. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "driver/linux/launch.h"

struct shared_sandbox {
	int pidfd;                      /* of init */
	int control_fd;                 /* its lifeline */
	bool become;                    /* a root caller: commands are another user */
};

struct shared_view {
	int starter_fd;                 /* orders go there */
	int pidfd;                      /* of the starter: the way into its mount namespace */
	int root_fd, mask_fds[2];       /* of the mount namespace: its root, and what masks are made of (-1: nothing
	                                   can be masked) */
};

/* All of it is closed. */
#define SHARED_NONE ((struct shared_sandbox){ -1, -1, false })
#define SHARED_NO_VIEW ((struct shared_view){ -1, -1, -1, { -1, -1 } })

/* `launch` is what a driver has prepared for the first command: its walls are raised, without the command. The
 * listeners of launch->listeners are put into `listeners`; -1 where there is none. */
int shared_raise(struct launch *launch, struct shared_sandbox *ret_sandbox, struct shared_view *ret_view,
                 int *listeners, struct cordon_error *err) must_check;
/* Another view, as the driver has prepared it in `launch`, with the memory of the view `now`. 1: commands were in the
 * way, or it took too long: the sandbox is to be lowered. */
int shared_add_view(const struct shared_sandbox *sandbox, const struct shared_view *now, struct launch *launch,
                     struct shared_view *ret_view, struct cordon_error *err) must_check;
/* Makes these listeners in a network of the sandbox's. */
int shared_listen(const struct shared_sandbox *sandbox, int user, int network, const struct egress_listener *listeners,
                  size_t count, int *ret_fds, struct cordon_error *err) must_check;
/* Starts the command of `launch`, whose stdio and control socket a supervision has prepared. launch->pidfd is its
 * reaper's. 1, with an error: the sandbox does not answer, and is to be lowered. */
int shared_start(const struct shared_view *view, struct launch *launch, struct cordon_error *err) must_check;

/* Is the name of this operation covered in the view, as the operation would cover it? 1: yes; 0: no; -1: there is
 * nothing of that name there. */
int shared_is_covered(const struct shared_view *view, const struct mount_op *op);
/* Covers names in a view. 1: its starter has ended, and the sandbox is to be lowered. */
int shared_cover(const struct shared_sandbox *sandbox, const struct shared_view *view, const struct mount_op *ops,
                 size_t count, struct cordon_error *err) must_check;

bool shared_is_up(const struct shared_sandbox *sandbox);
/* It has ended, or does so at this moment. */
bool shared_ends(const struct shared_sandbox *sandbox);
/* Its starter runs. */
bool shared_has_starter(const struct shared_view *view);
void shared_close_view(struct shared_view *view);
/* Ends everything that runs in it. */
void shared_lower(struct shared_sandbox *sandbox);

/* What of struct driver is only for a sandbox that stays: shared-views.c. */
struct driver_keeping;
extern const struct driver_keeping shared_keeping;
