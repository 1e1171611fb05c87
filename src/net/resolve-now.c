/* One name, waited for: see resolve.h. */
#include <errno.h>
#include <poll.h>

#include "base/error.h"
#include "net/resolve.h"

struct waiting {
	struct resolution *resolution;
	bool done;
};

static void on_resolved(void *arg, const struct resolution *resolution)
{
	struct waiting *waiting = arg;
	*waiting->resolution = *resolution;
	waiting->done = true;
}

int resolve_now(const struct resolver_options *options, const struct host *host, struct resolution *ret_resolution,
                struct cordon_error *err)
{
	struct resolver *resolver;
	struct lookup *lookup;
	struct waiting waiting = { .resolution = ret_resolution };
	if (resolver_open(options, &resolver, err) < 0)
		return -1;
	int rc = resolver_start(resolver, host, on_resolved, &waiting, &lookup, err);
	while (rc == 0 && !waiting.done) {
		struct pollfd poll_fd = { .fd = resolver_fd(resolver), .events = POLLIN };
		if (poll(&poll_fd, 1, -1) < 0 && errno != EINTR)
			rc = fail(err, CORDON_E_INTERNAL, errno, host->name, "waiting for an answer failed");
		else
			resolver_step(resolver);
	}
	resolver_unref(resolver);
	return rc;
}
