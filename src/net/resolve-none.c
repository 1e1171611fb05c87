/* Where no name is resolved: see resolve.h. */
#include "net/resolve.h"

#include "base/error.h"

int resolve_now(const struct resolver_options *options, const struct host *host, struct resolution *ret_resolution,
                struct cordon_error *err)
{
	(void)options;
	(void)host;
	(void)ret_resolution;
	fail(err, CORDON_E_NETWORK_UNREACHABLE, 0, "resolver", "cordon's resolver is not built for this system");
	return fail_remedy(err, "name an address, or ask on Linux");
}
