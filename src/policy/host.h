/* Hosts as people, configuration and programs write them, in the one form in which they are compared (cover.h). A text
 * that could be read in two ways is not a host: what the library takes for a name must be one to every resolver, and
 * what it takes for an address must be the same address to all. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/address.h"

enum host_form { HOST_NAME, HOST_WILDCARD, HOST_ADDRESS };

#define HOST_NAME_SIZE 256      /* a name has at most 253 characters; "*." may precede it */
#define HOST_TEXT_SIZE (HOST_NAME_SIZE + 8)

struct host {
	enum host_form form;
	char name[HOST_NAME_SIZE];      /* lower case, no trailing dot; "*.example.com"; an address without brackets */
	struct address address;         /* of HOST_ADDRESS */
	uint16_t port;                  /* 0 where it was not part of the text */
};

/* A host alone: a name in ASCII, an IPv4 address as four decimal numbers, an IPv6 address in brackets. One trailing dot
 * is stripped. A name is labels of letters, digits, `-` (not at an end) and `_`, each at most 63, together at most 253.
 * What ends in a label that begins with a digit is an address or nothing. `text` may have any bytes in it. NULL, or
 * what is wrong with it, in a few words. */
const char *host_parse(const char *text, size_t length, struct host *ret_host) must_check;
/* HOST:PORT, the port from 1 to 65535. */
const char *host_parse_port(const char *text, size_t length, struct host *ret_host) must_check;
/* The same as an entry of a list: `*.` may precede a name. */
const char *host_parse_rule(const char *text, size_t length, struct host *ret_host) must_check;

/* The same, of one name alone: no star, and no address. */
const char *host_parse_name_port(const char *text, size_t length, struct host *ret_host) must_check;

/* Is it spelled like the name of a group of hosts (config/groups.h)? A host with its port never is, nor are none and
 * all. */
bool host_is_group(const char *text);

/* localhost, 127.0.0.1 or ::1: where a service of the host listens that was granted by its port. Other addresses of
 * 127.0.0.0/8 and names that end in .localhost are not. */
bool host_is_loopback(const struct host *host);

/* "example.com:443", "[::1]:80"; without a port where it is 0. This is what cover_host() compares. */
void host_text(const struct host *host, char ret_text[HOST_TEXT_SIZE]);
