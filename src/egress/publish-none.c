/* Where no port of a sandbox can be published: see publish.h. Step 3 refuses, and what gets here all the same is
 * refused again. */
#include "egress/publish.h"

#include "base/json.h"
#include "policy/capability.h"

int publish_begin(const struct publish_facts *facts, struct publish **ret_publish, struct cordon_error *err)
{
	(void)facts;
	(void)ret_publish;
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "network", "ports cannot be published on this system");
	fail_boundary(err, "network");
	return fail_remedy(err, "leave out --publish");
}

void publish_started(struct publish *publish, const struct sandbox *sandbox)
{
	(void)publish;
	(void)sandbox;
}

unsigned publish_host_port(const struct publish *publish)
{
	(void)publish;
	return 0;
}

struct egress *publish_egress(const struct publish *publish)
{
	(void)publish;
	return NULL;
}

bool publish_is_for(const struct publish *publish, const struct strings *ports)
{
	(void)publish;
	return !ports->count;
}

void publish_write_json(struct json *json, const struct publish *publish)
{
	(void)publish;
	json_key(json, "published");
	json_array_begin(json);
	json_array_end(json);
}

void publish_free(struct publish *publish)
{
	(void)publish;
}
