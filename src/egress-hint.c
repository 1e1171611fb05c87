/* A word of help for a command that failed for want of a network. It decides nothing: what a program prints is not to be
 * relied on, and many print something else. */
#include <string.h>
#include <sys/wait.h>

#include "walk.h"

static const char *const complaints[] = {
	"etwork is unreachable", "o route to host", "ould not resolve", "ame or service not known", "emporary failure in name",
	"o such host", "ENETUNREACH", "EHOSTUNREACH", "EAI_AGAIN", "ENOTFOUND",
};

static bool complains(const struct captured *stream)
{
	for (size_t i = 0; i < ARRAY_SIZE(complaints); i++)
		if (memmem(stream->data, stream->length, complaints[i], strlen(complaints[i])))
			return true;
	return false;
}

const char *egress_hint(const struct execution *execution)
{
	const struct supervision *supervision = &execution->run.supervision;
	const struct egress_counts *counts = &execution->run.network;
	bool used = counts->connections || counts->denied || counts->failed;
	enum network_mode mode = execution->verdict.grants.set.network;
	/* With a terminal of its own, all it says is one stream. */
	if (mode == NETWORK_ALL || used || supervision->status == 0 ||
	    !complains(&execution->run.streams[execution->request->tty ? CORDON_STDOUT : CORDON_STDERR]))
		return NULL;
	return mode == NETWORK_HOSTS && execution->verdict.profile.egress.count
	               ? "it seems to have looked for a network and never used its way out: HTTP_PROXY, or the names that were "
	                 "granted, which resolve to addresses of its own; other addresses lead nowhere"
	               : "it seems to have looked for a network, and has none: --net HOST:PORT grants one host";
}
