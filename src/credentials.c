/* Of steps 3 and 5: credentials of the configuration, and the token of the command's proxy. Step 3 chooses those that
 * the command gets, by the program that it executes; step 4 puts their variables into the environment, without values;
 * step 5 reads the values for the start, and wipes them. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "policy/egress.h"
#include "policy/env.h"
#include "policy/gateway.h"
#include "secrets/credential.h"
#include "secrets/guard.h"
#include "session/beneath.h"
#include "walk.h"

/* ---- step 3 ----------------------------------------------------------------------------------------------------- */

static bool is_program(struct arena *arena, const char *path, const struct place *program)
{
	struct cordon_error ignored;
	struct place place;
	return beneath_resolve(arena, path, &place, NULL, &ignored) == 0 && place.device == program->device &&
	       place.inode == program->inode;
}

static bool is_for(struct arena *arena, const struct credential *credential, const struct place *program)
{
	for (size_t i = 0; credential->variable && i < credential->programs.count; i++)
		if (is_program(arena, credential->programs.items[i], program))
			return true;
	return false;
}

/* A program that the command could have changed is not the one that was named. */
static int leave_out(const struct walk_facts *facts, const struct credential *credential)
{
	const char *what = arena_printf(facts->arena, "credentials.%s", credential->name);
	return !what ? -1 : denials_add(facts->denials, facts->arena, CORDON_WALL_PROGRAMS, what,
	                                "its program lies where the command may write, and does not get it", "");
}

bool credentials_are_configured(const struct config *config)
{
	for (size_t i = 0; i < config->credential_count; i++)
		if (config->credentials[i].variable)
			return true;
	return false;
}

int credentials_choose(const struct walk_facts *facts, const struct verdict_session *session, struct grants *grants,
                       struct cordon_error *err)
{
	const struct config *config = session->config;
	const struct place *program = &grants->program;
	if (!program->path)
		return 0;
	for (size_t i = 0; i < config->credential_count; i++) {
		const struct credential *credential = &config->credentials[i];
		if (!is_for(facts->arena, credential, program))
			continue;
		bool writable = place_is_within(program->path, &session->workspace, &grants->writes);
		if (writable ? leave_out(facts, credential) < 0 :
		               strings_add(facts->arena, &grants->credentials, credential->name) < 0)
			return fail_oom(err);
	}
	return 0;
}

/* ---- step 4 ----------------------------------------------------------------------------------------------------- */

static const struct credential *find(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->credential_count; i++)
		if (!strcmp(config->credentials[i].name, name))
			return &config->credentials[i];
	return NULL;
}

int credentials_set_variables(struct arena *arena, const struct verdict *verdict, struct strings *set)
{
	for (size_t i = 0; i < verdict->grants.credentials.count; i++) {
		const struct credential *credential =
			find(verdict->session.config, verdict->grants.credentials.items[i]);
		if (strings_add(arena, set, arena_printf(arena, "%s=" ENV_HIDDEN, credential->variable)) < 0)
			return -1;
	}
	return 0;
}

/* ---- step 5 ----------------------------------------------------------------------------------------------------- */

/* Where the command may write, by every name. */
static int find_reach(struct execution *execution, struct strings *roots)
{
	const struct verdict *verdict = &execution->verdict;
	struct arena *arena = &execution->arena;
	const struct places *writes = &verdict->grants.writes;
	if (place_add_names(arena, roots, &verdict->session.workspace) < 0 ||
	    (verdict->session.home_source && strings_add(arena, roots, verdict->session.home_source) < 0) ||
	    (verdict->session.tmp.path && strings_add(arena, roots, verdict->session.tmp.path) < 0))
		return -1;
	for (size_t i = 0; i < writes->count; i++)
		if (place_add_names(arena, roots, &writes->items[i]) < 0)
			return -1;
	return 0;
}

/* Of the command's environment; wiped after the start. NULL where memory is short. */
static char *new_pair(struct execution *execution, size_t size)
{
	struct delivered_credential *delivered = arena_alloc(&execution->arena, sizeof(*delivered));
	char *pair = delivered ? malloc(size) : NULL;
	if (!pair)
		return NULL;
	*delivered = (struct delivered_credential){ .pair = pair, .size = size, .next = execution->run.credentials };
	execution->run.credentials = delivered;
	return pair;
}

/* The variable with its value takes the place of the one without. */
static int deliver(struct execution *execution, const struct credential *credential,
                   const struct credential_value *value, struct cordon_error *err)
{
	struct strings *environment = &execution->run.environment;
	size_t name = strlen(credential->variable), size = name + 1 + value->length + 1;
	char *pair = new_pair(execution, size);
	if (!pair)
		return fail_oom(err);
	memcpy(pair, credential->variable, name);
	pair[name] = '=';
	memcpy(pair + name + 1, value->bytes, value->length + 1);
	for (size_t i = 0; i < environment->count; i++)
		if (!strncmp(environment->items[i], credential->variable, name) && environment->items[i][name] == '=')
			environment->items[i] = pair;
	return 0;
}

static enum secret_use use_of(const struct config *config, const struct credential *credential, bool gets_it)
{
	for (size_t i = 0; i < config->gateway_count; i++)
		if (config->gateways[i].credential == credential)
			return gets_it ? SECRET_GIVEN : SECRET_GATEWAY_KEY;
	return gets_it ? SECRET_GIVEN : SECRET_NOT_GIVEN;
}

static int load(struct execution *execution, const struct credential *credential, const struct credential_reach *reach,
                bool gets_it, struct cordon_error *err)
{
	char *const *environment = request_environment(execution->request);
	struct cordon_error ignored;
	struct credential_value value;
	/* What it does not get is looked for, as far as that takes no command. */
	if (!gets_it && credential->command.count)
		return 0;
	if (credential_load(credential, environment ? environment : environ, reach, &value, gets_it ? err : &ignored) <
	    0)
		return gets_it ? -1 : 0;
	enum secret_use use = use_of(execution->verdict.session.config, credential, gets_it);
	int done = secret_guard_add_own(execution->run.guard, credential->name, value.bytes, value.length, use) < 0
	                           ? fail_oom(err) : 0;
	if (done == 0 && gets_it)
		done = deliver(execution, credential, &value, err);
	credential_wipe(&value);
	return done;
}

int credentials_begin(struct execution *execution, struct cordon_error *err)
{
	const struct config *config = execution->verdict.session.config;
	struct strings roots = { 0 };
	if (!config->credential_count || execution->facts.probe)
		return 0;
	if (find_reach(execution, &roots) < 0)
		return fail_oom(err);
	const struct credential_reach reach = { roots.items, roots.count };
	/* Later, when a gateway is used, it is read without another look. */
	for (size_t i = 0; i < config->gateway_count && execution->verdict.profile.egress.gateway_count; i++)
		if (credential_check_reach(config->gateways[i].credential, &reach, err) < 0)
			return -1;
	for (size_t i = 0; i < config->credential_count; i++) {
		const struct credential *credential = &config->credentials[i];
		bool gets_it = strings_find(&execution->verdict.grants.credentials, credential->name) >= 0;
		if (load(execution, credential, &reach, gets_it, err) < 0)
			return -1;
	}
	return 0;
}

int credentials_deliver_proxy(struct execution *execution, const char *token, unsigned port, struct cordon_error *err)
{
	static const char mark[] = "=" EGRESS_LOOPBACK_URL;
	struct strings *environment = &execution->run.environment;
	for (size_t i = 0; i < environment->count; i++) {
		const char *entry = environment->items[i];
		size_t name = strcspn(entry, "="), size = name + sizeof(mark) + strlen(token);
		/* What the caller set by name is the caller's. */
		if (strcmp(entry + name, mark))
			continue;
		char *pair = new_pair(execution, size);
		if (!pair)
			return fail_oom(err);
		snprintf(pair, size, "%.*s=http://" EGRESS_USER ":%s@" EGRESS_LOOPBACK_V4 ":%u", (int)name, entry,
		         token, port);
		environment->items[i] = pair;
	}
	return 0;
}

void credentials_wipe(struct execution *execution)
{
	for (struct delivered_credential *at = execution->run.credentials; at; at = at->next) {
		sodium_memzero(at->pair, at->size);
		free(at->pair);
	}
	execution->run.credentials = NULL;
	execution->run.environment = (struct strings){ 0 };
}
