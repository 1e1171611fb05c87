/* cordon-gateway: takes requests inside a sandbox, adds a key, and sends them to one https service. A process of its
 * own for each sandbox that uses a gateway, so that keys are nowhere else; it is started and told like cordon-proxy
 * (net/proxy-message.h).
 *
 *     main     settings, gateways with their keys, listeners; then a child for each connection. Reads no byte of a
 *              command's
 *     serve    a child, sealed: one request, judged and written anew, and its response
 *     response what comes back, read and written anew without the key
 *     tls      the connection to the service, in memory: the sealed child sends and receives the bytes itself
 *
 * A response goes back as it comes, but the key in it is masked. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/proxy-message.h"
#include "policy/gateway.h"

struct resolver_options;

#define GATEWAY_KEY_MAX 16384
#define GATEWAY_CA_MAX (256 * 1024)

struct gateway_route {
	uint16_t port;                  /* inside */
	struct host host;
	char path[GATEWAY_PATH_MAX], header[GATEWAY_HEADER_MAX + 1], prefix[GATEWAY_HEADER_MAX + 1];
	char *key;                      /* NULL: it could not be had; then: */
	size_t key_length;
	char why[RESOLVE_WHY_SIZE];
	char *ca;                       /* certificates as PEM; or NULL */
	size_t ca_length;
	struct ssl_ctx_st *tls;
};

struct gateway_settings {
	uint64_t connections, total_connections, connect_ms, idle_ms, header_bytes, total_bytes;
	struct address_range exemptions[64];
	size_t exemption_count;
	struct host private_hosts[64];
	size_t private_count;
};

/* Of all children. */
struct gateway_shared {
	_Atomic uint64_t moved;
};

struct gateway_child {
	const struct gateway_settings *settings;
	const struct gateway_route *route;
	struct gateway_shared *shared;
	int client_fd, end_fd;          /* end_fd: readable when all is to end */
	bool is_beyond;                 /* of the connections that the command may make: it is only told so */
};

/* In a child: never returns. */
__attribute__((noreturn)) void gateway_serve(const struct gateway_child *child);

/* ---- tls.c ------------------------------------------------------------------------------------------------------ */

struct tls;
/* Before the seal. NULL, or what is wrong. */
const char *tls_prepare(struct gateway_route *route);
/* NULL when memory is short. */
struct tls *tls_new(const struct gateway_route *route);
/* Bytes from the service, and those to be sent to it: how many were given, at most `size`. */
void tls_put_received(struct tls *tls, const void *bytes, size_t length);
size_t tls_take_to_send(struct tls *tls, void *bytes, size_t size);
/* 1: done; 0: more bytes are needed; -1: *ret_why says what is wrong. */
int tls_handshake(struct tls *tls, const char **ret_why);
/* How many of the service's bytes, 0: more are needed, -1: the service has ended it, -2: it is broken. */
long tls_read(struct tls *tls, void *bytes, size_t size);
/* All of it, to be taken by tls_take_to_send(). -1: it is broken. */
int tls_write(struct tls *tls, const void *bytes, size_t length);
