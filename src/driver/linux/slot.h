/* Places for commands that are made ahead. What the commands of a session share are commons: a user namespace, the network, the
 * host name, kept by descriptors alone. A keeper, which is cordon-init in another role, makes slots in them: it clones one that
 * enters the commons, clones the slot and ends. A slot is pid 1 of its own namespaces; it raises the walls as
 * `first` of launch.h's picture does, clones `command`, and becomes init. The command waits behind its seal.
 *
 *     supervisor ──slot_request──▶ keeper ──clone──▶ enters, ──clone──▶ slot: raises walls, is init ──clone──▶ command: sealed, waits
 *         │  ◀──STARTED, a pidfd─────────────────────┘                  │                                      ▲
 *         │  ◀──READY or FAILED─────────────────────────────────────────┘                                      │
 *         └──orders: program, arguments, environment, directory, three descriptors────────────────────────────┘
 *            ◀──end of file: it is the program now; or FAILED
 *
 * All of this is on the slot's own socket, of which nobody has the other end by the time the command is the program. The
 * control socket is init's, as always. A keeper has one descriptor, its socket, and no capability; when that closes it
 * makes no more, and ends with the last of its slots. These go on until their own control sockets close. One keeper does
 * for all sessions: what is idle has no process, of which everything that looks at all of them would take notice. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "driver/linux/launch.h"

#define SLOT_FD 3                       /* of the command, until it is the program */
#define SLOT_ORDERS_MAX (64 * 1024)     /* one message */
#define SLOT_PLAN_MAX (1024 * 1024)
#define SLOT_DESCRIPTORS_MAX 200        /* with one request; the kernel's bound is 253 */

#define SLOT_COMMONS_MAX 2

/* To the keeper, with descriptors: the plan, the control socket, the slot's socket, the commons, then those the plan counts by
 * position. */
struct slot_request {
	uint64_t namespaces;            /* CLONE_NEW*, that are to be made */
	uint64_t shared;                /* those of the commons, besides the user's */
	uint32_t plan_size;
	uint32_t unused;
};
enum { SLOT_REQUEST_PLAN, SLOT_REQUEST_CONTROL, SLOT_REQUEST_SOCKET, SLOT_REQUEST_COMMONS };

enum slot_reply_kind {
	SLOT_STARTED = 1,               /* with a pidfd */
	SLOT_READY,                     /* with its root */
	SLOT_FAILED,                    /* with the error */
};

struct slot_reply {
	int32_t kind;
	struct cordon_error error;      /* only of SLOT_FAILED; else not sent */
};

/* What the command is told; the strings are in the same message. */
struct slot_orders {
	const char *cwd;
	const char *const *candidates, *const *argv, *const *environment;
	uint64_t program_device, program_inode;
	bool program_judged;
	unsigned umask;
};

/* A struct and all that it points to, in one run of bytes: at the places that `fixups` tells there are offsets from the
 * beginning, which become pointers wherever the bytes lie. The root struct follows the head. */
struct slot_pack {
	uint32_t size, fixup_at, fixup_count;
	uint32_t unused;
};

/* ---- The supervisor's half ------------------------------------------------------------------------------------- */

struct keeper;

/* Namespaces: the network's and the host name's, whose owner is the user's; that one itself where there are none. */
struct commons {
	int fds[SLOT_COMMONS_MAX];
	int count;
	uint64_t shared;                /* CLONE_NEWNET, CLONE_NEWUTS */
};

/* What slots are made from: a plan that was packed once. */
struct slot_plan {
	int fd;                         /* the plan, sealed, in memory; -1: none */
	uint32_t size;
	uint64_t namespaces;
};

struct slot {
	int socket_fd, control_fd, pidfd;
	int root_fd;                    /* its root directory, of a ready one */
	bool ready;
};

/* Starts a keeper for slots of `launch`, which a driver prepared, and of others with the same user. */
int keeper_start(const struct launch *launch, struct keeper **ret_keeper, struct cordon_error *err) must_check;
bool keeper_is_alive(const struct keeper *keeper);
struct keeper *keeper_ref(struct keeper *keeper);
/* The last closes it: it ends when its slots have, which go on. Those that did are reaped by the sweep, or with `wait` all of
 * them: for when no command runs any more. NULL is allowed. */
void keeper_unref(struct keeper *keeper);
void keeper_sweep(bool wait);

/* Makes `shared` (CLONE_NEWNET, CLONE_NEWUTS) and the user namespace over it, for slots of `launch`. */
int commons_make(const struct launch *launch, uint64_t shared, struct commons *ret_commons, struct cordon_error *err) must_check;
void commons_close(struct commons *commons);

/* Packs what a driver prepared, for slots in commons of `shared`. */
int slot_plan_make(const struct launch *launch, uint64_t shared, struct slot_plan *ret_plan, struct cordon_error *err) must_check;
/* Asks for a slot and does not wait. `launch` has the descriptors that the plan counts: the same as those it was made
 * with. */
int slot_begin(const struct keeper *keeper, const struct commons *commons, const struct slot_plan *plan,
               const struct launch *launch, struct slot *ret_slot, struct cordon_error *err) must_check;
/* Waits until it is ready, or has failed, as it has where its keeper is gone. */
int slot_await_ready(struct slot *slot, const struct keeper *keeper, struct cordon_error *err) must_check;
/* Gives a ready one its orders, from `launch`: stdio, what to execute, where. From now on it runs. On failure nothing ran,
 * and it can be tried elsewhere. */
int slot_order(struct slot *slot, const struct launch *launch, struct cordon_error *err) must_check;
/* Waits until it is the program, or could not be; or as long as there is patience, which may be NULL, and is 1 where it is not by then. */
int slot_await_program(const struct slot *slot, const struct patience *patience, struct cordon_error *err) must_check;
void slot_end(struct slot *slot);

/* In bytes of this capacity; 0: too large. Offsets into the bytes. */
struct slot_packer {
	char *bytes;
	uint32_t capacity, length, fixup_count;
	uint32_t fixups[8192];
	bool full;
};
void slot_pack_begin(struct slot_packer *packer, void *bytes, uint32_t capacity);
uint32_t slot_pack_bytes(struct slot_packer *packer, const void *data, size_t size);
void slot_pack_point(struct slot_packer *packer, uint32_t field, uint32_t to);
void slot_pack_text(struct slot_packer *packer, uint32_t field, const char *text);
void slot_pack_texts(struct slot_packer *packer, uint32_t field, const char *const *texts);
uint32_t slot_pack_end(struct slot_packer *packer);

/* ---- The slot's half, without libc: child-slot.c ---------------------------------------------------------------- */

/* Makes the pointers; returns the root struct, or NULL where the bytes are no pack. */
void *slot_unpack(void *bytes, size_t size);
/* Of the command: keeps the slot's socket as SLOT_FD and nothing else. */
int slot_keep(struct launch *launch);
/* Of the command: waits for its orders, and takes them. Where they will never come, it ends here. */
int slot_await(struct launch *launch);
void slot_tell_failure(const struct launch *launch, int fd);
/* The life of the keeper of this process; it has CONTROL_FD. */
void keeper_serve(void) __attribute__((noreturn));
/* In a slot: raises the walls, and is its init to the end. */
void launch_slot(struct launch *launch) __attribute__((noreturn));
/* The life of an init; it has CONTROL_FD. With a slot's launch it is the slot's. */
void init_serve(const char *mode, long command, const struct launch *slot) __attribute__((noreturn));
