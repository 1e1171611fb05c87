/* The policy for the public calls: see policy.h. */
#include "api/policy.h"

#include "base/error.h"
#include "walk.h"

int policy_take(struct cordon *cordon, const char *session_id, const struct config **ret_config,
                struct cordon_error *err)
{
	const struct config *config;
	if (handle_check(cordon, err) < 0 ||
	    config_store_take(cordon->config, session_id, -1, NULL, CONFIG_KEEP_NOTHING, handle_mounts(cordon, false),
	                      &config, err) < 0)
		return -1;
	if (config->enabled) {
		*ret_config = config;
		return 0;
	}
	config_unref(config);
	fail(err, CORDON_E_SANDBOX_DISABLED, 0, "sandbox.enabled", "the sandbox is switched off");
	return fail_remedy(err, "set sandbox.enabled = true in the configuration");
}

int policy_check(struct cordon *cordon, struct cordon_error *err)
{
	const struct config *config;
	if (policy_take(cordon, NULL, &config, err) < 0)
		return -1;
	config_unref(config);
	return 0;
}
