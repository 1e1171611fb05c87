/* See tokens.h. */
#include "proxy/tokens.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>

#define USER_LENGTH (sizeof(EGRESS_USER) - 1)
_Static_assert(TOKEN_BASIC_SIZE == sodium_base64_ENCODED_LEN(USER_LENGTH + 1 + PROXY_TOKEN_LENGTH,
                                                             sodium_base64_VARIANT_ORIGINAL), "as long as it becomes");

int tokens_add(struct tokens *tokens, uint32_t command, const void *token, size_t length)
{
	unsigned char pair[USER_LENGTH + 1 + PROXY_TOKEN_LENGTH];
	if (!command || length != PROXY_TOKEN_LENGTH || tokens->count == TOKENS_MAX)
		return -1;
	for (size_t i = 0; i < tokens->count; i++)
		if (tokens->items[i].command == command)
			return -1;
	struct token *added = &tokens->items[tokens->count++];
	added->command = command;
	memcpy(added->password, token, length);
	memcpy(pair, EGRESS_USER ":", USER_LENGTH + 1);
	memcpy(pair + USER_LENGTH + 1, token, length);
	sodium_bin2base64(added->basic, sizeof(added->basic), pair, sizeof(pair), sodium_base64_VARIANT_ORIGINAL);
	sodium_memzero(pair, sizeof(pair));
	return 0;
}

void tokens_remove(struct tokens *tokens, uint32_t command)
{
	for (size_t i = 0; i < tokens->count; i++) {
		if (tokens->items[i].command != command)
			continue;
		tokens->items[i] = tokens->items[--tokens->count];
		sodium_memzero(&tokens->items[tokens->count], sizeof(tokens->items[0]));
		return;
	}
}

/* The scheme in any case, then spaces, then what has only one spelling. */
uint32_t tokens_find_basic(const struct tokens *tokens, struct http_span authorization)
{
	static const char scheme[] = "Basic ";
	const size_t scheme_length = sizeof(scheme) - 1;
	const char *at = authorization.at, *end = at + authorization.length;
	uint32_t found = 0;
	if (authorization.length < scheme_length || strncasecmp(at, scheme, scheme_length))
		return 0;
	for (at += scheme_length; at < end && *at == ' ';)
		at++;
	if (end - at != TOKEN_BASIC_SIZE - 1)
		return 0;
	for (size_t i = 0; i < tokens->count; i++)
		if (sodium_memcmp(tokens->items[i].basic, at, TOKEN_BASIC_SIZE - 1) == 0)
			found = tokens->items[i].command;
	return found;
}

uint32_t tokens_find_login(const struct tokens *tokens, const struct socks_login *login)
{
	uint32_t found = 0;
	if (login->user_length != USER_LENGTH || memcmp(login->user, EGRESS_USER, USER_LENGTH) ||
	    login->password_length != PROXY_TOKEN_LENGTH)
		return 0;
	for (size_t i = 0; i < tokens->count; i++)
		if (sodium_memcmp(tokens->items[i].password, login->password, PROXY_TOKEN_LENGTH) == 0)
			found = tokens->items[i].command;
	return found;
}
