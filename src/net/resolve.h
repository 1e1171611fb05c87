/* From a name to the addresses that may be dialled: resolve once, judge every address, dial the address that was
 * judged. Whoever resolves the name again, or lets another program do it, may be led elsewhere.
 *
 * A name is allowed only if every address of it is. One that leads to the public Internet and to a private network at
 * once is how a name is turned against those who trust it (DNS rebinding): the first connection goes to the one, the
 * next, once the first is closed, to the other. Names that mean well have no such answer, and a network where they do
 * names its addresses as exempt. So the whole name is refused, whichever address would have been dialled. Where the
 * servers answer for one family and fail for the other, what they answered stands: nothing else will be dialled.
 *
 * A name is looked for in the hosts file, and if it is not there, asked of the name servers of resolv.conf, as it is
 * written: no search domains, no NSS. `localhost` and what ends in it is this machine (RFC 6761). All files are read
 * when the resolver is opened; later it needs its sockets and nothing else. Elsewhere than on Linux it is the system's
 * resolver that is asked, with what that needs (resolve-system.c); all else holds there, too.
 *
 *     open → start … poll the descriptor, step when it is readable → the lookup's function is called → unref */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "cordon-internal.h"
#include "net/resolution.h"
#include "policy/address.h"
#include "policy/host.h"

#define RESOLVE_LOOKUPS_MAX 1024        /* at a time */

struct resolver_options {
	const char *servers;                    /* "127.0.0.1:5353,[::1]:53"; NULL: those of resolv.conf */
	const char *resolv_conf, *hosts;        /* NULL: the system's */
	unsigned timeout_ms;                    /* for a name; 0: 10 s */
	const struct address_range *exemptions; /* borrowed while the resolver lives */
	size_t exemption_count;
};

struct resolver;
struct lookup;

int resolver_open(const struct resolver_options *options, struct resolver **ret_resolver, struct cordon_error *err)
	must_check;
/* Lookups that are not finished are cancelled. */
void resolver_unref(struct resolver *resolver);

/* Readable when resolver_step() has something to do. */
int resolver_fd(const struct resolver *resolver);
/* Does what can be done without waiting, and calls the functions of the lookups that are finished. */
void resolver_step(struct resolver *resolver);

/* Called once, from resolver_step(), never from resolver_start(); it may start and cancel lookups. The resolution is
 * borrowed, and the lookup is gone after it. */
typedef void (*resolved_fn)(void *arg, const struct resolution *resolution);
/* A name or an address; its port does not matter. The host is copied. */
int resolver_start(struct resolver *resolver, const struct host *host, resolved_fn fn, void *arg,
                   struct lookup **ret_lookup, struct cordon_error *err) must_check;
/* The function will not be called. */
void lookup_cancel(struct lookup *lookup);

/* A lookup of one name. An error is a local fault, such as want of memory; the result for the name is in the
 * resolution. */
int resolve_now(const struct resolver_options *options, const struct host *host, struct resolution *ret_resolution,
                struct cordon_error *err) must_check;
