/* What a command may reach: the part of the verdict that step 3 decides. Everything is borrowed from the request's
 * arena. */
#pragma once
#include "base/place.h"
#include "policy/capability.h"

struct gate_question;

struct grants {
	struct capability_set set;              /* paths as they were named */
	struct places reads, writes, devices, sockets, programs;    /* the same paths, resolved */
	struct strings kept;                    /* directories of the caller's PATH in what may be written: they stay
	                                           read-only */
	struct strings by_name;                 /* of these, what a person granted by this very path: no mask covers
	                                           it */
	struct capability_set excess;           /* what needed a human's approval, */
	const char *rule;                       /* and the rule that wants one; or NULL */
	struct strings env_pass;                /* variables that a manifest passes on */
	struct strings credentials;             /* names of those that its program gets */
	/* The program that rules, a manifest or a human judged. `path` is NULL where nothing had to be judged, or no
	 * program was found. */
	struct place program;
	const struct gate_question *host_question;      /* to ask about other hosts while the command runs; or NULL:
	                                                   never */
};
