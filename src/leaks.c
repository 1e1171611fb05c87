/* Of step 5: secrets. Before the start the arguments and the environment are searched; afterwards all output goes
 * through the guard (secrets/guard.h) before it is kept or handed on. A file tool has its texts searched before, and
 * what it returns after. No row of the ledger has a secret in it, whatever the policy. What is done about a secret is
 * the configuration's to say, and the request's as far as that lets it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "config/config.h"
#include "secrets/guard.h"
#include "walk.h"

static size_t strictness(enum secret_action action)
{
	return action == SECRET_BLOCK ? 0 : action == SECRET_REDACT ? 1 : 2;
}

/* A person's own command, or a terminal: nothing that passes is changed. */
static bool is_transparent(const struct execution *execution)
{
	return execution->request->plain || execution->request->tty;
}

static int choose_output(const struct execution *execution, enum secret_action *ret_action, struct cordon_error *err)
{
	const struct cordon_request *request = execution->request;
	const struct config *config = execution->verdict.session.config;
	enum secret_action action = is_transparent(execution) ? SECRET_REPORT : SECRET_REDACT;
	if (config->secrets.output)
		action = secret_action_from_name(config->secrets.output);
	if (request->secrets) {
		enum secret_action wanted = secret_action_from_name(request->secrets);
		if (config->secrets.output && strictness(wanted) > strictness(action)) {
			fail(err, CORDON_E_CAPABILITY_DENIED, 0, request->secrets,
			     "the configuration has secrets.output = \"%s\"", config->secrets.output);
			fail_boundary(err, "secrets");
			return fail_remedy(err, "leave out --secrets, or have the configuration changed");
		}
		action = wanted;
	}
	*ret_action = action;
	return 0;
}

static void name_kinds(struct secret_policy *policy, const struct strings *kinds, enum secret_action action)
{
	for (size_t i = 0; i < kinds->count; i++)
		(void)secret_policy_set_kind(policy, kinds->items[i], action);
}

/* The lists: `report` lifts what the general rule says of a kind; the other two are stricter, and win. */
static void set_policies(const struct execution *execution, enum secret_action output)
{
	struct secret_policy before, after;
	const struct config *config = execution->verdict.session.config;
	bool was_chosen = execution->request->secrets;
	secret_policy_set(&after, output);
	if (output != SECRET_BLOCK)
		name_kinds(&after, &config->secrets.report, SECRET_REPORT);
	if (output != SECRET_BLOCK)
		name_kinds(&after, &config->secrets.redact, SECRET_REDACT);
	name_kinds(&after, &config->secrets.block, SECRET_BLOCK);

	/* With the action to report, that holds for its arguments, too. */
	enum secret_action own =
		is_transparent(execution) || (was_chosen && output == SECRET_REPORT) ? SECRET_REPORT : SECRET_BLOCK;
	if (config->secrets.arguments)
		own = secret_action_from_name(config->secrets.arguments);
	secret_policy_set(&before, output == SECRET_BLOCK ? SECRET_BLOCK : SECRET_REPORT);
	before.own = (uint8_t)(output == SECRET_BLOCK ? SECRET_BLOCK : own);
	name_kinds(&before, &config->secrets.block, SECRET_BLOCK);
	secret_guard_set_policies(execution->run.guard, &before, &after);
}

static void deliver(void *context, int stream, const void *bytes, size_t length)
{
	struct execution *execution = context;
	execution->run.running->ops->deliver(execution->run.running, (enum cordon_stream)stream, bytes, length);
}

static int find_passed(struct execution *execution, struct strings *ret_passed)
{
	struct arena *arena = &execution->arena;
	const struct config *config = execution->verdict.session.config;
	return (config && strings_add_all(arena, ret_passed, &config->env_pass) < 0) ||
	       strings_add_all(arena, ret_passed, &execution->verdict.grants.env_pass) < 0 ||
	       strings_add_all(arena, ret_passed, &execution->request->pass_env) < 0 ? -1 : 0;
}

/* Made with the first row. A request that was refused before all is known has no other use for it. */
static int make_guard(struct execution *execution, struct cordon_error *err)
{
	const struct config *config = execution->verdict.session.config;
	struct strings *passed = arena_alloc(&execution->arena, sizeof(*passed));
	if (execution->run.guard)
		return 0;
	if (!passed || find_passed(execution, passed) < 0)
		return fail_oom(err);
	const struct secret_guard_options options = {
		.environments = { request_environment(execution->request), environ }, .passed = passed,
		.given = { config ? &config->env_set : NULL, &execution->request->env },
		.data_dir = execution->cordon->data_dir, .deliver = deliver, .context = execution,
	};
	return secret_guard_new(&options, &execution->run.guard, err);
}

static int begin(struct execution *execution, struct cordon_error *err)
{
	enum secret_action output = SECRET_BLOCK;
	if (choose_output(execution, &output, err) < 0 || make_guard(execution, err) < 0)
		return -1;
	set_policies(execution, output);
	return 0;
}

int leaks_begin(struct execution *execution, struct cordon_error *err)
{
	if (execution->facts.probe)
		return 0;
	return begin(execution, err) < 0 || credentials_begin(execution, err) < 0 ?
	               -1 :
	               secret_guard_check(execution->run.guard, &execution->request->argv,
	                                  &execution->verdict.profile.environment, err);
}

int leaks_begin_tool(struct execution *execution, const struct walk_tool *tool, struct secret_screen **ret_screen,
                     struct cordon_error *err)
{
	if (begin(execution, err) < 0 || credentials_begin(execution, err) < 0)
		return -1;
	*ret_screen = secret_guard_screen(execution->run.guard);
	for (size_t i = 0; i < ARRAY_SIZE(tool->texts); i++) {
		const struct walk_text *text = &tool->texts[i];
		if (!text->what || !text->length ||
		    secret_guard_check_text(execution->run.guard, text->what, text->bytes, text->length, err) == 0)
			continue;
		return err->class == CORDON_E_LEAK_BLOCKED
		               ? fail_remedy(err, "leave it out, or ask with --secrets report") : -1;
	}
	return 0;
}

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

int leaks_clean_row(struct execution *execution, struct json *json, struct cordon_error *err)
{
	if (execution->facts.probe)
		return 0;
	if (make_guard(execution, err) < 0)
		return -1;
	return secret_guard_clean_json(execution->run.guard, json) < 0 ? fail_oom(err) : 0;
}

/* The texts come from what was asked for, and that may be a secret which the command got by name. A person sees what
 * was typed. */
int leaks_clean_error(struct execution *execution, struct cordon_error *err)
{
	struct cordon_error unmade;
	if (execution->facts.probe || is_transparent(execution))
		return 0;
	return make_guard(execution, &unmade) < 0 ||
	       secret_guard_clean_array(execution->run.guard, err->subject, sizeof(err->subject)) < 0 ||
	       secret_guard_clean_array(execution->run.guard, err->reason, sizeof(err->reason)) < 0 ||
	       secret_guard_clean_array(execution->run.guard, err->remediation,
	                                                sizeof(err->remediation)) < 0 ? -1 : 0;
}

int leaks_clean_text(struct execution *execution, const char **text)
{
	struct cordon_error err;
	if (make_guard(execution, &err) < 0)
		return -1;
	char *copy = *text ? arena_printf(&execution->arena, "%s%*s", *text, (int)SECRET_NAME, "") : NULL;
	if (!*text)
		return 0;
	if (!copy)
		return -1;
	copy[strlen(*text)] = '\0';
	if (secret_guard_clean_array(execution->run.guard, copy, strlen(*text) + SECRET_NAME) < 0)
		return -1;
	*text = copy;
	return 0;
}

int leaks_clean_denials(struct execution *execution)
{
	if (!execution->run.guard || is_transparent(execution))
		return 0;
	for (size_t i = 0; i < execution->denials.count; i++) {
		struct cordon_denial *denial = &execution->denials.items[i];
		if (leaks_clean_text(execution, &denial->what) < 0 ||
		    leaks_clean_text(execution, &denial->note) < 0 ||
		    leaks_clean_text(execution, &denial->grant) < 0)
			return -1;
	}
	return 0;
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void add(void *arg, enum cordon_stream stream, const void *bytes, size_t length)
{
	secret_guard_add(arg, (int)stream, bytes, length);
}

static uint64_t held_ms(void *arg)
{
	return secret_guard_held_ms(arg);
}

static uint64_t held_until_judged(void *arg)
{
	(void)arg;
	return 0;
}

static void release(void *arg)
{
	secret_guard_release(arg);
}

static void finish(void *arg)
{
	secret_guard_finish(arg);
}

struct output_filter leaks_filter(struct execution *execution)
{
	if (!execution->run.guard)
		return (struct output_filter){ 0 };
	return (struct output_filter){ add, execution->request->judged ? held_until_judged : held_ms, release, finish,
	                               execution->run.guard };
}

/* The kinds that were hidden, each once. */
static char *hidden_names(struct arena *arena, const struct secret_place *places, size_t count, const char *separator,
                          const char *quote, bool is_kind)
{
	struct strings names = { 0 };
	char *text = arena_strdup(arena, "");
	for (size_t i = 0; i < count && text; i++) {
		const struct secret_finding *finding = &places[i].finding;
		const char *name = is_kind && finding->is_own ? "own" : finding->name;
		if (finding->action == SECRET_REPORT || !places[i].is_output || strings_find(&names, name) >= 0)
			continue;
		if (strings_add(arena, &names, name) < 0)
			return NULL;
		text = arena_printf(arena, "%s%s%s%s%s", text, *text ? separator : "", quote, name, quote);
	}
	return text;
}

static int list_findings(struct execution *execution, const struct secret_place *places, size_t count)
{
	struct cordon_secret *secrets = arena_alloc(&execution->arena, count * sizeof(*secrets));
	if (!secrets)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct secret_finding *finding = &places[i].finding;
		/* Borrowed from the guard, which lasts as long. */
		secrets[i] = (struct cordon_secret){
			.kind = finding->is_own ? "own" : finding->name,
			.name = finding->name,
			.where = places[i].where,
			.layer = finding->layer,
			.fingerprint = finding->fingerprint,
			.action = secret_action_name(finding->action),
			.offset = finding->offset,
			.length = finding->length,
		};
	}
	execution->run.secrets = secrets;
	execution->run.secret_count = count;
	return 0;
}

/* No wall holds it. */
static void set_wall(struct execution *execution, const char *note)
{
	struct cordon_denial *last = &execution->denials.items[execution->denials.count - 1];
	if (!strcmp(last->note, note))
		last->wall = "secrets";
}

/* One line for all of them. */
static int tell_hidden(struct execution *execution, const struct secret_place *places, size_t count, uint64_t hidden)
{
	struct arena *arena = &execution->arena;
	const char *names = hidden_names(arena, places, count, ", ", "", false);
	const char *kinds = hidden_names(arena, places, count, ", ", "\"", true);
	const char *what =
		names ? arena_printf(arena, "%s: %s", execution->facts.tool ? "content" : "output", names) : NULL;
	const char *note = arena_printf(arena, "%llu secret%s replaced by [REDACTED:name]", (unsigned long long)hidden,
	                                hidden == 1 ? "" : "s");
	const char *grant = kinds ? arena_printf(arena, "--secrets report, or secrets.report = [%s]", kinds) : NULL;
	if (!what || !note || !grant ||
	    denials_add(&execution->denials, arena, CORDON_WALL_MASKED, what, note, grant) < 0)
		return -1;
	set_wall(execution, note);
	return 0;
}

/* A secret that nothing looks for must not be taken for one that is not there. */
static int tell_left_out(struct execution *execution, size_t left_out)
{
	struct arena *arena = &execution->arena;
	const char *note = arena_printf(arena, "%zu of the caller's are not looked for: more than %d", left_out,
	                                SECRET_OWN_COUNT);
	if (!note || denials_add(&execution->denials, arena, CORDON_WALL_MASKED, "own secrets", note, "") < 0)
		return -1;
	set_wall(execution, note);
	return 0;
}

/* What is known by now, for a row. */
int leaks_list(struct execution *execution)
{
	const struct secret_place *places;
	uint64_t hidden;
	if (!execution->run.guard)
		return 0;
	execution->run.secrets_found = secret_guard_count(execution->run.guard, &hidden);
	size_t count = secret_guard_places(execution->run.guard, &places);
	return count ? list_findings(execution, places, count) : 0;
}

int leaks_end(struct execution *execution)
{
	struct secret_guard *guard = execution->run.guard;
	const struct secret_place *places;
	uint64_t hidden = 0;
	if (!guard)
		return 0;
	for (int stream = CORDON_STDOUT; stream <= CORDON_STDERR; stream++) {
		uint64_t total = secret_guard_total(guard, stream);
		if (total != UINT64_MAX)
			execution->run.outcome.streams[stream].total = total;
	}
	if (leaks_list(execution) < 0)
		return -1;
	size_t left_out = secret_guard_left_out(guard);
	if (left_out && tell_left_out(execution, left_out) < 0)
		return -1;
	secret_guard_count(guard, &hidden);
	size_t count = secret_guard_places(guard, &places);
	return hidden ? tell_hidden(execution, places, count, hidden) : 0;
}

int leaks_block(const struct execution *execution, struct cordon_error *err)
{
	if (!execution->run.guard || !secret_guard_is_blocked(execution->run.guard))
		return 0;
	fail(err, CORDON_E_LEAK_BLOCKED, 0, execution->facts.tool ? "content" : "output",
	     execution->facts.tool ? "it has a secret in it, and is not passed on" :
	                             "it had a secret in it, and what followed that was not passed on");
	fail_boundary(err, "secrets");
	return fail_remedy(err, "the ledger has its kind and place: cordon audit show %s", execution->audit.id);
}

void leaks_write_json(struct json *json, const struct cordon_secret *secrets, size_t count, uint64_t total)
{
	if (!total)
		return;
	json_key(json, "secrets");
	json_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json);
		json_key_string(json, "kind", secrets[i].kind);
		json_key_string(json, "name", secrets[i].name);
		json_key_string(json, "where", secrets[i].where);
		json_key_string(json, "layer", secrets[i].layer);
		json_key_uint(json, "offset", secrets[i].offset);
		json_key_uint(json, "length", secrets[i].length);
		json_key_string(json, "fingerprint", secrets[i].fingerprint);
		json_key_string(json, "action", secrets[i].action);
		json_object_end(json);
	}
	json_array_end(json);
	json_key_uint(json, "secrets_found", total);
}

void leaks_free(struct execution *execution)
{
	secret_guard_free(execution->run.guard);
	execution->run.guard = NULL;
}
