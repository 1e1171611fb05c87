/* Tokens: where others than the command can connect to the proxy's port (of this machine's loopback), a client must
 * show the token of a command that runs, which also tells whose a connection is. It is the password of the user
 * EGRESS_USER, in HTTP (Basic) and in SOCKS. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "net/http.h"
#include "net/proxy-message.h"
#include "net/socks.h"

#define TOKENS_MAX 256                  /* commands at a time */
#define TOKEN_BASIC_SIZE 97             /* EGRESS_USER, a colon and a token, in base64 */

struct token {
	uint32_t command;
	char password[PROXY_TOKEN_LENGTH];
	char basic[TOKEN_BASIC_SIZE];
};

struct tokens {
	struct token items[TOKENS_MAX];
	size_t count;
};

/* -1: it is none, the command is 0 or has one already, or there are too many. */
int tokens_add(struct tokens *tokens, uint32_t command, const void *token, size_t length) must_check;
/* The command has ended. */
void tokens_remove(struct tokens *tokens, uint32_t command);

/* Whose token is it? 0: nobody's. How long that takes tells nothing of the tokens there are but their number. */
uint32_t tokens_find_basic(const struct tokens *tokens, struct http_span authorization);
uint32_t tokens_find_login(const struct tokens *tokens, const struct socks_login *login);
