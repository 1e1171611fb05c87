/* One sandbox that is up: between the files of this room. */
#pragma once
#include <pthread.h>

#include "egress/publish.h"
#include "sandbox/sandboxes.h"

/* Its network; what egress.h borrows lies here. One that was replaced stays until the commands that began with it have
 * ended. */
struct live_network {
	struct live_network *next;
	struct arena arena;
	const struct config *config;            /* referenced */
	struct egress_plan plan;
	struct strings hosts, private_hosts;
	char **environment;                     /* what the keys of gateways are read with; wiped at the end */
	int *listeners; /* kept for as long as the sandbox: each egress has copies. plan.count */
	struct egress *egress;
	bool is_host;                           /* the host's own: it has neither listeners nor an egress */
};

/* One that was opened for itself (ports.c). */
struct sandbox_port {
	struct sandbox_port *next;
	struct publish *publish;
	struct port_shown shown;
};

struct sandboxes {
	pthread_mutex_t lock;
	struct live *first;
	size_t count;
};

struct live {
	struct live *next;
	char *session_id, *session_made;
	unsigned users; /* commands, and callers that are busy with it. Under the table's lock */
	bool retired;                           /* out of the table: lowered with its last user. The same lock */
	int64_t idle_since_ms;                  /* the same lock */

	pthread_mutex_t lock;                   /* over the rest */
	struct sandbox *sandbox;                /* NULL before it is raised */
	bool follows_lost;                      /* one before it ended by itself, which no result has told yet */
	struct live_network *networks;          /* the one in force first; NULL: none could be made. Behind it may be
	                                           one that is left to jobs: is_host is the other way round there */
	struct publish *publish;                /* its ports; NULL: none */
	struct sandbox_port *ports;             /* and those that were opened later */
	struct sandbox_place *places;           /* of commands that run */
	int64_t raised_ms;
	struct sandbox_news seen;
};

/* The session's, or NULL; it stays until live_release(). */
struct live *live_hold(struct sandboxes *sandboxes, const char *session_id);
/* All of them, each to be released, and the array to be free()d; none when memory is short. */
struct live **live_hold_all(struct sandboxes *sandboxes, size_t *ret_count);
void live_release(struct sandboxes *sandboxes, struct live *live);

/* With live->lock held. */


/* The listeners and the egress of the request's network. */
int live_connect(struct live *live, const struct sandbox_request *request, struct cordon_error *err) must_check;
/* The same for one that has just been raised, which has its listeners. */
int live_connect_first(struct live *live, const struct sandbox_request *request, struct cordon_error *err) must_check;
/* The ports that are published of it. One that is in use on this machine is left out: session show tells. */
int live_publish(struct live *live, const struct sandbox_request *request, struct cordon_error *err) must_check;
/* Is the network in force the one that the request has? Then a command that asked for it changes nothing for the
 * others. */
bool live_has_network(const struct live *live, const struct sandbox_request *request);
/* The egress of commands in the host's network, or in the sandbox's own; or NULL. */
struct egress *live_egress(const struct live *live, bool is_host);
/* Networks that were replaced, and that no command is counted in any more; or all. */
void live_disconnect(struct live *live, bool all);
/* The elements of a list of its open ports. */
void live_write_ports(struct json *json, const struct live *live);
void live_close_ports(struct live *live);
