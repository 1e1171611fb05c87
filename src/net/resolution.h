/* What a name turned out to be: its addresses, each judged. Data only; resolve.h fills it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "policy/address.h"
#include "policy/host.h"

#define RESOLVE_ADDRESSES_MAX 64        /* a name with more is refused: not every address could be judged */

enum resolve_status {
	RESOLVE_FOUND,
	RESOLVE_NOT_FOUND,      /* there is no such name, or it has no address */
	RESOLVE_NAME_REFUSED,   /* it was not even looked up */
	RESOLVE_TOO_MANY,       /* addresses */
	RESOLVE_FAILED,         /* no server answered properly */
	RESOLVE_TIMED_OUT,
	RESOLVE_STATUS_MAX
};

struct resolution {
	enum resolve_status status;
	bool allowed;                           /* found, and every address is */
	bool more;                              /* than fit below */
	size_t count;                           /* of a name that was found at least 1 */
	struct {
		struct address address;
		struct address_verdict verdict;
	} addresses[RESOLVE_ADDRESSES_MAX];     /* IPv6 after IPv4, each in the order of the answer */
};

/* Adds an address, unless it is there already. */
void resolution_add(struct resolution *resolution, const struct address *address);
/* All is added: judges every address. `status` is what it comes to where there is none. */
void resolution_judge(struct resolution *resolution, enum resolve_status status, const struct address_range *exemptions,
                      size_t exemption_count);

/* It is not allowed, but would be if its name may lead to networks of this site. */
bool resolution_is_at_site(const struct resolution *resolution);

/* The result in a few words, for display: why it is not allowed. "" if it is. */
#define RESOLVE_WHY_SIZE (ADDRESS_WHY_SIZE + ADDRESS_TEXT_SIZE + 8)
void resolution_why(const struct host *host, const struct resolution *resolution, char ret_text[RESOLVE_WHY_SIZE]);
