/* May a URL be fetched on an agent's behalf? The answer is the network's own judgement (net/), as JSON. */
#include <stdio.h>
#include <string.h>

#include "api/policy.h"
#include "base/json.h"
#include "audit/row.h"
#include "walk.h"
#include "net/resolve.h"
#include "net/url.h"

/* The result of a lookup, as a class of errors. */
static const enum cordon_class classes[] = {
	[RESOLVE_FOUND] = CORDON_E_CAPABILITY_DENIED,
	[RESOLVE_NOT_FOUND] = CORDON_E_NETWORK_UNREACHABLE,
	[RESOLVE_NAME_REFUSED] = CORDON_E_CAPABILITY_DENIED,
	[RESOLVE_TOO_MANY] = CORDON_E_LIMIT_EXCEEDED,
	[RESOLVE_FAILED] = CORDON_E_NETWORK_UNREACHABLE,
	[RESOLVE_TIMED_OUT] = CORDON_E_NETWORK_UNREACHABLE,
};
_Static_assert(ARRAY_SIZE(classes) == RESOLVE_STATUS_MAX, "every status has a class");

static void write_addresses(struct json *json, const struct resolution *resolution)
{
	json_key(json, "addresses");
	json_array_begin(json);
	for (size_t i = 0; i < resolution->count; i++) {
		const struct address_verdict *verdict = &resolution->addresses[i].verdict;
		char address[ADDRESS_TEXT_SIZE], why[ADDRESS_WHY_SIZE];
		address_text(&resolution->addresses[i].address, address);
		address_why(verdict, why);
		json_object_begin(json);
		json_key_string(json, "address", address);
		json_key_bool(json, "allowed", verdict->allowed);
		json_key_string(json, "why", why);
		json_object_end(json);
	}
	json_array_end(json);
}

/* `host` is NULL where there is none in the URL, and `why` then says so. */
static int write_answer(const char *url, const struct host *host, const struct resolution *resolution, const char *why,
                        char **ret_json, struct cordon_error *err)
{
	enum cordon_class class = host ? classes[resolution->status] : CORDON_E_INVALID_REQUEST;
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "url", url);
	json_key_bool(&json, "allowed", resolution->allowed);
	json_key_string(&json, "class", resolution->allowed ? NULL : cordon_class_name(class));
	json_key_string(&json, "why", why);
	json_key_string(&json, "host", host ? host->name : NULL);
	json_key(&json, "port");
	if (host)
		json_uint(&json, host->port);
	else
		json_nil(&json);
	write_addresses(&json, resolution);
	json_object_end(&json);
	char *text = json_take(&json);
	if (!text)
		return fail_oom(err);
	*ret_json = text;
	return 0;
}

/* The host and no more of it: what follows may hold a secret. */
static int write_row(struct cordon *cordon, const struct host *host, const struct resolution *resolution,
                     const char *why, struct cordon_error *err)
{
	char address[ADDRESS_TEXT_SIZE] = "";
	struct json json;
	if (resolution->count)
		address_text(&resolution->addresses[0].address, address);
	bool denied = host && classes[resolution->status] == CORDON_E_CAPABILITY_DENIED;
	audit_row_begin(&json, "network", NULL, NULL);
	json_key_string(&json, "decision", resolution->allowed ? "allowed" : denied ? "denied" : "failed");
	json_key_string(&json, "host", host ? host->name : "");
	json_key(&json, "port");
	if (host)
		json_uint(&json, host->port);
	else
		json_nil(&json);
	json_key_string(&json, "address", *address ? address : NULL);
	json_key_string(&json, "way", "url");
	json_key_string(&json, "why", why);
	return audit_row_end(&json, cordon->ledger, err);
}

/* A name of the configuration is not looked up, here as for commands. */
static bool take_configured(const struct config *config, const struct host *host, struct resolution *resolution)
{
	for (size_t i = 0; i < config->network.name_count && !address_name_refused(host->name); i++)
		if (host->form == HOST_NAME && !strcmp(config->network.names[i].name, host->name))
			resolution_add(resolution, &config->network.names[i].address);
	if (!resolution->count)
		return false;
	resolution_judge(resolution, RESOLVE_FOUND, config->network.exempt, config->network.exempt_count);
	return true;
}

static bool is_private_host(const struct config *config, const struct host *host)
{
	char text[HOST_TEXT_SIZE];
	host_text(host, text);
	return strings_find(&config->network.private_hosts, text) >= 0;
}

static int judge(struct cordon *cordon, const struct config *config, const char *url, char **ret_json,
                 bool *ret_allowed, struct cordon_error *err)
{
	const struct resolver_options options = { .exemptions = config->network.exempt,
	                                          .exemption_count = config->network.exempt_count };
	struct resolution resolution = { .allowed = false };
	struct host host;
	char why[RESOLVE_WHY_SIZE];
	const char *malformed = url_parse(url, strlen(url), &host);
	if (malformed) {
		snprintf(why, sizeof(why), "%s", malformed);
	} else {
		if (!take_configured(config, &host, &resolution) && resolve_now(&options, &host, &resolution, err) < 0)
			return -1;
		resolution.allowed |= resolution_is_at_site(&resolution) && is_private_host(config, &host);
		resolution_why(&host, &resolution, why);
	}
	if (write_row(cordon, malformed ? NULL : &host, &resolution, why, err) < 0)
		return -1;
	if (write_answer(url, malformed ? NULL : &host, &resolution, why, ret_json, err) < 0)
		return -1;
	*ret_allowed = resolution.allowed;
	return 0;
}

int cordon_url_check(struct cordon *cordon, const char *url, char **ret_json, bool *ret_allowed,
                     struct cordon_error *err)
{
	const struct config *config;
	if (call_check(err, cordon, url, ret_json, ret_allowed) < 0 || policy_take(cordon, NULL, &config, err) < 0)
		return -1;
	int result = judge(cordon, config, url, ret_json, ret_allowed, err);
	config_unref(config);
	return result;
}
