/* Rules and names: see rules.h. */
#include "proxy/rules.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "net/proxy-message.h"
#include "policy/cover.h"
#include "policy/egress.h"

#define REMEMBERED_MAX 1024

static int grow(void **items, size_t count, size_t size)
{
	/* At powers of two. */
	if (count && (count & (count - 1)))
		return 0;
	void *grown = realloc(*items, (count ? 2 * count : 1) * size);
	if (!grown)
		return -1;
	*items = grown;
	return 0;
}

/* ---- what the supervisor says ----------------------------------------------------------------------------------- */

static int add_exact(struct rules *rules, const char *name, const struct address *v4, const struct address *v6)
{
	for (size_t i = 0; i < rules->exact_count; i++)
		if (!strcmp(rules->exact[i].name, name))
			return 0;
	struct inside_name inside = { .name = arena_strdup(&rules->arena, name), .v4 = *v4, .v6 = *v6 };
	if (!inside.name || grow((void **)&rules->exact, rules->exact_count, sizeof(inside)) < 0)
		return -1;
	rules->exact[rules->exact_count++] = inside;
	return 0;
}

static int add_text(struct rules *rules, struct strings *list, const char *text)
{
	const char *copy = arena_strdup(&rules->arena, text);
	return copy ? strings_add(&rules->arena, list, copy) : -1;
}

int rules_add(struct rules *rules, const char *text, const struct address *v4, const struct address *v6)
{
	struct host host;
	char normal[HOST_TEXT_SIZE];
	if (rules->allowed.count >= PROXY_RULES_MAX || host_parse_rule(text, strlen(text), &host))
		return -1;
	host_text(&host, normal);
	if (host.form == HOST_NAME && add_exact(rules, host.name, v4, v6) < 0)
		return -1;
	if (host.form == HOST_WILDCARD && add_text(rules, &rules->wildcards, host.name + 1) < 0)
		return -1;
	if (host_is_loopback(&host))
		rules->services[host.port / 8] |= (uint8_t)(1u << host.port % 8);
	return add_text(rules, &rules->allowed, normal);
}

int rules_add_exemption(struct rules *rules, const char *text)
{
	if (rules->exemption_count >= PROXY_RULES_MAX ||
	    grow((void **)&rules->exemptions, rules->exemption_count, sizeof(*rules->exemptions)) < 0 ||
	    address_exemption_parse(text, &rules->exemptions[rules->exemption_count], NULL) < 0)
		return -1;
	rules->exemption_count++;
	return 0;
}

int rules_add_private(struct rules *rules, const char *host_port)
{
	struct host host;
	char normal[HOST_TEXT_SIZE];
	if (rules->private_hosts.count >= PROXY_RULES_MAX || host_parse_name_port(host_port, strlen(host_port), &host))
		return -1;
	host_text(&host, normal);
	return add_text(rules, &rules->private_hosts, normal);
}

int rules_add_name(struct rules *rules, const char *name, const struct address *address)
{
	struct host host;
	if (rules->name_count >= PROXY_RULES_MAX || (address->length != 4 && address->length != 16) ||
	    host_parse(name, strlen(name), &host) || host.form != HOST_NAME ||
	    grow((void **)&rules->names, rules->name_count, sizeof(*rules->names)) < 0)
		return -1;
	struct static_name row = { .name = arena_strdup(&rules->arena, host.name), .address = *address };
	if (!row.name)
		return -1;
	rules->names[rules->name_count++] = row;
	return 0;
}

void rules_withdraw(struct rules *rules)
{
	rules->allowed = rules->wildcards = (struct strings){ 0 };
	memset(rules->services, 0, sizeof(rules->services));
}

void rules_remember(struct rules *rules, const char *host_port, bool allowed)
{
	struct strings *list = allowed ? &rules->approved : &rules->denied;
	const char *copy = list->count < REMEMBERED_MAX ? arena_strdup(&rules->answers, host_port) : NULL;
	if (copy)
		(void)!strings_add(&rules->answers, list, copy);
}

void rules_forget(struct rules *rules)
{
	rules->approved = rules->denied = (struct strings){ 0 };
	arena_free(&rules->answers);
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

static bool is_covered(const struct strings *list, const struct host *host)
{
	char text[HOST_TEXT_SIZE];
	host_text(host, text);
	return cover_host(list, text, false);
}

bool rules_allow(const struct rules *rules, const struct host *host)
{
	/* Whichever way the host itself is written in the rule and by the client. */
	return is_covered(&rules->allowed, host) || is_covered(&rules->approved, host) ||
	       (host_is_loopback(host) && (rules->services[host->port / 8] & (1u << host->port % 8)));
}

bool rules_deny(const struct rules *rules, const struct host *host)
{
	return is_covered(&rules->denied, host);
}

bool rules_private(const struct rules *rules, const struct host *host)
{
	return is_covered(&rules->private_hosts, host);
}

bool rules_static(const struct rules *rules, const struct host *host, struct resolution *ret_resolution)
{
	struct resolution resolution = { 0 };
	for (size_t i = 0; i < rules->name_count; i++)
		if (!strcmp(rules->names[i].name, host->name))
			resolution_add(&resolution, &rules->names[i].address);
	/* A name that is refused stays refused, whatever address it has. */
	if (!resolution.count || address_name_refused(host->name))
		return false;
	resolution_judge(&resolution, RESOLVE_FOUND, rules->exemptions, rules->exemption_count);
	*ret_resolution = resolution;
	return true;
}

/* ---- names inside ----------------------------------------------------------------------------------------------- */

static bool is_wild(const struct rules *rules, const char *name)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < rules->wildcards.count; i++) {
		const char *end = rules->wildcards.items[i];
		size_t end_length = strlen(end);
		if (length > end_length && !strcmp(name + length - end_length, end))
			return true;
	}
	return false;
}

/* The n-th address behind a first one, which has room for that many. */
static struct address address_at(int family, const char *first, size_t n)
{
	struct address address = { .length = family == AF_INET ? 4 : 16 };
	if (inet_pton(family, first, address.bytes) != 1)
		return (struct address){ 0 };
	address.bytes[address.length - 2] = (uint8_t)(n >> 8);
	address.bytes[address.length - 1] = (uint8_t)n;
	return address;
}

static const struct inside_name *add_wild(struct rules *rules, const char *name)
{
	size_t count = rules->wild_count;
	_Static_assert(RULES_WILD_NAMES_MAX < 1 << 16, "there is an address for each");
	if (count >= RULES_WILD_NAMES_MAX || grow((void **)&rules->wild, count, sizeof(*rules->wild)) < 0)
		return NULL;
	struct inside_name inside = { .name = arena_strdup(&rules->arena, name),
	                              .v4 = address_at(AF_INET, EGRESS_WILD_V4, count + 1),
	                              .v6 = address_at(AF_INET6, EGRESS_WILD_V6, count + 1) };
	if (!inside.name)
		return NULL;
	rules->wild[rules->wild_count++] = inside;
	return &rules->wild[count];
}

static const struct inside_name *find(const struct inside_name *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i].name, name))
			return &names[i];
	return NULL;
}

const struct inside_name *rules_inside(struct rules *rules, const char *name, bool *ret_covered)
{
	const struct inside_name *found = find(rules->exact, rules->exact_count, name);
	*ret_covered = found || is_wild(rules, name);
	if (!found && *ret_covered)
		found = find(rules->wild, rules->wild_count, name);
	return found || !*ret_covered ? found : add_wild(rules, name);
}

static bool is_at(const struct inside_name *inside, const struct address *address)
{
	const struct address *own = address->length == 4 ? &inside->v4 : &inside->v6;
	return own->length == address->length && !memcmp(own->bytes, address->bytes, address->length);
}

const char *rules_name_at(const struct rules *rules, const struct address *address)
{
	for (size_t i = 0; i < rules->exact_count; i++)
		if (is_at(&rules->exact[i], address))
			return rules->exact[i].name;
	for (size_t i = 0; i < rules->wild_count; i++)
		if (is_at(&rules->wild[i], address))
			return rules->wild[i].name;
	return NULL;
}
