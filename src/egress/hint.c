/* A word of help for a command that failed for want of a network. It decides nothing: what a program prints is not to
 * be relied on, and many print something else. */
#include <string.h>

#include "egress/egress.h"

static const char *const complaints[] = {
	"etwork is unreachable",
	"o route to host",
	"ould not resolve",
	"ame or service not known",
	"emporary failure in name",
	"o such host",
	"ENETUNREACH",
	"EHOSTUNREACH",
	"EAI_AGAIN",
	"ENOTFOUND",
};

static bool complains(const char *said, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(complaints); i++)
		if (memmem(said, length, complaints[i], strlen(complaints[i])))
			return true;
	return false;
}

const char *egress_hint(enum network_mode mode, const struct egress_plan *plan, const struct egress_counts *counts,
                        const char *said, size_t length)
{
	bool used = counts->connections || counts->denied || counts->failed;
	if (mode == NETWORK_ALL || used || !complains(said, length))
		return NULL;
	if (mode == NETWORK_HOSTS && plan->is_on_loopback)
		return "it seems to have looked for a network and never used its only way out, the proxy in HTTP_PROXY";
	return mode == NETWORK_HOSTS && plan->count
	               ? "it seems to have looked for a network and never used its way out: HTTP_PROXY, or the names "
	                 "that were "
	                 "granted; these resolve to addresses inside the sandbox, and other addresses are unreachable"
	               : "it seems to have looked for a network, and has none: --net HOST:PORT grants one host";
}
