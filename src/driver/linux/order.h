/* Messages between the library and the starter, the process in a session's sandbox that starts its commands.
 *
 *     starter   READY, with a pidfd of itself, its root           once, when its walls are up
 *               directory and what masks are made of
 *     library   one byte, with the descriptors of an order        for each command
 *     reaper    READY, with a pidfd of itself                     on the command's own control socket, from here on
 *     reaper    FAILED, with the error; or CONTROL_STARTED        when the program was or was not executed
 *
 * An order is a file in memory: struct order, then room for the pointers, then the texts, each ended by NUL: the
 * directory, the candidates, the arguments, the environment. It has no pointers, so that it means the same in every
 * process. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "driver/linux/launch.h"

#define ORDER_MAX (UINT64_C(8) << 20)   /* more than the kernel lets a program have */
#define ORDER_RLIMITS_MAX 16

/* The descriptors of an order, in this order. Then those of LAUNCH_JOIN_MAX group files that there are. */
enum order_fd { ORDER_TEXT, ORDER_CONTROL, ORDER_STDIN, ORDER_STDOUT, ORDER_STDERR, ORDER_JOINS };
#define ORDER_FDS_MAX (ORDER_JOINS + LAUNCH_JOIN_MAX)

enum reply_kind {
	REPLY_READY = 1,                /* with a descriptor */
	REPLY_FAILED,                   /* with the error */
};

#define REPLY_FDS_MAX 4

struct reply {
	int32_t kind;
	struct cordon_error error;      /* only of REPLY_FAILED; else not sent */
};

struct order {
	uint64_t size;                  /* of the whole file */
	uint32_t candidates, arguments, variables;      /* how many texts of each kind */
	uint32_t rlimit_count;
	struct launch_rlimit rlimits[ORDER_RLIMITS_MAX];
	uint64_t program_device, program_inode;
	uint32_t umask;
	uint16_t rows, columns;
	bool program_judged, check_program, own_session, close_descriptors, tty, narrow, tells_renames;
};

/* An order for the command of `launch`, as a descriptor. */
int order_write(const struct launch *launch, struct cordon_error *err) must_check;

/* ---- without libc: child-order.c ------------------------------------------------------------------------------- */

/* Fills the parts of `launch` that are about the command from the file of an order; false where it is none. */
bool order_read(int fd, struct launch *launch);
/* Sends REPLY_READY with these descriptors. */
long reply_with(int socket_fd, const int *fds, size_t count);
/* Sends the launch's error, if it has failed. */
void reply_failure(const struct launch *launch, int fd);
