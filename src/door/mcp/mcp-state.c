/* The state that a modern client keeps between the request that ended with a question and the request that repeats it.
 * The client may change it, so it is authenticated, bound to one question, to the tool and its arguments, and expires.
 * It is used once: the question that it names is not open after that. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "door/mcp/mcp.h"

struct state {
	uint64_t serial, expires_ms;
	unsigned char digest[32];
	unsigned char mac[crypto_auth_BYTES];
};

char *mcp_state_make(const struct mcp_call *call)
{
	struct state state = { .serial = call->question, .expires_ms = call->expires_ms };
	size_t size = sodium_base64_encoded_len(sizeof(state), sodium_base64_VARIANT_URLSAFE);
	char *text = malloc(size);
	memcpy(state.digest, call->digest, sizeof(state.digest));
	crypto_auth(state.mac, (const unsigned char *)&state, offsetof(struct state, mac), call->server->state_key);
	return text ? sodium_bin2base64(text, size, (const unsigned char *)&state, sizeof(state),
	                                sodium_base64_VARIANT_URLSAFE) :
	              NULL;
}

uint64_t mcp_state_read(const struct mcp_server *server, const char *text, const unsigned char digest[32])
{
	struct state state;
	size_t length;
	if (sodium_base642bin((unsigned char *)&state, sizeof(state), text, strlen(text), NULL, &length, NULL,
	                      sodium_base64_VARIANT_URLSAFE) < 0 || length != sizeof(state))
		return 0;
	if (crypto_auth_verify(state.mac, (const unsigned char *)&state, offsetof(struct state, mac),
	                       server->state_key) != 0)
		return 0;
	bool fits = !sodium_memcmp(state.digest, digest, sizeof(state.digest)) && mcp_now_ms() < state.expires_ms;
	return fits ? state.serial : 0;
}
