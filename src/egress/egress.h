/* The library's end of a sandbox's network, where that has listeners: a process of cordon-proxy carries the
 * connections of all commands that run in the sandbox.
 *
 *     begin ── started: the listeners are there ── join … leave, for each command ── end: its last words ── free
 *     reader    waits until a listener is used, starts the proxy, sends it the rules, reads of connections: rows,
 *               counters. One descriptor more in the loop of the command; of a sandbox that stays, a thread
 *     asker     a thread of a command, from its first question on: one after the other goes to the gate, which waits
 *               for people
 *
 * There is no proxy for a sandbox that never uses its network, unless it has many listeners. What a command did just
 * before its end is carried, too, as far as that takes no more than a moment, and has its row. A connection is
 * counted as that of every command that runs at the time; its row names the command, or all of them where there are
 * several.
 *
 * The threads block every signal. Files: egress.c the calls below, reader.c the reader and its states, process.c what
 * the proxy is told, row.c rows, report.c what the result says, ask.c questions. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "approval/gate.h"
#include "base/arena.h"
#include "base/denials.h"
#include "base/id.h"
#include "base/latch.h"
#include "net/proxy-socket.h"
#include "driver/proxy.h"
#include "egress/counts.h"
#include "policy/capability.h"
#include "profile/egress.h"
#include "secrets/filter.h"

struct egress;

#define EGRESS_ROWS_MAX 10000           /* in the ledger; of what comes after, one row tells how much it was */
#define EGRESS_DENIED_MAX 256           /* that are told one by one */
#define EGRESS_LEFT_MAX 32              /* commands that are known after their end */
#define EGRESS_QUESTIONS_MAX 1024       /* that wait */

struct config;
struct ledger_room;

/* Plain facts about the sandbox; all borrowed until egress_free(). */
struct egress_facts {
	const struct config *config;            /* its network settings */
	const struct egress_plan *plan;         /* listeners and rules; at least one listener */
	const struct strings *hosts, *private_hosts;    /* that were granted, and those that may be at a private
	                                                   address */
	struct gate gate;                       /* its ledger gets the rows */
	const char *session_id;                 /* for the rows */
	bool asks;                              /* about other hosts, if a command that runs has a question for it */
	bool is_gateway;                        /* the process is cordon-gateway; see egress.c */
	bool publishes;                         /* its listeners are this machine's, and lead inside: see publish.h */
	bool stays;                             /* longer than a command: it is read by a thread */
	struct secret_terms terms;              /* what is looked for in requests; copied, with a reference of its
	                                           own */
	char *const *environment;               /* of the caller, where the keys of gateways may be; or NULL */
	bool probe;                             /* find out whether a proxy can be had; no rows */
};

/* The same about a command; borrowed until egress_leave(). */
struct egress_command_facts {
	const struct gate_question *question;   /* to ask about other hosts; or NULL: never */
	struct ledger_room *room;               /* reserved for the rows */
	const char *program, *audit_id;         /* for the rows */
	struct address address;                 /* of its own, at which it reaches the proxy; of length 0: it has
	                                           none */
	void (*hold_input)(void *arg, bool hold);       /* while a human is asked, the command does not read the
	                                                   terminal */
	void *hold_input_arg;
};

struct egress_report {
	struct arena *arena;
	struct denials *denials;                /* gets what was denied */
	const char *named_host;                 /* given: by the command itself, with this port, as what it did not */
	int named_port;                         /* reach; or NULL */
	struct egress_counts counts;
	const char *offline_hint;               /* which hosts were asked for without a network, for people; the
	                                           arena's, or NULL */
};

struct egress_command;

/* What keys of gateways are read with, as a copy in the arena: for an egress that lasts longer than the request.
 * Wiped by the caller with egress_forget_environment(). -1 when memory is short. */
int egress_keep_environment(struct arena *arena, const struct config *config, char *const *environment,
                            char ***ret_environment) must_check;
void egress_forget_environment(char **environment);

/* Before the driver raises the walls. */
int egress_begin(const struct egress_facts *facts, struct egress **ret_egress, struct cordon_error *err) must_check;
/* Once the walls are up: put the descriptors of the listeners there, plan->count of them, below 0 for none; then say
 * whether they came. Without them commands have no network, and that is no error. */
int *egress_listeners(struct egress *egress);
void egress_started(struct egress *egress, bool listens);
/* Of one that does not stay: a descriptor to poll from the beginning, and what to call, with the egress, whenever that
 * is readable; in the thread that started it. */
int egress_fd(const struct egress *egress);
void egress_handle(void *egress);
/* Before that, of one that publishes: takes a user namespace, and the network in it that the proxy is to be in. */
void egress_enter(struct egress *egress, int user_fd, int network_fd);
/* A command is about to start. */
int egress_join(struct egress *egress, const struct egress_command_facts *facts, struct egress_command **ret_command,
                struct cordon_error *err) must_check;
/* It has ended. NULL as a report: it is not needed. */
int egress_leave(struct egress_command *command, struct egress_report *report, struct cordon_error *err) must_check;
/* Where the proxy is at a port of this machine's loopback, what the command shows to it; NULL elsewhere. It is for the
 * command's environment alone: it is in no row, no text and no argument. */
const char *egress_command_token(const struct egress_command *command);
/* Another egress listens at the same addresses from now on, with this plan: connections of hosts that it has, too, go
 * on here, the others end. False: nothing goes on here, and it is to be ended. */
bool egress_hand_over(struct egress *egress, const struct egress_plan *next);
/* Has the proxy ended by itself? Then commands have no network any more. */
bool egress_is_over(struct egress *egress);
/* No command will need it: before the last one leaves, so that what it did just before is in its report. Of a probe,
 * an error where there can be no proxy. */
int egress_end(struct egress *egress, struct cordon_error *err) must_check;
/* Ends whatever there is. NULL is allowed. */
void egress_free(struct egress *egress);
/* What to tell of a command that failed, by what it said, for want of a network; or NULL. */
const char *egress_hint(enum network_mode mode, const struct egress_plan *plan, const struct egress_counts *counts,
                        const char *said, size_t length);

/* ---- Between the files of this room ------------------------------------------------------------------------------ */

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

enum egress_state {
	EGRESS_NOT_UP,                          /* the walls are not */
	EGRESS_DEAF,                            /* its listeners did not come out */
	EGRESS_LISTENS,                         /* none of them has been used yet */
	EGRESS_CARRIES,                         /* the proxy has been started */
	EGRESS_OVER,                            /* nothing is read any more */
};

struct egress_command {
	struct egress_command *next;
	struct egress *egress;
	struct egress_command *gateway;         /* the same command at the gateway; or NULL */
	struct egress_command_facts facts;
	pthread_t asker;
	bool has_asker;
	struct latch latch;                     /* set once the command has ended */
	uint32_t number;                        /* by which the proxy knows it; from 1 */
	char token[PROXY_TOKEN_LENGTH + 1];     /* "": it has none */
	/* Under the egress's lock. */
	bool ended;
	struct egress_question *first, **last;
	size_t question_count;
	struct egress_counts counts;
	uint64_t rows;
	struct egress_counts beyond;            /* those that have no row of their own */
	struct egress_denied *denied;
	size_t denied_count;
	uint64_t denied_more;
};

/* A command that has ended: what it was connected to may end later, and is reported then. */
struct egress_left {
	struct address address;
	char audit_id[ID_SIZE];                 /* "": there is none in this place */
	char *program;
	int64_t ended_ms;
	uint32_t number;
};

struct egress {
	struct egress_facts facts;
	struct egress_plan plan;                /* its own part of the one that was given */
	struct egress *gateway;                 /* the same for the gateways, where the plan has some; or NULL */
	struct proxy_process process;
	struct proxy_inbox inbox;
	int poll_fd;                            /* readable when there is something to read */
	pthread_t reader;                       /* of one that stays: */
	bool has_reader;
	struct latch latch;                     /* set once it is to end */
	atomic_bool unrecorded;                 /* the ledger cannot be written */

	pthread_mutex_t lock, sending;  /* `sending`: a message is on its way whole before the next one begins */
	pthread_cond_t changed;
	/* Under the lock. */
	enum egress_state state;
	bool ended;
	bool ready;                             /* the proxy is sealed */
	uint32_t asked, answered;               /* how often the proxy was asked for all it has to say, and has said
	                                           it */
	struct egress_command *commands;        /* that run, the newest first */
	struct egress_command idle;             /* stands for them where there is none */
	struct egress_left left[EGRESS_LEFT_MAX];
	size_t left_count;                      /* ever; the next is put at this place of the ring */
	uint32_t last_number;

	int network_fds[2];                     /* a user namespace and a network, which the proxy enters; or -1 */
	int *listeners;                         /* once they are handed over, the reader's; below 0: there is none */

	/* The reader's, until it has ended. */
	bool told;                              /* the proxy has said its last, as it should */
	bool gave_up;                           /* it was not waited for any longer */
	char why[RESOLVE_WHY_SIZE];             /* it ended otherwise: why; or "" */
};

/* The newest command, whose rows and questions are those that no command is known for. */
static inline struct egress_command *egress_owner(struct egress *egress)
{
	return egress->commands ? egress->commands : &egress->idle;
}

/* Without a network the proxy only says so: nothing is lost where there is none. */
static inline bool egress_is_offline(const struct egress *egress)
{
	return egress->facts.plan->is_offline;
}

/* The command that dialled the proxy at its own address, or showed its token; NULL: it is not known. */
struct egress_command *egress_sender(struct egress *egress, const struct proxy_message *message);

/* ---- row.c: of the reader, under the lock ---------------------------------------------------------------------- */

/* Is this a message that the proxy may send, with texts that end and hosts that are hosts? */
bool egress_message_is_sound(const struct proxy_message *message);
/* A row for a connection that is open or has ended or a name that was denied, and what the result will say of it. -1
 * where the ledger could not be written. */
int egress_tell(struct egress *egress, const struct proxy_message *message, struct cordon_error *err) must_check;
/* A row about the proxy itself. */
int egress_tell_failed(struct egress *egress, const char *why, struct cordon_error *err) must_check;
/* The last row of a command, where some have none of their own. */
int egress_tell_rest(struct egress_command *command, struct cordon_error *err) must_check;

/* ---- ask.c ------------------------------------------------------------------------------------------------- */

/* A question of the proxy's; it will get its answer. From the reader, under the lock. */
void egress_ask(struct egress *egress, const struct proxy_message *message);
/* The command has ended; without the lock. */
void egress_ask_end(struct egress_command *command);

/* ---- terms.c ----------------------------------------------------------------------------------------------------- */

/* To the proxy, before it begins. */
int egress_send_terms(const struct egress *egress) must_check;

/* A row without secrets in it, such as a host that was named after one. -1 when memory is short. */
int egress_clean_row(const struct egress *egress, struct json *json) must_check;

/* ---- gateways.c -------------------------------------------------------------------------------------------------- */

/* To the gateway, before it begins. */
int egress_send_gateways(const struct egress *egress) must_check;

/* ---- reader.c ---------------------------------------------------------------------------------------------------- */

/* The walls are up: listeners are watched. */
void egress_listen(struct egress *egress);
/* Handles what is ready. */
void egress_step(struct egress *egress);
/* The end: what the proxy has to say is waited for. */
void egress_conclude(struct egress *egress);
/* A thread that does all of this. */
int egress_start_reader(struct egress *egress, struct cordon_error *err) must_check;
void egress_unwatch(const struct egress *egress, int fd);

/* ---- report.c ---------------------------------------------------------------------------------------------------- */

int egress_report_fill(const struct egress_command *command, struct egress_report *report) must_check;

/* ---- process.c --------------------------------------------------------------------------------------------------- */

int egress_start_proxy(struct egress *egress, struct cordon_error *err) must_check;
/* All that it must know before it begins. One that does not listen is ended, and found out about by reading like one
 * that is gone. */
void egress_brief(struct egress *egress);
/* What the command has to show from now on, or `ended`, no longer. Under the lock. */
int egress_send_token(const struct egress *egress, const struct egress_command *command, bool ended) must_check;
void egress_close_listeners(struct egress *egress);
int egress_send_rules(const struct egress *egress, const struct egress_plan *plan, bool has_v6) must_check;
/* All of it is sent, and one descriptor with it unless that is below 0. -1 where the proxy is gone. */
int egress_send(const struct egress *egress, const struct proxy_message *message, int fd) must_check;
