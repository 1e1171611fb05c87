/* The ledger, public calls: reading and verifying it. */
#include "audit/ledger.h"
#include "audit/read.h"
#include "audit/verify.h"
#include "base/json.h"
#include "walk.h"

int cordon_audit_read(struct cordon *cordon, const struct cordon_audit_filter *filter, cordon_row_fn fn, void *arg,
                      struct cordon_error *err)
{
	static const struct cordon_audit_filter everything;
	if (call_check(err, cordon, fn) < 0 || handle_check(cordon, err) < 0)
		return -1;
	return ledger_read(cordon->data_dir, filter ? filter : &everything, fn, arg, err);
}

int cordon_audit_verify(struct cordon *cordon, char **ret_json, bool *ret_intact, struct cordon_error *err)
{
	struct json json;
	bool intact;
	if (call_check(err, cordon, ret_json, ret_intact) < 0 || handle_check(cordon, err) < 0)
		return -1;
	json_init(&json);
	if (verify_ledger(cordon->data_dir, &json, &intact, err) < 0) {
		json_free(&json);
		return -1;
	}
	char *text = json_take(&json);
	if (!text)
		return fail_oom(err);
	/* A good time to sign. Where that cannot be done (another's ledger, a read-only disk), what was found still
	 * holds. */
	if (intact)
		(void)!ledger_sign(cordon->ledger, NULL);
	*ret_json = text;
	*ret_intact = intact;
	return 0;
}
