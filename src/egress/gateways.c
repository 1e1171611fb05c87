/* Tells the gateway where each of its ports leads, and the key that it adds. A key is read here, for the moment that
 * it takes to send. */
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "egress/egress.h"
#include "policy/gateway.h"
#include "secrets/credential.h"

#define CA_MAX (256 * 1024)

static void begin(struct proxy_message *message, uint16_t port, const struct gateway *gateway,
                  enum proxy_gateway_field field)
{
	*message = (struct proxy_message){ .kind = PROXY_GATEWAY };
	message->secret.port = port;
	message->secret.field = (uint8_t)field;
	host_text(&gateway->upstream.host, message->host);
}

/* In pieces, where it is long. */
static int send_field(const struct egress *egress, uint16_t port, const struct gateway *gateway,
                      enum proxy_gateway_field field, const char *bytes, size_t length)
{
	struct proxy_message message;
	int result;
	size_t at = 0;
	begin(&message, port, gateway, field);
	do {
		size_t left = length - at,
		       piece = left < sizeof(message.secret.bytes) ? left : sizeof(message.secret.bytes);
		memcpy(message.secret.bytes, bytes + at, piece);
		message.secret.length = (uint16_t)piece;
		result = egress_send(egress, &message, -1);
		at += piece;
	} while (result == 0 && at < length);
	sodium_memzero(&message, sizeof(message));
	return result;
}

static int send_why(const struct egress *egress, uint16_t port, const struct gateway *gateway, const char *why)
{
	struct proxy_message message;
	begin(&message, port, gateway, PROXY_GATEWAY_WHY);
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, why);
	return egress_send(egress, &message, -1);
}

static int send_certificates(const struct egress *egress, uint16_t port, const struct gateway *gateway)
{
	auto_close int fd = open(gateway->ca_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	auto_free char *bytes = malloc(CA_MAX + 1);
	size_t length = 0;
	for (ssize_t got;
	     bytes && fd >= 0 && length <= CA_MAX && (got = read(fd, bytes + length, CA_MAX + 1 - length)) > 0;)
		length += (size_t)got;
	if (!length || length > CA_MAX)
		return send_why(egress, port, gateway, "the file of certificates cannot be read, or is too large");
	return send_field(egress, port, gateway, PROXY_GATEWAY_CA, bytes, length);
}

/* No request is sent without the key. */
static int send_key(const struct egress *egress, uint16_t port, const struct gateway *gateway)
{
	struct credential_value value;
	struct cordon_error err;
	char *const *environment = egress->facts.environment ? egress->facts.environment : environ;
	if (credential_load(gateway->credential, environment, NULL, &value, &err) < 0)
		return send_why(egress, port, gateway, err.reason);
	/* A line's end would begin another header. */
	int result = memchr(value.bytes, '\n', value.length) || memchr(value.bytes, '\r', value.length)
	             ? send_why(egress, port, gateway, "the key has several lines")
	             : send_field(egress, port, gateway, PROXY_GATEWAY_KEY, value.bytes, value.length);
	credential_wipe(&value);
	return result;
}

/* A command may read any variable. */
static bool is_needed(const struct config *config, const char *variable)
{
	for (size_t i = 0; i < config->gateway_count; i++) {
		const struct credential *credential = config->gateways[i].credential;
		size_t length = credential->from_variable ? strlen(credential->from_variable) : 0;
		if (credential->command.count || (length && !strncmp(variable, credential->from_variable, length) &&
		                                  variable[length] == '='))
			return true;
	}
	return false;
}

int egress_keep_environment(struct arena *arena, const struct config *config, char *const *environment,
                            char ***ret_environment)
{
	size_t count = 0, kept = 0;
	while (environment[count])
		count++;
	char **copy = arena_alloc(arena, (count + 1) * sizeof(*copy));
	if (!copy)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (is_needed(config, environment[i]) && !(copy[kept++] = arena_strdup(arena, environment[i])))
			return -1;
	copy[kept] = NULL;
	*ret_environment = copy;
	return 0;
}

void egress_forget_environment(char **environment)
{
	for (char **at = environment; at && *at; at++)
		sodium_memzero(*at, strlen(*at));
}

static int send_gateway(const struct egress *egress, uint16_t port, const struct gateway *gateway)
{
	const struct {
		enum proxy_gateway_field field;
		const char *text;
	} texts[] = {
		{ PROXY_GATEWAY_PATH, gateway->upstream.path },
		{ PROXY_GATEWAY_HEADER, gateway->header },
		{ PROXY_GATEWAY_PREFIX, gateway->prefix },
	};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (send_field(egress, port, gateway, texts[i].field, texts[i].text, strlen(texts[i].text)) < 0)
			return -1;
	return (gateway->ca_file && send_certificates(egress, port, gateway) < 0) ||
	       send_key(egress, port, gateway) < 0 ? -1 : 0;
}

int egress_send_gateways(const struct egress *egress)
{
	const struct config *config = egress->facts.config;
	for (size_t i = 0; i < egress->facts.plan->count; i++) {
		uint16_t port = egress->facts.plan->listeners[i].port;
		size_t index = (size_t)(port - GATEWAY_PORT);
		if (index < config->gateway_count && send_gateway(egress, port, &config->gateways[index]) < 0)
			return -1;
	}
	return 0;
}
