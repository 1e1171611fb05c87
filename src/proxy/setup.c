/* The beginning: see setup.h. */
#include "proxy/setup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/proxy-socket.h"
#include "proxy/seal.h"

#define CONNECTIONS_MAX 65536
#define HEADER_MIN 1024
#define HEADER_MAX (1 << 20)
#define TIME_MAX_MS (UINT64_C(365) * 86400 * 1000)

static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* One message and the descriptor that came with it, or -1. False at the end of the stream, or where it is none. */
static bool receive(struct proxy_message *ret_message, int *ret_fd)
{
	return proxy_socket_await(PROXY_FD, ret_message, ret_fd) == 0 &&
	       memchr(ret_message->host, '\0', sizeof(ret_message->host)) &&
	       memchr(ret_message->text, '\0', sizeof(ret_message->text));
}

static int take_settings(struct proxy *proxy, const struct proxy_message *message)
{
	proxy->settings = (struct settings){
		.connections = between(message->settings.connections, 1, CONNECTIONS_MAX),
		.total_connections = message->settings.total_connections,
		.connect_ms = between(message->settings.connect_ms, 1, TIME_MAX_MS),
		.idle_ms = between(message->settings.idle_ms, 0, TIME_MAX_MS),
		.header_bytes = between(message->settings.header_bytes, HEADER_MIN, HEADER_MAX),
		.total_bytes = message->settings.total_bytes,
		.asks = message->settings.asks == 1,
		.offline = message->settings.offline == 1,
		.asks_token = message->settings.asks_token == 1,
	};
	return 0;
}

static int take_rule(struct proxy *proxy, const struct proxy_message *message)
{
	return rules_add(&proxy->rules, message->host, &message->rule.v4, &message->rule.v6);
}

static int take_exemption(struct proxy *proxy, const struct proxy_message *message)
{
	return rules_add_exemption(&proxy->rules, message->host);
}

static int take_private(struct proxy *proxy, const struct proxy_message *message)
{
	return rules_add_private(&proxy->rules, message->host);
}

static int take_name(struct proxy *proxy, const struct proxy_message *message)
{
	return rules_add_name(&proxy->rules, message->host, &message->name.address);
}

/* The kinds are known to this program; what is done about each is said here. */
static int take_scan(struct proxy *proxy, const struct proxy_message *message)
{
	struct secret_terms *terms = &proxy->terms;
	if (terms->set || message->scan.own >= SECRET_ACTION_MAX)
		return -1;
	for (size_t i = 0; i < SECRET_ROWS; i++)
		if (message->scan.rows[i] >= SECRET_ACTION_MAX)
			return -1;
	memcpy(terms->policy.rows, message->scan.rows, sizeof(terms->policy.rows));
	terms->policy.own = message->scan.own;
	memcpy(terms->key, message->scan.key, sizeof(terms->key));
	terms->set = secret_set_new();
	return terms->set ? 0 : -1;
}

static int add_secret(struct proxy *proxy, const struct proxy_message *message)
{
	const char *bytes = (const char *)proxy->secret;
	int added = message->secret.given ?
	                    secret_set_exempt(proxy->terms.set, message->host, bytes, proxy->secret_length, true) :
	                    secret_set_add(proxy->terms.set, message->host, bytes, proxy->secret_length);
	explicit_bzero(proxy->secret, SECRET_OWN_MAX);
	proxy->secret_length = 0;
	return added < 0 ? -1 : 0;
}

static int take_secret(struct proxy *proxy, const struct proxy_message *message)
{
	size_t length = message->secret.length;
	if (!proxy->secret)
		proxy->secret = malloc(SECRET_OWN_MAX);
	if (!proxy->terms.set || !proxy->secret || length > sizeof(message->secret.bytes) ||
	    length > SECRET_OWN_MAX - proxy->secret_length)
		return -1;
	memcpy(proxy->secret + proxy->secret_length, message->secret.bytes, length);
	proxy->secret_length += length;
	return message->secret.more ? 0 : add_secret(proxy, message);
}

static int take_token(struct proxy *proxy, const struct proxy_message *message)
{
	return tokens_add(&proxy->tokens, message->id, message->secret.bytes, message->secret.length);
}

static int take_listener(struct proxy *proxy, const struct proxy_message *message, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (message->listener.use >= EGRESS_USE_MAX || proxy->listener_count == PROXY_LISTENERS_MAX || flags < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -1;
	proxy->listeners[proxy->listener_count++] = (struct listener){ .fd = fd, .use = message->listener.use,
	                                                                .port = message->listener.port };
	proxy->has_v6 |= message->listener.use == EGRESS_FORWARD && message->listener.address.length == 16;
	return 0;
}

/* Published ports alone are served from the inside: by a proxy of their own, which has nothing else to do. */
static int enter_network(struct proxy *proxy, int fd)
{
	int result = seal_enter_network(fd, proxy->has_user);
	proxy->has_user = true;
	close(fd);
	return result;
}

const char *setup_read(struct proxy *proxy)
{
	static int (*const take[PROXY_KIND_MAX])(struct proxy *proxy, const struct proxy_message *message) = {
		[PROXY_SETTINGS] = take_settings,
		[PROXY_RULE] = take_rule,
		[PROXY_EXEMPTION] = take_exemption,
		[PROXY_PRIVATE] = take_private,
		[PROXY_NAME] = take_name,
		[PROXY_SCAN] = take_scan,
		[PROXY_SECRET] = take_secret,
		[PROXY_TOKEN] = take_token,
	};
	static const char *const refused[PROXY_KIND_MAX] = {
		[PROXY_RULE] = "a rule is none, or there are too many",
		[PROXY_EXEMPTION] = "an exemption is none, or there are too many",
		[PROXY_PRIVATE] = "a private host is none, or there are too many",
		[PROXY_NAME] = "a name is none, or there are too many",
		[PROXY_SCAN] = "what to look for is said twice, or cannot be done",
		[PROXY_SECRET] = "a secret is none, or memory is short",
		[PROXY_TOKEN] = "a token is none, or there are too many",
	};
	for (;;) {
		struct proxy_message message;
		int fd;
		if (!receive(&message, &fd))
			return "a message is none";
		if (message.kind == PROXY_LISTENER && fd >= 0) {
			if (take_listener(proxy, &message, fd) < 0)
				return "a listener is none, or there are too many";
			continue;
		}
		if (message.kind == PROXY_NETWORK && fd >= 0) {
			if (enter_network(proxy, fd) < 0)
				return "the sandbox's network cannot be entered";
			continue;
		}
		if (fd >= 0)
			return "a descriptor came with a message that has none";
		if (message.kind == PROXY_BEGIN && proxy->secret_length)
			return "a secret is not whole";
		if (message.kind == PROXY_BEGIN)
			return proxy->settings.connections ? NULL : "there are no settings";
		if (message.kind >= PROXY_KIND_MAX || !take[message.kind])
			return "a message has no place here";
		int taken = take[message.kind](proxy, &message);
		explicit_bzero(&message.secret, sizeof(message.secret));
		if (taken < 0)
			return refused[message.kind];
	}
}
