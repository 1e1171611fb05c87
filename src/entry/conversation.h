/* One command run through the daemon: what the two halves of it share. */
#pragma once
#include <errno.h>

#include "door/wire.h"
#include "entry/entry.h"

struct conversation {
	int socket, signal_fd;
	int out[3];             /* where 1 and 2 are written to: themselves, or the same terminal opened again */
	int error[3];           /* the errno that ended writing there, or 0 */
	uint64_t mask_before;
	uint32_t flags;         /* of the HELLO */
	uint32_t wanted;        /* so many bytes of stdin may be sent */
	bool stdin_open, stdin_terminal;
	bool over;              /* the command has ended, and signals are for us again */
	bool greeted;           /* the HELLO was read */
	bool given_up;          /* and it was taken back, or could not be any more: entry_handed has which */
	bool deaf;              /* for a second it has not read what was sent */
	uint32_t ends;          /* signals that end things were sent; none of them was read, as far as is known... */
	uint32_t last_end;      /* ...and the last of them */
	uint32_t taken;         /* a bit for each signal that was sent to the command: 1 << number */
	int stream;             /* where the body of the current frame goes... */
	uint32_t left;          /* ...of which so much is still to come, or to be written */
	uint64_t broken_at_ms;  /* when the reader was found gone, or 0 */
};

/* hello.c: connected, and everything said. False: nothing was, and nothing is changed. */
bool entry_hello(const struct entry_process *process, struct conversation *ret_conversation)
	__attribute__((visibility("hidden")));
/* Of the terminal that it is. */
bool entry_is_in_foreground(int fd) __attribute__((visibility("hidden")));
/* Signals as they were. */
void entry_release_signals(struct conversation *conversation) __attribute__((visibility("hidden")));
