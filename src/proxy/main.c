/* cordon-proxy: started by the supervisor with nothing but a socket (proxy-message.h), which is also its lifeline;
 * where it is a file of its own, also with the version that it must have. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "cordon.h"
#include "net/proxy-socket.h"
#include "net/resolve.h"
#include "proxy/loop.h"
#include "proxy/seal.h"
#include "proxy/setup.h"
#include "proxy/supervisor.h"

#define FAREWELL_MS 2000        /* why there is no proxy, for the supervisor */
#define DESCRIPTORS_EACH 6      /* two sockets, two pipes */
#define DESCRIPTORS_OTHER 56    /* of the resolver, and pipes that wait for use */

static struct proxy proxy;

static const char *open_resolver(void)
{
	static struct cordon_error err;
	struct resolver_options options = {
		.timeout_ms = (unsigned)(proxy.settings.connect_ms < 60000 ? proxy.settings.connect_ms : 60000),
		.exemptions = proxy.rules.exemptions,
		.exemption_count = proxy.rules.exemption_count,
	};
	if (proxy.settings.offline)
		return NULL;
	return resolver_open(&options, &proxy.resolver, &err) < 0 ? err.reason : NULL;
}

static const char *seal(void)
{
	uint64_t fixed = proxy.listener_count + DESCRIPTORS_OTHER;
	uint64_t descriptors = fixed + proxy.settings.connections * DESCRIPTORS_EACH;
	const char *why = seal_raise(&descriptors, proxy.settings.offline);
	/* What is not available is not announced. */
	if (!why && descriptors < fixed + DESCRIPTORS_EACH)
		return "there are too few descriptors";
	if (!why && proxy.settings.connections > (descriptors - fixed) / DESCRIPTORS_EACH)
		proxy.settings.connections = (descriptors - fixed) / DESCRIPTORS_EACH;
	return why;
}

__attribute__((noreturn)) static void stop(const char *why)
{
	struct proxy_message message = { .kind = PROXY_TOTALS };
	size_t sent = 0;
	snprintf(message.text, sizeof(message.text), "%s", why);
	(void)!proxy_socket_send(PROXY_FD, &message, &sent);
	/* A socket that is closed with unread input is reset, and the supervisor might miss the message. */
	struct pollfd wait = { .fd = PROXY_FD, .events = POLLIN };
	while (poll(&wait, 1, FAREWELL_MS) == 1 && recv(PROXY_FD, &message, sizeof(message), MSG_DONTWAIT) > 0)
		;
	_exit(2);
}

int main(int argc, char **argv)
{
	static const struct proxy_message ready = { .kind = PROXY_READY };
	/* Other descriptors of the supervisor must not be inherited. */
	seal_prepare(PROXY_FD);
	/* Splicing into a socket that was reset sends it. */
	signal(SIGPIPE, SIG_IGN);
	proxy.last_outgoing = &proxy.first_outgoing;
	/* One that lies in a file beside cordon may be another's. */
	bool is_other = argc > 1 && strcmp(argv[1], CORDON_VERSION) != 0;
	const char *why = is_other ? "the program beside cordon is of another version" : seal_drop_root();
	if (!why)
		why = setup_read(&proxy);
	if (!why)
		why = open_resolver();
	if (!why && loop_open(&proxy) < 0)
		why = "cannot watch the listeners";
	if (!why)
		why = seal();
	if (why)
		stop(why);
	supervisor_tell(&proxy, &ready);
	loop_run(&proxy);
}
