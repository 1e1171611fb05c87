/* What may be reached, as the supervisor said it, and what each name's address inside is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "net/resolution.h"
#include "policy/address.h"
#include "policy/host.h"

#define RULES_WILD_NAMES_MAX 4096       /* names that a wildcard covers, and that were asked for */

/* A name inside: its addresses there belong to it. */
struct inside_name {
	char *name;
	struct address v4, v6;  /* of length 0: none */
};

struct static_name {
	char *name;
	struct address address;
};

struct rules {
	struct arena arena;
	struct strings allowed;                 /* "host:port" */
	struct arena answers;                   /* of the next two: what a human said, until rules_forget() */
	struct strings approved, denied;
	struct strings private_hosts;           /* "host:port" that may be at an address of this site */
	struct strings wildcards;               /* ".example.com", of the rules */
	uint8_t services[(UINT16_MAX + 1) / 8]; /* ports of the host's loopback, of the rules */
	struct inside_name *exact, *wild;
	size_t exact_count, wild_count;
	struct static_name *names;
	size_t name_count;
	struct address_range *exemptions;
	size_t exemption_count;
};

/* Each: 0, or -1 where the text is none, there are too many or memory is short. */
int rules_add(struct rules *rules, const char *text, const struct address *v4, const struct address *v6) must_check;
int rules_add_exemption(struct rules *rules, const char *text) must_check;
int rules_add_private(struct rules *rules, const char *host_port) must_check;
int rules_add_name(struct rules *rules, const char *name, const struct address *address) must_check;
/* All rules, but for the addresses that their names have inside. */
void rules_withdraw(struct rules *rules);
/* What a human said. What no longer fits is asked again. */
void rules_remember(struct rules *rules, const char *host_port, bool allowed);
/* It was said for one command, which has ended. */
void rules_forget(struct rules *rules);

bool rules_allow(const struct rules *rules, const struct host *host);
bool rules_deny(const struct rules *rules, const struct host *host);
/* May it lead to an address of this site? Of one that is allowed. */
bool rules_private(const struct rules *rules, const struct host *host);

/* The addresses that the configuration gives this name, judged; false where it has none. */
bool rules_static(const struct rules *rules, const struct host *host, struct resolution *ret_resolution);

/* The addresses inside of a name that some rule covers, on whichever port; NULL where none does, or where there are
 * more such names than are kept. A name keeps its addresses. */
const struct inside_name *rules_inside(struct rules *rules, const char *name, bool *ret_covered);
/* The name that an address inside belongs to, or NULL. */
const char *rules_name_at(const struct rules *rules, const struct address *address);
