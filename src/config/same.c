/* Two configurations, as a network that stays sees them: how names lead to addresses, what is refused of those, how
 * much may be moved, who is asked, what is looked for, and the gateways. */
#include <string.h>

#include "config/config.h"
#include "policy/gateway.h"
#include "secrets/credential.h"

static bool is_same_text(const char *one, const char *other)
{
	return one == other || (one && other && !strcmp(one, other));
}

static bool is_same_list(const struct strings *one, const struct strings *other)
{
	bool same = one->count == other->count;
	for (size_t i = 0; same && i < one->count; i++)
		same = !strcmp(one->items[i], other->items[i]);
	return same;
}

static bool is_same_address(const struct address *one, const struct address *other)
{
	return one->length == other->length && !memcmp(one->bytes, other->bytes, one->length);
}

static bool is_same_site(const struct config *one, const struct config *other)
{
	bool same = one->network.exempt_count == other->network.exempt_count &&
	            one->network.name_count == other->network.name_count &&
	            is_same_list(&one->network.private_hosts, &other->network.private_hosts);
	for (size_t i = 0; same && i < one->network.exempt_count; i++)
		same = one->network.exempt[i].bits == other->network.exempt[i].bits &&
		       is_same_address(&one->network.exempt[i].first, &other->network.exempt[i].first);
	for (size_t i = 0; same && i < one->network.name_count; i++)
		same = !strcmp(one->network.names[i].name, other->network.names[i].name) &&
		       is_same_address(&one->network.names[i].address, &other->network.names[i].address);
	return same;
}

static bool is_same_bound(const struct config *one, const struct config *other)
{
	return one->network.connections == other->network.connections && one->network.bytes == other->network.bytes &&
	       one->network.total_connections == other->network.total_connections &&
	       one->network.connect_ms == other->network.connect_ms && one->network.idle_ms == other->network.idle_ms &&
	       one->network.header_bytes == other->network.header_bytes;
}

static bool is_same_question(const struct config *one, const struct config *other)
{
	return one->approval.timeout_ms == other->approval.timeout_ms && one->approval.queue == other->approval.queue &&
	       one->approval.own_approver == other->approval.own_approver &&
	       one->approval.denials_to_pause == other->approval.denials_to_pause;
}

static bool is_same_search(const struct config *one, const struct config *other)
{
	return is_same_text(one->secrets.output, other->secrets.output) &&
	       is_same_text(one->secrets.arguments, other->secrets.arguments) &&
	       is_same_list(&one->secrets.block, &other->secrets.block) &&
	       is_same_list(&one->secrets.redact, &other->secrets.redact) &&
	       is_same_list(&one->secrets.report, &other->secrets.report);
}

static bool is_same_credential(const struct credential *one, const struct credential *other)
{
	return is_same_text(one->name, other->name) && is_same_text(one->file, other->file) &&
	       is_same_text(one->from_variable, other->from_variable) && is_same_list(&one->command, &other->command) &&
	       one->timeout_ms == other->timeout_ms;
}

static bool is_same_gateway(const struct gateway *one, const struct gateway *other)
{
	char hosts[2][HOST_TEXT_SIZE];
	host_text(&one->upstream.host, hosts[0]);
	host_text(&other->upstream.host, hosts[1]);
	return !strcmp(one->name, other->name) && !strcmp(hosts[0], hosts[1]) &&
	       !strcmp(one->upstream.path, other->upstream.path) && is_same_text(one->header, other->header) &&
	       is_same_text(one->prefix, other->prefix) && is_same_text(one->ca_file, other->ca_file) &&
	       is_same_text(one->base_url, other->base_url) && is_same_text(one->placeholder, other->placeholder) &&
	       !one->credential == !other->credential &&
	       (!one->credential || is_same_credential(one->credential, other->credential));
}

bool config_serves_same(const struct config *one, const struct config *other)
{
	bool same = one == other ||
	            (is_same_site(one, other) && is_same_bound(one, other) && is_same_question(one, other) &&
	             is_same_search(one, other) && one->gateway_count == other->gateway_count);
	for (size_t i = 0; same && one != other && i < one->gateway_count; i++)
		same = is_same_gateway(&one->gateways[i], &other->gateways[i]);
	return same;
}
