/* Where there is no proxy: see egress.h and publish.h. Drivers refuse a network of listed hosts before this is asked,
 * and what gets here all the same is refused again. */
#include "egress/egress.h"
#include "egress/publish.h"

#include "base/json.h"

static int refuse(struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "network",
	     "cordon-proxy, which listed hosts and ports need, is not built for this system");
	fail_boundary(err, "network");
	return fail_remedy(err, "choose --net none or --net all, and publish no port");
}

int egress_begin(const struct egress_facts *facts, struct egress **ret_egress, struct cordon_error *err)
{
	(void)facts;
	(void)ret_egress;
	return refuse(err);
}

int *egress_listeners(struct egress *egress)
{
	(void)egress;
	return NULL;
}

void egress_started(struct egress *egress, bool listens)
{
	(void)egress;
	(void)listens;
}

int egress_fd(const struct egress *egress)
{
	(void)egress;
	return -1;
}

void egress_handle(void *egress)
{
	(void)egress;
}

int egress_join(struct egress *egress, const struct egress_command_facts *facts, struct egress_command **ret_command,
                struct cordon_error *err)
{
	(void)egress;
	(void)facts;
	(void)ret_command;
	return refuse(err);
}

const char *egress_command_token(const struct egress_command *command)
{
	(void)command;
	return NULL;
}

int egress_leave(struct egress_command *command, struct egress_report *report, struct cordon_error *err)
{
	(void)command;
	(void)report;
	(void)err;
	return 0;
}

bool egress_is_over(struct egress *egress)
{
	(void)egress;
	return true;
}

bool egress_hand_over(struct egress *egress, const struct egress_plan *next)
{
	(void)egress;
	(void)next;
	return false;
}

int egress_end(struct egress *egress, struct cordon_error *err)
{
	(void)egress;
	(void)err;
	return 0;
}

void egress_free(struct egress *egress)
{
	(void)egress;
}

int egress_keep_environment(struct arena *arena, const struct config *config, char *const *environment,
                            char ***ret_environment)
{
	(void)arena;
	(void)config;
	(void)environment;
	*ret_environment = NULL;
	return 0;
}

void egress_forget_environment(char **environment)
{
	(void)environment;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

int publish_begin(const struct publish_facts *facts, struct publish **ret_publish, struct cordon_error *err)
{
	(void)facts;
	(void)ret_publish;
	return refuse(err);
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
