/* What step 5 calls (see step-run-ground.h): each notes its name, and fails where the test says so. */
#include "step-run-ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "egress/publish.h"
#include "git-broker.h"
#include "host/kernel-mounts.h"
#include "paths/trees.h"
#include "secrets/guard.h"

#include <cmocka.h>

char taken[512];
const char *failing[3];
bool lost, shares;
enum sandbox_end left_as;
unsigned watched;
const char *token;

static bool fails(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(failing); i++)
		if (failing[i] && !strcmp(failing[i], name))
			return true;
	return false;
}

static void note(const char *name)
{
	assert_true(strlen(taken) + strlen(name) + 2 < sizeof(taken));
	strcat(taken, *taken ? " " : "");
	strcat(taken, name);
}

static int call(const char *name, struct cordon_error *err)
{
	note(name);
	return fails(name) ? (fail)(err, CORDON_E_INTERNAL, 0, NULL, "%s", name) : 0;
}

/* The objects that nobody looks into. */
static struct sandbox own, shared;
static char live, view, publish;
static struct egress egress;
static struct egress_command connections;

int leaks_begin(struct execution *execution, struct cordon_error *err)
{
	(void)execution;
	return call("secrets", err);
}

struct output_filter leaks_filter(struct execution *execution)
{
	(void)execution;
	return (struct output_filter){ 0 };
}

int leaks_end(struct execution *execution)
{
	(void)execution;
	return call("leaks", NULL);
}

int leaks_clean_denials(struct execution *execution)
{
	(void)execution;
	return 0;
}

void leaks_free(struct execution *execution)
{
	(void)execution;
}

void credentials_wipe(struct execution *execution)
{
	(void)execution;
	note("wipe");
}

int secret_guard_terms(struct secret_guard *guard, bool with_key, struct secret_terms *ret_terms)
{
	(void)guard, (void)with_key, (void)ret_terms;
	return 0;
}

enum command_wish session_wish(void *execution)
{
	(void)execution;
	return (enum command_wish)0;
}

char *const *request_environment(const struct cordon_request *of)
{
	static char *const environment[] = { NULL };
	(void)of;
	return environment;
}

uint64_t kernel_mounts_version(void)
{
	return 7;
}

int sandboxes_refresh(struct sandboxes *sandboxes, const struct sandbox_request *wanted, struct cordon_error *err)
{
	(void)sandboxes, (void)wanted;
	return call("refresh", err);
}

int sandboxes_enter(struct sandboxes *sandboxes, const struct sandbox_request *wanted, struct sandbox_place *place,
                    struct cordon_error *err)
{
	(void)sandboxes;
	assert_true(wanted->walls.stays);
	assert_int_equal(wanted->walls.mounts, 7);
	assert_string_equal(wanted->session_id, "s");
	if (shares) {
		place->live = (struct live *)&live;
		place->view = (struct sandbox_view *)&view;
	}
	return call("enter", err);
}

void sandboxes_leave(struct sandboxes *sandboxes, struct sandbox_place *place, enum sandbox_end end)
{
	(void)sandboxes;
	if (!place->live)
		return;
	place->live = NULL;
	left_as = end;
	note("leave");
}

struct sandbox *sandbox_of(const struct sandbox_place *place)
{
	assert_ptr_equal(place->live, &live);
	return &shared;
}

int sandbox_join_egress(const struct sandbox_place *place, const struct egress_command_facts *facts,
                        struct egress_command **ret_command, struct cordon_error *err)
{
	(void)place, (void)facts;
	*ret_command = &connections;
	return call("join-shared", err);
}

void sandbox_set_running(struct sandbox_place *place, struct running *running)
{
	(void)place;
	if (running)
		note("running");
}

int egress_begin(const struct egress_facts *facts, struct egress **ret_egress, struct cordon_error *err)
{
	assert_false(facts->stays);
	if (fails("egress"))
		return call("egress", err);
	*ret_egress = &egress;
	return call("egress", err);
}

struct address egress_command_address(const char *audit_id)
{
	(void)audit_id;
	return (struct address){ 0 };
}

int *egress_listeners(struct egress *of)
{
	assert_ptr_equal(of, &egress);
	return NULL;
}

void egress_started(struct egress *of, bool listens)
{
	(void)of;
	note(listens ? "listeners" : "deaf");
}

int egress_fd(const struct egress *of)
{
	return of == &egress ? 10 : 11;
}

void egress_handle(void *of)
{
	(void)of;
}

int egress_join(struct egress *of, const struct egress_command_facts *facts, struct egress_command **ret_command,
                struct cordon_error *err)
{
	(void)of, (void)facts;
	*ret_command = &connections;
	return call("join", err);
}

const char *egress_command_token(const struct egress_command *command)
{
	assert_ptr_equal(command, &connections);
	return token;
}

int credentials_deliver_proxy(struct execution *execution, const char *its, unsigned port, struct cordon_error *err)
{
	(void)execution;
	assert_ptr_equal(its, token);
	assert_int_equal(port, 4711);
	return call("deliver", err);
}

int egress_leave(struct egress_command *command, struct egress_report *report, struct cordon_error *err)
{
	assert_ptr_equal(command, &connections);
	(void)report;
	return call("part", err);
}

int egress_end(struct egress *of, struct cordon_error *err)
{
	(void)of;
	return call("egress-end", err);
}

void egress_free(struct egress *of)
{
	if (of)
		note("egress-free");
}

int publish_begin(const struct publish_facts *facts, struct publish **ret_publish, struct cordon_error *err)
{
	(void)facts;
	if (fails("publish"))
		return call("publish", err);
	*ret_publish = (struct publish *)&publish;
	return call("publish", err);
}

void publish_started(struct publish *of, const struct sandbox *sandbox)
{
	(void)of;
	assert_ptr_equal(sandbox, &own);
	note("published");
}

struct egress *publish_egress(const struct publish *of)
{
	static struct egress its;
	(void)of;
	return &its;
}

void publish_free(struct publish *of)
{
	if (of)
		note("publish-free");
}

int git_broker_begin(struct execution *execution, struct git_broker **ret_broker, struct cordon_error *err)
{
	(void)execution, (void)ret_broker;
	return call("broker", err);
}

const struct rename_watch *git_broker_renames(const struct git_broker *broker)
{
	(void)broker;
	return NULL;
}

void git_broker_free(struct git_broker *broker)
{
	(void)broker;
}

int limits_end(struct execution *execution, struct cordon_error *err)
{
	(void)execution;
	return call("limits", err);
}

const struct captured *remarks_source(const struct execution *execution)
{
	return &execution->run.outcome.streams[CORDON_STDERR];
}

int remarks_add(struct execution *execution)
{
	(void)execution;
	return call("remarks", NULL);
}

int remarks_add_success(struct execution *execution)
{
	(void)execution;
	return 0;
}

int trees_keep_shown(struct trees *trees)
{
	(void)trees;
	return call("shown", NULL);
}

int trees_judge(struct trees *trees)
{
	(void)trees;
	return call("judge", NULL);
}

/* ---- the driver -------------------------------------------------------------------------------------------------- */

static int end_running(struct running *running, struct outcome *ret_outcome, struct cordon_error *err)
{
	(void)running, (void)ret_outcome;
	return call("end", err);
}

static void free_running(struct running *running)
{
	(void)running;
	note("free");
}

static int raise_walls(const struct driver *driver, const struct walls *walls, struct sandbox **ret_sandbox,
                       struct cordon_error *err)
{
	assert_false(walls->stays);
	own.driver = driver;
	if (call("raise", err) < 0)
		return -1;
	*ret_sandbox = &own;
	return 0;
}

static void describe(const struct sandbox *sandbox, struct arena *arena, const struct profile *profile,
                     const char *isolation[CORDON_WALL_MAX])
{
	(void)sandbox, (void)arena, (void)profile;
	isolation[CORDON_WALL_NETWORK] = "this test";
}

static int take_listeners(struct sandbox *sandbox, int *ret_fds)
{
	(void)ret_fds;
	assert_ptr_equal(sandbox, &own);
	return fails("listeners") ? -1 : 0;
}

static int start_command(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                         struct cordon_error *err)
{
	static const struct running_ops ops = { .end = end_running, .free = free_running };
	static struct running running = { .ops = &ops };
	assert_ptr_equal(sandbox, command->view ? &shared : &own);
	watched = command->watched_count;
	if (call("start", err) < 0)
		return -1;
	if (lost)
		return (fail)(err, CORDON_E_INTERNAL, 0, NULL, "it does not answer"), 1;
	*ret_running = &running;
	return 0;
}

static void lower(struct sandbox *sandbox)
{
	assert_ptr_equal(sandbox, &own);
	note("lower");
}

static uint16_t loopback_port(const struct sandbox *sandbox)
{
	assert_ptr_equal(sandbox, &own);
	return 4711;
}

static const struct driver_keeping keeping;
const struct driver on_loopback = { .name = "on loopback", .describe = describe, .raise = raise_walls,
	.take_listeners = take_listeners, .loopback_port = loopback_port, .start = start_command, .lower = lower };
const struct driver one_by_one = { .name = "one by one", .describe = describe, .raise = raise_walls,
	.take_listeners = take_listeners, .start = start_command, .lower = lower };
const struct driver keeps = { .name = "keeps", .keeping = &keeping, .describe = describe, .raise = raise_walls,
	.take_listeners = take_listeners, .start = start_command, .lower = lower };
