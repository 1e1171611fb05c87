/* A [[gateway]] of the configuration: an address inside that leads to an https service, and the header that is added on
 * the way. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/host.h"

#define GATEWAYS_MAX 16
#define GATEWAY_HEADER_MAX 64
#define GATEWAY_PATH_MAX 200
/* Listened on at 127.0.0.1 inside; the next ones follow. */
#define GATEWAY_PORT 3129
#define GATEWAY_PLACEHOLDER "cordon-gateway-adds-the-key"

struct credential;

struct gateway_upstream {
	struct host host;               /* a name or an address, with its port */
	char path[GATEWAY_PATH_MAX];    /* "", or "/v1" without a slash at its end */
};

struct gateway {
	const char *name;
	struct gateway_upstream upstream;
	const struct credential *credential;
	const char *header, *prefix;
	const char *base_url, *placeholder;     /* variables; the latter may be NULL */
	const char *ca_file;            /* or NULL */
};

/* "https://HOST[:PORT][/PATH]". NULL, or what is wrong with it. */
const char *gateway_parse_upstream(const char *url, struct gateway_upstream *ret_upstream) must_check;
/* The name of a header that may be added: letters, digits and -. */
bool gateway_is_header(const char *name);
