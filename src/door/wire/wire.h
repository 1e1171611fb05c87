/* What `cordon run` and `cordon serve` say to each other: frames of a fixed head and a body, over the daemon's unix
 * socket. Plain packed data in the machine's own byte order. JSON-RPC comes over the same socket; the first byte of a
 * connection tells which: no frame begins with one that JSON could begin with.
 *
 *     client                                          daemon
 *     HELLO  words, environment, directory      -->
 *                                               <--   DECLINE: run it yourself. Nothing has happened
 *                                               <--   ASK, and the client's ANSWER; SETTLED: no longer asked
 *                                               <--   MORE: the command runs; so many bytes of stdin are wanted
 *     STDIN  (none: its end), SIGNAL            -->
 *                                               <--   STDOUT, STDERR: to be written as they are
 *                                               <--   with WIRE_OVER: the command has ended, what follows may block
 *                                               <--   SAY_OUT, SAY_ERR: cordon's own words
 *                                               <--   TAKEN: where a regular file is left to others
 *                                               <--   END: the exit status
 *
 * Rules for a client:
 * - It takes the socket only where SO_PEERCRED says that its own effective user listens there.
 * - It reads no stdin before MORE, and never more than was wanted.
 * - Signals that it forwarded it raises for itself, once it has its old mask again, where the command never began: with
 *   DECLINE, and with WIRE_UNSTARTED. Until then they end the waiting for an answer.
 * - A signal for the command is a SIGNAL frame: those that `cordon run` forwards; SIGSTOP before the client stops
 * itself and SIGCONT after; SIGPIPE when its output has no reader, and SIGKILL where that has not helped within a
 * second.
 * - Until a frame with WIRE_OVER it goes on listening to signals while its output stalls; from there on it has its old
 * signal mask, and writes until everything is written.
 * - It does not read the socket on while more than a megabyte of output waits to be written. Neither does the daemon
 * read the command's then.
 * - The socket ends without END: the daemon is gone, and the command with it. If it ends by ECONNRESET before anything
 * was heard, the HELLO was not read, and the client runs the command itself.
 * - A daemon that is stopped answers nobody. What it has not read is known by SIOCOUTQ. A HELLO that it has not read
 * within a second, or when a signal comes, is taken back: see below. Later the second signal that ends things is for
 * the client itself, once the first was not read within a second. A client that goes away ends its command: SIGHUP, and
 * SIGKILL a second later. So does a daemon that is told to end, by SIGTERM and SIGKILL, and tells its clients how their
 * commands ended.
 *
 * Taking a HELLO back, so that the client can run the command itself and nothing runs twice. The client sends nothing
 * after its HELLO before it knows that this was read. It (1) shuts the connection down, then (2) asks how much is
 * unread. The daemon (3) reads the HELLO whole, then (4) looks whether the connection was shut down, and if so drops
 * the client; only then it begins anything. If (2) finds something unread, that is the HELLO or a part of it, so (3)
 * ends after (2), hence (4) comes after (1) and sees it: whenever the daemon wakes, it does not run the command. If (2)
 * finds nothing, the daemon has the HELLO and may have passed (4): then the client runs nothing and says that the
 * daemon has gone away. In either case only one of the two starts. Each side has a full barrier between its two steps,
 * for each writes what the other reads. */
#pragma once
#include <stdint.h>

#define WIRE_SOCKET "daemon.sock"       /* in cordon's data directory */
#define WIRE_VERSION 2u
#define WIRE_HELLO_MAX (128u << 10) /* the body of the longest HELLO; what is longer does not go through the daemon */
#define WIRE_ASK_MAX (1u << 20)         /* of the longest ASK; what is longer is for others to answer */
#define WIRE_BODY_MAX (64u << 10)       /* of every other frame */

enum wire_kind {
	WIRE_HELLO = 0x81,              /* struct wire_hello, then its strings */
	WIRE_STDIN,                     /* bytes; none: there are no more, and `flags` is why they could not be read,
	                                   an errno, or 0 */
	WIRE_SIGNAL,                    /* uint32_t */
	WIRE_ANSWER,                    /* struct wire_answer */

	WIRE_DECLINE = 0xc1,            /* nothing */
	WIRE_MORE,                      /* uint32_t: so many bytes more */
	WIRE_STDOUT,                    /* bytes */
	WIRE_STDERR,
	WIRE_ASK,                       /* struct wire_ask, then the text of the card */
	WIRE_SETTLED,                   /* nothing: the last ASK needs no answer any more */
	WIRE_SAY_OUT,                   /* bytes */
	WIRE_SAY_ERR,
	WIRE_END,                       /* uint32_t: the exit status */
	WIRE_TAKEN,                     /* uint64_t: so many bytes of stdin the command has read */
};

/* In `flags` of the head: */
#define WIRE_OVER 0x01                  /* the command has ended, or never began */
#define WIRE_UNSTARTED 0x02             /* it never began */

struct wire_head {
	uint8_t kind, flags;
	uint16_t zero;
	uint32_t length;                /* of the body */
} __attribute__((packed));

enum wire_hello_flag {
	WIRE_NO_STDIN = 1u << 0,        /* none at all, /dev/null, or a terminal that must not be read from the
	                                   background */
	WIRE_STDOUT_TERMINAL = 1u << 1,
	WIRE_STDERR_TERMINAL = 1u << 2,
	WIRE_ONE_STREAM = 1u << 4,      /* stdout and stderr are the same file: all comes as STDOUT, in its order */
	WIRE_CAN_ASK = 1u << 3,         /* a human can be asked: there is a controlling terminal, and the client is
	                                   in its foreground */
};

/* Followed by `word_count` words of the command line, from "run" on; by `environment_count` strings NAME=VALUE; by the
 * current directory: each ended by a NUL, nothing after them. */
struct wire_hello {
	uint32_t version, flags, word_count, environment_count, umask;
} __attribute__((packed));

struct wire_ask {
	char id[40], hash[80];          /* ended by NUL */
	uint8_t has_session;            /* it can be approved for the session */
	uint8_t running;                /* the command runs, and may have written to the terminal */
	uint8_t zero[6];
	uint64_t timeout_ms;
} __attribute__((packed));

struct wire_answer {
	char id[40], hash[80];          /* of what was shown */
	uint32_t answer;                /* enum cordon_answer */
	char reason[256];
} __attribute__((packed));
