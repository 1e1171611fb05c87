/* The sandboxes of sessions that are up in this process. A session's commands are started in one; it is raised for
 * the first of them and stays for the next ones, so that they share processes, loopback and memory as well as files.
 *
 *     sandboxes_enter   finds the session's sandbox or raises it, brings its walls up to date, and counts the command
 *                       in
 *     (start)           the driver's, in place->view
 *     sandboxes_leave   counts the command out
 *
 * Bringing up to date: where the walls of the session differ from those of every view of its sandbox, another view is
 * made; names that are to be hidden or protected are covered where they are not; the network's listeners are made and
 * closed. What runs is left alone. Where the session gets the network of the host, or no longer has that, the
 * commands to come have another network, in the same sandbox. A sandbox is lowered when it was idle for a while, when
 * its session is no longer active, when it does not answer, and where it cannot have other walls beside those that it
 * has: without Landlock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "driver/driver.h"
#include "egress/egress.h"
#include "profile/profile.h"

struct config;
struct json;
struct sandboxes;

struct sandboxes *sandboxes_new(void);
/* Lowers all. */
void sandboxes_free(struct sandboxes *sandboxes);

/* Plain facts about a command of a session; borrowed for the call. */
struct sandbox_request {
	const char *session_id;
	const char *session_made;               /* tells sessions apart that had the same id, one after the other */
	const char *audit_id;                   /* of the command, for display */
	const struct strings *argv;             /* the same */
	bool is_usual;    /* it asks for no walls of its own: what it has is what the session has */
	bool hides_names; /* it asks for names to be hidden or protected that are not for the others */
	bool is_job;
	const struct driver *driver;            /* which can keep a sandbox */
	struct walls walls;
	const struct config *config;
	const struct strings *hosts, *private_hosts;
	const struct strings *publish;
	struct gate gate;
	bool asks;                              /* about hosts */
	struct secret_terms terms;              /* what is looked for in what is sent in the clear */
	char *const *environment;               /* of the caller: the keys of gateways may be in it */
};

/* A command's place in a sandbox. */
struct sandbox_place {
	struct live *live;                      /* NULL: it has none */
	struct sandbox_view *view;
	struct sandbox_place *next;             /* of those in the same sandbox */
	const char *audit_id;
	const struct strings *argv;
	bool is_job;
	bool in_host_network;
	int64_t since_ms;
	bool follows_lost;                      /* the session's sandbox was gone, and this is another one */
	const char *left;                       /* jobs and commands that keep a network which those from this one on do
	                                           not have; in the request's arena; or NULL */
	const char *ended;                      /* those of a sandbox that had to be lowered for this command's walls */
	struct running *running;                /* NULL: not yet, or no more */
};

/* The session's sandbox, brought up to date; the place is the command's until sandboxes_leave(). 0, and place->live
 * NULL: the command asks for other walls, and has a sandbox of its own. */
int sandboxes_enter(struct sandboxes *sandboxes, const struct sandbox_request *request, struct sandbox_place *place,
                    struct cordon_error *err) must_check;
/* NULL-safe and idempotent. The sandbox is lowered unless it stays. */
enum sandbox_end {
	SANDBOX_STAYS,
	SANDBOX_ENDED,                          /* which this command's result tells */
	SANDBOX_LOST,                           /* the next command's result is to tell */
};
void sandboxes_leave(struct sandboxes *sandboxes, struct sandbox_place *place, enum sandbox_end end);

/* What a command that has entered needs of it. */
struct sandbox *sandbox_of(const struct sandbox_place *place);
/* Counts it in at the egress of its network; *ret_command stays NULL where that has none. */
int sandbox_join_egress(const struct sandbox_place *place, const struct egress_command_facts *facts,
                        struct egress_command **ret_command, struct cordon_error *err) must_check;
/* It runs; or, with NULL, it is about to be freed. For what is shown of it. */
void sandbox_set_running(struct sandbox_place *place, struct running *running);

/* Another one is raised for the session's next command; this one is lowered when what runs in it has ended. */
void sandboxes_retire(struct sandboxes *sandboxes, const struct sandbox_place *place);
/* Of a session that was ended or removed: at once. */
void sandboxes_lower(struct sandboxes *sandboxes, const char *session_id);
/* Lowers those that were idle for a while; `is_active` says whether a session still is. False: none is left. */
bool sandboxes_sweep(struct sandboxes *sandboxes, bool (*is_active)(void *arg, const char *session_id), void *arg);
/* What decides about a session's network: its configuration, and its record by what tells one version from the next. */
struct sandbox_news {
	const struct config *config;            /* a reference, which is taken */
	uint64_t record[2];
};
/* Of each session in which something runs: where what `look` finds is not what it found before, `change` is called. */
void sandboxes_watch(struct sandboxes *sandboxes,
                     bool (*look)(void *arg, const char *session_id, struct sandbox_news *ret_news),
                     void (*change)(void *arg, const char *session_id), void *arg);
/* Is something of this session running? */
bool sandboxes_is_used(struct sandboxes *sandboxes, const char *session_id);
/* The network and ports of a sandbox that is up, as its next command would have them: for what already runs. What is
 * asked, searched for and read from the environment stays as it was. A network of another kind is for the next
 * command to bring. */
int sandboxes_refresh(struct sandboxes *sandboxes, const struct sandbox_request *request,
                      struct cordon_error *err) must_check;
/* "sandbox": null, or what is up and what runs in it. */
void sandboxes_write_json(struct sandboxes *sandboxes, struct json *json, const char *session_id);

/* ports.c: a port of a sandbox that is up, at this machine's loopback, until it is closed or its sandbox ends. */
struct port_request {
	const char *session_id;
	unsigned port;
	unsigned host_port;                     /* 0: one that is free */
	const struct config *config;
	struct gate gate;
};
struct port_shown {
	char id[ID_SIZE];
	unsigned port, host_port;
};
/* `not_found` where no sandbox of the session is up, `invalid_request` where it has the host's network or the port is
 * in use. */
int sandboxes_open_port(struct sandboxes *sandboxes, const struct port_request *request, struct port_shown *ret_port,
                        struct cordon_error *err) must_check;
/* Its connections end. The session's id is in the arena. */
int sandboxes_close_port(struct sandboxes *sandboxes, struct arena *arena, const char *id, struct port_shown *ret_port,
                         const char **ret_session, struct cordon_error *err) must_check;
void port_write_json(struct json *json, const char *session_id, const struct port_shown *port);
/* "ports": those of the session, or with NULL all. */
void sandboxes_write_ports(struct sandboxes *sandboxes, struct json *json, const char *session_id);
