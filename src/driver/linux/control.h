/* What travels on the control socket between the supervisor and init. One SOCK_SEQPACKET message is one struct. The
 * supervisor's end of the socket is also the command's lifeline: when it closes, init ends and everything with it. */
#pragma once
#include <stdint.h>

#define CONTROL_FD 3
#define LAYERS_FD 4             /* a lock that init keeps until nothing of the command is left (layers.h); or closed */

enum control_kind {
	CONTROL_SIGNAL = 1,     /* to init: signal the command's process group */
	CONTROL_KILL,           /* to init: kill the whole tree, then report */
	CONTROL_TERMINAL,       /* from the child, before init is up: carries the terminal's master descriptor */
	CONTROL_STARTED,        /* from init: it is up */
	CONTROL_REPORT,         /* from init: the command ended and nothing of it is left */
	CONTROL_DEADLINE,       /* to init: kill the whole tree at `end_us`, then report, if nobody has asked for it
	                           until then */
	CONTROL_RENAMES,        /* from the command's process, before it is the program: carries a listener
	                           (renames.h) */
	CONTROL_LISTENERS,      /* from the child, before init is up: carries listening sockets, in the order of the
	                           plan */
};

#define CONTROL_LISTENERS_MAX 64        /* in one message */

struct control_message {
	int32_t kind;
	int32_t value;                  /* the signal, the wait status, or how many listeners are spoken of */
	uint64_t made;                  /* which of those are there, the first of them in the lowest bit */
	uint64_t cpu_us, max_rss_kb;    /* the latter 0 where it is not known */
	uint64_t read_bytes, written_bytes;     /* of storage */
	uint64_t end_us;                /* CLOCK_MONOTONIC: when the command itself ended, or the deadline */
	uint64_t late;                  /* of a report: not 0 where init's own deadline ended the command */
	uint64_t rest;                  /* of a reaper's report: not 0 where it could not end all that the command
	                                   had started */
};

/* How init is told what it is: argv[1]. */
#define INIT_PID_NAMESPACE "1"  /* pid 1 of its own namespace: the kernel kills the rest when it exits */
#define INIT_SUBREAPER "s"      /* an ordinary process that adopts orphans and kills them by hand */
#define INIT_SCOPED "d"         /* the same, in a Landlock domain that no signal leaves: it kills all in it at once */
#define INIT_REAPER                                                                                                    \
	"r" /* of one command in a session's sandbox: a subreaper, which gives up on its descendants after a while */
#define INIT_STARTER "t"        /* starts the commands of a session's sandbox: starter.h */
#define INIT_VIEW "v"           /* there is no init: a further starter, for a sandbox that has one */
#define INIT_USER "u"           /* makes a user namespace, and hands it out: user.h */
/* Test programs only, as a second letter: init neither ends what the command left nor guards itself from being
 * traced. */
#define INIT_CARELESS "-"
