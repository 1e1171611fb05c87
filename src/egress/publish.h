/* Ports of a sandbox that this machine's 127.0.0.1 answers at. The listeners are made here, outside, before the
 * sandbox is there; once something connects to one, a cordon-proxy is started for them, which enters the sandbox's
 * network, seals itself, and carries each connection to the port inside, at 127.0.0.1 or ::1. Nothing of it is visible
 * inside, and it reads nothing of what it carries. Each connection is a row of the ledger ("way": "published"). */
#pragma once
#include <stddef.h>

#include "approval/gate.h"
#include "base/cleanup.h"
#include "base/error.h"

#define PUBLISH_MAX 16                  /* ports of one sandbox */

struct config;
struct json;
struct publish;
struct sandbox;

struct publish_facts {
	const struct config *config;
	const struct strings *ports;            /* "HOST_PORT:PORT"; at least one. Copied. HOST_PORT 0: any */
	const struct strings *required;         /* those of them without which it fails; of the others, one that is
	                                           in use is left out */
	struct gate gate;                       /* its ledger gets the rows */
	const char *session_id;                 /* for the rows; borrowed */
	bool stays;                             /* see egress.h */
};

/* Takes the ports. `invalid_request` where one that is required is in use. */
int publish_begin(const struct publish_facts *facts, struct publish **ret_publish, struct cordon_error *err) must_check;
/* The sandbox is up. */
void publish_started(struct publish *publish, const struct sandbox *sandbox);
/* This machine's port of the first one. */
unsigned publish_host_port(const struct publish *publish);
/* Its network, to be watched where it does not stay. */
struct egress *publish_egress(const struct publish *publish);
/* Are these its ports? NULL has none. */
bool publish_is_for(const struct publish *publish, const struct strings *ports);
/* "published": [{"host_port", "port", "why"}]; why is "", or why it does not answer. */
void publish_write_json(struct json *json, const struct publish *publish);
/* Connections end. NULL is allowed. */
void publish_free(struct publish *publish);
