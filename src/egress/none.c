/* Where there is no proxy: see egress.h. Drivers refuse a network of listed hosts before this is asked,
 * and what gets here all the same is refused again. */
#include "egress/egress.h"

static int refuse(struct cordon_error *err)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "network",
	     "cordon-proxy, which listed hosts need, is not built for this system");
	fail_boundary(err, "network");
	return fail_remedy(err, "choose --net none or --net all");
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
