/* The network of a command that may reach listed hosts: as part of step 5, a process of cordon-proxy of its own carries its
 * connections, and two threads of the caller's process go with it.
 *
 *     the walk      begin ─────────── started: hands over the listeners ───── end: joins both
 *     reader                            waits until one is used, starts the proxy, tells it the rules, hears of connections:
 *                                       rows, counters
 *     asker                               begins with the first question: one after the other goes to the gate, which waits
 *                                         for people
 *
 * There is no proxy for a command that never uses its network, unless it has many listeners. What it did just before its end
 * is carried, too, as far as that takes no more than a moment, and has its row.
 *
 * Both threads block every signal. They read the facts and change nothing of them; what they found out is reported when they
 * have ended. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "approval/gate.h"
#include "base/arena.h"
#include "base/denials.h"
#include "net/proxy-message.h"
#include "driver/linux/proxy.h"
#include "egress/counts.h"
#include "policy/capability.h"
#include "profile/egress.h"

struct egress;

#define EGRESS_ROWS_MAX 10000           /* in the ledger; of what comes after, one row tells how much it was */
#define EGRESS_DENIED_MAX 256           /* that are told one by one */
#define EGRESS_QUESTIONS_MAX 1024       /* that wait */

struct config;
struct ledger_room;

/* Plain facts about the command; all borrowed until egress_free(). */
struct egress_facts {
	const struct config *config;            /* its network settings */
	const struct egress_plan *plan;         /* listeners and rules; at least one listener */
	const struct strings *hosts, *private_hosts;    /* that were granted, and those that may be at a private address */
	struct gate gate;                       /* its ledger gets the rows */
	const struct gate_question *question;   /* to ask about other hosts; or NULL: never */
	struct ledger_room *room;               /* reserved for the rows */
	const char *program, *session_id, *audit_id;    /* for the rows */
	bool probe;                             /* find out whether a proxy can be had; no rows */
	void (*hold_input)(void *arg, bool hold);       /* while a human is asked, the command does not read the terminal */
	void *hold_input_arg;
};

struct egress_report {
	struct arena *arena;
	struct denials *denials;                /* gets what was denied */
	struct egress_counts counts;
	const char *offline_hint;               /* which hosts were asked for without a network, for people; the arena's, or NULL */
};

/* Before the driver raises the walls. */
int egress_begin(const struct egress_facts *facts, struct egress **ret_egress, struct cordon_error *err) must_check;
/* Once the command runs: put the descriptors of the listeners there, plan->count of them, below 0 for none; then say whether they
 * came. Without them the command has no network, and that is no error. */
int *egress_listeners(struct egress *egress);
void egress_started(struct egress *egress, bool listens);
/* The command has ended. */
int egress_end(struct egress *egress, struct egress_report *report, struct cordon_error *err) must_check;
/* Ends whatever there is. NULL is allowed. */
void egress_free(struct egress *egress);
/* What to tell of a command that failed, by what it said, for want of a network; or NULL. */
const char *egress_hint(enum network_mode mode, bool has_proxy, const struct egress_counts *counts, const char *said, size_t length);

/* ---- Between the files of this room -------------------------------------------------------------------------------- */

/* What was denied, or is not to be found, however often. */
struct egress_denied {
	char host[HOST_TEXT_SIZE];
	char why[RESOLVE_WHY_SIZE];
	char address[ADDRESS_TEXT_SIZE];        /* that was refused, or "" */
	uint64_t count;
	bool is_at_site;                        /* that address is, where the name could be allowed to be */
	bool covered;                           /* by the rules: it was refused for another reason */
};

struct egress_question {
	struct egress_question *next;
	uint32_t id;
	char host[HOST_TEXT_SIZE];
};

/* Whether it runs, and whether its listeners came out. */
enum egress_command { EGRESS_NO_COMMAND, EGRESS_LISTENS, EGRESS_DEAF };

struct egress {
	struct egress_facts facts;
	struct proxy_process process;
	pthread_t reader, asker;
	bool has_reader, has_asker;
	int ended_fd;                           /* readable once the command has ended */
	atomic_bool unrecorded;                 /* the ledger cannot be written */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	enum egress_command command;
	bool ended;                             /* the command has */
	struct egress_question *first, **last;
	size_t question_count;

	int *listeners;                         /* once they are handed over, the reader's; below 0: there is none */

	/* The reader's, until it has ended. */
	bool ready, told;                       /* the proxy is sealed; it has said its last, as it should */
	bool gave_up;                           /* it was not waited for any longer */
	char why[RESOLVE_WHY_SIZE];             /* it ended otherwise: why; or "" */
	struct egress_counts counts;
	uint64_t rows;
	struct egress_counts beyond;            /* those that have no row of their own */
	struct egress_denied *denied;
	size_t denied_count;
	uint64_t denied_more;
};

/* ---- row.c: of the reader ---------------------------------------------------------------------------------- */

/* Is this a message that the proxy may send, with texts that end and hosts that are hosts? */
bool egress_message_is_sound(const struct proxy_message *message);
/* A row for a connection that is open or has ended or a name that was denied, and what the result will say of it. -1 where the ledger
 * could not be written. */
int egress_tell(struct egress *egress, const struct proxy_message *message, struct cordon_error *err) must_check;
/* A row about the proxy itself. */
int egress_tell_failed(struct egress *egress, const char *why, struct cordon_error *err) must_check;
/* The last row, where some have none of their own. */
int egress_tell_rest(struct egress *egress, struct cordon_error *err) must_check;

/* ---- ask.c ------------------------------------------------------------------------------------------------- */

/* A question of the proxy's; it will get its answer. From the reader. */
void egress_ask(struct egress *egress, const struct proxy_message *message);
/* The command has ended. */
void egress_ask_end(struct egress *egress);

/* ---- egress.c ----------------------------------------------------------------------------------------------------- */

/* All of it is sent, and one descriptor with it unless that is below 0. -1 where the proxy is gone. */
int egress_send(const struct egress *egress, const struct proxy_message *message, int fd) must_check;
