/* Any bytes as a host, a host with its port, and an entry of a list: what is taken for one has one form, which is taken
 * for the same, and cover_host() agrees that both are the same host. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "policy/cover.h"
#include "policy/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct host *host)
{
	struct host again;
	char text[HOST_TEXT_SIZE], same[HOST_TEXT_SIZE];
	host_text(host, text);
	size_t length = strlen(text);
	must(length && length < sizeof(text) - 1);
	must(strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.:[]*") == length);
	must(!(host->port ? host_parse_rule : host_parse)(text, length, &again));
	host_text(&again, same);
	must(!strcmp(text, same) && again.form == host->form && again.port == host->port);
	must(!memcmp(&again.address, &host->address, sizeof(again.address)));
	/* No spelling of an address is left that a resolver could understand. */
	const char *last = strrchr(host->name, '.');
	last = last ? last + 1 : host->name;
	must(host->form == HOST_ADDRESS || *last < '0' || *last > '9');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct host host, rule;
	const char *bytes = (const char *)data;
	char text[HOST_TEXT_SIZE];
	if (!host_parse(bytes, size, &host))
		check(&host);
	bool is_port = !host_parse_port(bytes, size, &host), is_rule = !host_parse_rule(bytes, size, &rule);
	must(is_rule || !is_port);
	if (is_rule) {
		check(&rule);
		must(is_port || rule.form == HOST_WILDCARD);
		host_text(&rule, text);
		struct strings roots = { 0 };
		const char *written = arena_strndup(&arena, bytes, size);
		must(written && !strings_add(&arena, &roots, text));
		must(cover_host(&roots, text, false));
		must(cover_host(&roots, written, false) || rule.address.length == 16);
	}
	arena_free(&arena);
	return 0;
}
