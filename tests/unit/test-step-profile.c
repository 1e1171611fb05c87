/* Step 4: which facts are gathered and in which order, and what of the verdict goes into the profile. What looks at the
 * host and at the trees is this test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remove.h"
#include "config/config.h"
#include "config/store.h"
#include "host/host.h"
#include "host/tools.h"
#include "host/view.h"
#include "paths/trees.h"
#include "policy/egress.h"
#include "policy/env.h"
#include "session/scratch.h"
#include "driver/machine.h"
#include "walk.h"

int credentials_set_variables(struct arena *arena, const struct verdict *verdict, struct strings *set)
{
	(void)arena, (void)verdict, (void)set;
	return 0;
}

#include "system-has.h"

#include <cmocka.h>

/* ---- what the step calls beyond its own parts -------------------------------------------------------------------- */

static char gathered[256];              /* the names of what was called, in order */
static const char *refusing;            /* the one that refuses; or NULL */
static struct places found;             /* the names to mask */
static struct host_tools tools;
static const char *masked_name;         /* what of the toolchains is masked; or NULL */

static int gather(const char *name, struct cordon_error *err)
{
	strcat(gathered, *gathered ? " " : "");
	strcat(gathered, name);
	return refusing && !strcmp(refusing, name) ? (fail)(err, CORDON_E_CAPABILITY_DENIED, 0, NULL, "refused") : 0;
}

uint64_t handle_mounts(struct cordon *cordon, bool again)
{
	(void)cordon;
	assert_true(again);
	return 1;
}

int driver_landlock_abi(void)
{
	return 5;
}

uint32_t driver_inside_uid(void)
{
	return 1000;
}

uint32_t driver_inside_gid(void)
{
	return 1000;
}

int host_base_view(struct arena *arena, struct host_view *view, const struct strings *extra, uint64_t mounts,
                   struct host_entries *ret_entries, struct cordon_error *err)
{
	(void)arena, (void)view, (void)extra, (void)mounts;
	*ret_entries = (struct host_entries){ 0 };
	return gather("view", err);
}

const char *host_view_user(struct arena *arena, struct host_view *view, uint64_t mounts, unsigned uid)
{
	(void)arena, (void)view, (void)mounts, (void)uid;
	return "user";
}

int host_tools_find(struct arena *arena, struct host_tools_kept *kept, const struct host_tools_request *request,
                    struct host_tools *ret_tools, struct cordon_error *err)
{
	(void)kept;
	/* A toolchain in what the command can write is not shown for it. */
	assert_true(strings_find(request->writable, request->workspace) >= 0);
	*ret_tools = tools;
	if (masked_name) {
		const struct place place = { .path = masked_name };
		assert_int_equal(places_add(arena, &ret_tools->masked, &place), 0);
	}
	return gather("tools", err);
}

int host_program_parts(struct arena *arena, const char *program, struct places *interpreters, struct cordon_error *err)
{
	(void)arena, (void)program, (void)interpreters;
	return gather("program", err);
}

int host_library_directories(struct arena *arena, struct strings *ret_directories, struct cordon_error *err)
{
	(void)arena, (void)ret_directories;
	return gather("libraries", err);
}

int trees_find(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	assert_string_equal(trees->facts.workspace.path, input->workspace.path);
	input->masked = found;
	return gather("names", err);
}

int trees_keep_read_only(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	(void)trees, (void)input;
	return gather("read-only", err);
}

int trees_mask_whole_view(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	(void)trees, (void)input;
	return gather("whole-view", err);
}

int own_files_keep(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	(void)trees, (void)input;
	return gather("own-files", err);
}

int scratch_make(struct arena *arena, const char *data_dir, const char *id, const char **ret_path, int *ret_fd,
                 struct cordon_error *err)
{
	(void)ret_fd;
	*ret_path = arena_printf(arena, "%s/scratch/%s", data_dir, id);
	return gather("scratch", err);
}

const struct config_files *config_store_files(const struct config_store *store)
{
	static const struct config_files files;
	(void)store;
	return &files;
}

static char path_variable[] = "PATH=/usr/bin:/bin", secret_variable[] = "TOKEN=hunter2";
static char *environment[] = { path_variable, secret_variable, NULL };

char *const *request_environment(const struct cordon_request *request)
{
	(void)request;
	return environment;
}

const char *request_variable(const struct cordon_request *request, const char *name)
{
	(void)request, (void)name;
	return NULL;
}

/* ---- a request whose steps 1 to 3 are taken ---------------------------------------------------------------------- */

struct ground {
	struct arena arena;
	char top[32];
	struct cordon cordon;
	struct cordon_request request;
	struct config config;
	struct session_record *record;
	struct driver driver;
	struct denials denials;
	struct walk_facts facts;
	struct walk_held held;
	struct verdict verdict;
	struct trees *trees;
	struct cordon_error err;
};

static char *in(struct ground *ground, const char *name)
{
	return arena_printf(&ground->arena, "%s/%s", ground->top, name);
}

static int set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->top, "/tmp/cordon-step-XXXXXX");
	assert_non_null(mkdtemp(ground->top));
	assert_int_equal(mkdir(in(ground, "work"), 0700), 0);
	assert_int_equal(mkdir(in(ground, "home"), 0700), 0);
	*gathered = '\0';
	refusing = masked_name = NULL;
	found = (struct places){ 0 };
	tools = (struct host_tools){ 0 };
	ground->cordon.data_dir = in(ground, "data");
	strings_add(&ground->arena, &ground->request.argv, "sh");
	ground->driver = (struct driver){ .name = "test",
		                          .private_root = true,
		                          .network_namespace = true,
		                          .answers_offline = true,
		                          .keeps_names = true };
	ground->facts = (struct walk_facts){ .arena = &ground->arena,
		                             .cordon = &ground->cordon,
		                             .request = &ground->request,
		                             .audit_id = "AUDIT",
		                             .denials = &ground->denials };
	ground->held = (struct walk_held){ .use_fd = -1, .home_fd = -1, .tmp_fd = -1, .scratch_fd = -1 };
	ground->verdict.session = (struct verdict_session){
		.id = "s", .config = &ground->config, .driver = &ground->driver, .home = in(ground, "home"),
		.workspace = { .path = in(ground, "work"), .is_directory = true }, .workspace_fd = -1,
	};
	ground->verdict.cwd = (struct verdict_cwd){ ground->verdict.session.workspace.path, -1 };
	ground->verdict.grants.set =
		(struct capability_set){ .spawn = true, .limits = { .memory_bytes = 1000000, .wall_ms = 60000 } };
	*state = ground;
	return 0;
}

static int tear_down(void **state)
{
	struct ground *ground = *state;
	remove_tree(AT_FDCWD, ground->top);
	arena_free(&ground->arena);
	free(ground);
	return 0;
}

static int take(struct ground *ground)
{
	*gathered = '\0';
	memset(&ground->err, 0, sizeof(ground->err));
	ground->verdict.profile = (struct profile){ 0 };
	return profile_step(&ground->facts, &ground->held, &ground->verdict, &ground->trees, &ground->verdict.profile,
	                    &ground->err);
}

static const struct profile *assert_taken(struct ground *ground)
{
	if (take(ground) < 0)
		fail_msg("%s: %s", ground->err.subject, ground->err.reason);
	return &ground->verdict.profile;
}

static const struct mount_op *mount_at(const struct profile *profile, enum mount_kind kind, const char *target)
{
	for (size_t i = 0; i < profile->mounts.count; i++)
		if (profile->mounts.ops[i].kind == kind && !strcmp(profile->mounts.ops[i].target, target))
			return &profile->mounts.ops[i];
	return NULL;
}

static const char *variable(const struct profile *profile, const char *name)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < profile->environment.count; i++)
		if (!(HAS_CASE ? strncmp : strncasecmp)(profile->environment.items[i], name, length) &&
		    profile->environment.items[i][length] == '=')
			return profile->environment.items[i] + length + 1;
	return NULL;
}

/* ---- what goes in ------------------------------------------------------------------------------------------------ */

static void test_the_verdict_is_in_the_profile(void **state)
{
	struct ground *ground = *state;
	const struct profile *profile = assert_taken(ground);
	assert_string_equal(profile->driver, "test");
	assert_string_equal(profile->session_id, "s");
	assert_string_equal(profile->sandbox_id, "AUDIT");
	assert_string_equal(profile->cwd, in(ground, "work"));
	assert_string_equal(profile->argv.items[0], "sh");
	assert_int_equal(profile->limits.memory_bytes, 1000000);
	assert_true(profile->spawn);
	assert_non_null(mount_at(profile, MOUNT_BIND, in(ground, "work")));
	/* A home in memory. */
	assert_non_null(mount_at(profile, MOUNT_SCRATCH, in(ground, "home")));
	assert_null(ground->held.scratch);
}

static void test_what_was_granted_is_mounted(void **state)
{
	struct ground *ground = *state;
	const struct place read = { .path = "/data/read", .is_directory = true },
			   write = { .path = "/data/write", .is_directory = true };
	places_add(&ground->arena, &ground->verdict.grants.reads, &read);
	places_add(&ground->arena, &ground->verdict.grants.writes, &write);
	const struct profile *profile = assert_taken(ground);
	assert_true(mount_at(profile, MOUNT_BIND, "/data/read")->flags & MOUNT_READ_ONLY);
	assert_false(mount_at(profile, MOUNT_BIND, "/data/write")->flags & MOUNT_READ_ONLY);
	assert_null(mount_at(profile, MOUNT_BIND, "/data"));
}

static void test_names_that_were_found_are_masked(void **state)
{
	struct ground *ground = *state;
	const struct place secret = { .path = in(ground, "work/.env") };
	places_add(&ground->arena, &found, &secret);
	assert_non_null(mount_at(assert_taken(ground), MOUNT_MASK, in(ground, "work/.env")));
}

static void test_a_toolchains_masked_name_is_shown_where_it_was_granted(void **state)
{
	struct ground *ground = *state;
	masked_name = "/opt/tool/.npmrc";
	assert_non_null(mount_at(assert_taken(ground), MOUNT_MASK, masked_name));
	strings_add(&ground->arena, &ground->verdict.grants.by_name, masked_name);
	assert_null(mount_at(assert_taken(ground), MOUNT_MASK, masked_name));
}

/* ---- the order --------------------------------------------------------------------------------------------------- */

static void test_the_order_of_what_is_gathered(void **state)
{
	struct ground *ground = *state;
	static const char *const order[] = { "view", "names", "read-only", "own-files", "tools", "whole-view" };
	assert_taken(ground);
	assert_string_equal(gathered, "view names read-only own-files tools whole-view");
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		refusing = order[i];
		ground->trees = NULL;
		assert_int_equal(take(ground), -1);
		assert_string_equal(ground->err.reason, "refused");
		/* For the caller to free. */
		assert_non_null(ground->trees);
		assert_string_equal(strrchr(gathered, *order[i]) ? strstr(gathered, order[i]) : "", order[i]);
	}
}

static void test_parts_of_programs_where_only_these_may_run(void **state)
{
	struct ground *ground = *state;
	const struct place program = { .path = "/usr/bin/git" };
	places_add(&ground->arena, &ground->verdict.grants.programs, &program);
	assert_taken(ground);
	assert_non_null(strstr(gathered, "tools program libraries"));
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

static void test_the_environment(void **state)
{
	struct ground *ground = *state;
	const struct profile *profile = assert_taken(ground);
	assert_string_equal(variable(profile, "PATH"), "/usr/bin:/bin");
	assert_null(variable(profile, "TOKEN"));
	strings_add(&ground->arena, &ground->verdict.grants.env_pass, "TOKEN");
	strings_add(&ground->arena, &ground->config.env_set, "MODE=ci");
	strings_add(&ground->arena, &ground->request.env, "MODE=local");
	profile = assert_taken(ground);
	assert_string_equal(variable(profile, "TOKEN"), "hunter2");
	assert_string_equal(variable(profile, "MODE"), "local");
	/* A profile that is printed has no values. */
	ground->facts.dry = true;
	assert_string_equal(variable(assert_taken(ground), "TOKEN"), ENV_HIDDEN);
}

static uint16_t loopback_port(const struct sandbox *sandbox)
{
	(void)sandbox;
	return 0;
}

/* A port and a token that are known once the walls are raised; nothing has them before. */
static void test_a_proxy_on_the_machines_loopback(void **state)
{
	struct ground *ground = *state;
	ground->driver.answers_offline = false;
	ground->driver.loopback_port = loopback_port;
	assert_null(variable(assert_taken(ground), "HTTP_PROXY"));
	ground->verdict.grants.set.network = NETWORK_HOSTS;
	strings_add(&ground->arena, &ground->verdict.grants.set.hosts, "example.com:443");
	for (int one_off = 0; one_off < 2; one_off++) {
		ground->verdict.session.one_off = one_off;
		const struct profile *profile = assert_taken(ground);
		assert_string_equal(variable(profile, "HTTP_PROXY"), "http://cordon:(token)@127.0.0.1:(port)");
		assert_null(variable(profile, "NO_PROXY"));
		assert_true(profile->egress.is_on_loopback);
		assert_int_equal(profile->egress.count, 1);
	}
}

static void test_a_proxy_where_something_answers(void **state)
{
	struct ground *ground = *state;
	struct capability_set *set = &ground->verdict.grants.set;
	/* To say that there is no network. */
	const struct profile *profile = assert_taken(ground);
	assert_string_equal(variable(profile, "HTTP_PROXY"), EGRESS_PROXY_URL);
	assert_true(profile->egress.is_offline);
	ground->driver.answers_offline = false;
	profile = assert_taken(ground);
	assert_null(variable(profile, "HTTP_PROXY"));
	assert_int_equal(profile->egress.count, 0);
	set->network = NETWORK_HOSTS;
	strings_add(&ground->arena, &set->hosts, "example.com:443");
	profile = assert_taken(ground);
	/* In a session's sandbox each command has an address of its own at the proxy. */
	const char *own = variable(profile, "HTTP_PROXY");
	assert_non_null(own);
	assert_string_not_equal(own, EGRESS_PROXY_URL);
	assert_false(profile->egress.is_offline);
	ground->verdict.session.one_off = true;
	profile = assert_taken(ground);
	assert_string_equal(variable(profile, "HTTP_PROXY"), EGRESS_PROXY_URL);
	assert_true(profile->egress.count > 0);
	set->network = NETWORK_ALL;
	profile = assert_taken(ground);
	assert_null(variable(profile, "HTTP_PROXY"));
	assert_int_equal(profile->egress.count, 0);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

static void test_without_a_private_root(void **state)
{
	struct ground *ground = *state;
	ground->driver.private_root = false;
	const struct profile *profile = assert_taken(ground);
	const char *scratch = in(ground, "data/scratch/AUDIT");
	assert_string_equal(ground->held.scratch, scratch);
	assert_string_equal(profile->home, scratch);
	assert_string_equal(variable(profile, "TMPDIR"), scratch);
	/* A session has its own, which stays. */
	ground->verdict.session.tmp = (struct place){ .path = in(ground, "tmp"), .is_directory = true };
	ground->held.scratch = NULL;
	profile = assert_taken(ground);
	assert_null(ground->held.scratch);
	assert_string_equal(variable(profile, "TMPDIR"), in(ground, "tmp"));
	assert_null(strstr(gathered, "scratch"));
	/* A dry walk makes none. */
	ground->verdict.session.tmp = (struct place){ 0 };
	ground->facts.dry = true;
	assert_taken(ground);
	assert_null(strstr(gathered, "scratch"));
}

static void test_the_tmp_of_a_session(void **state)
{
	struct ground *ground = *state;
	ground->verdict.session.tmp = (struct place){ .path = "/data/tmp", .is_directory = true };
	ground->verdict.session.workspace.path = "/somewhere/work";
	ground->verdict.session.home = "/somewhere/home";
	assert_string_equal(mount_at(assert_taken(ground), MOUNT_BIND, "/tmp")->source, "/data/tmp");
	/* A driver that follows links in it when it makes mount points gets one in memory where there would be such
	 * points. */
	ground->driver.keeps_names = false;
	assert_string_equal(mount_at(assert_taken(ground), MOUNT_BIND, "/tmp")->source, "/data/tmp");
	ground->verdict.session.workspace.path = "/tmp/work";
	assert_null(mount_at(assert_taken(ground), MOUNT_BIND, "/tmp"));
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void test_the_program_that_was_judged_is_the_one_that_starts(void **state)
{
	struct ground *ground = *state;
	struct place *program = &ground->verdict.grants.program;
	*program = (struct place){ .path = "/usr/bin/dash" };
	assert_string_equal(assert_taken(ground)->candidates.items[0], "/usr/bin/dash");
	/* A script sees the name it was found by, */
	program->alias = "/usr/bin/sh";
	assert_string_equal(assert_taken(ground)->candidates.items[0], "/usr/bin/sh");
	/* unless the command could make that name mean something else. */
	program->alias = in(ground, "work/sh");
	assert_string_equal(assert_taken(ground)->candidates.items[0], "/usr/bin/dash");
	program->alias = "/proc/self/exe";
	assert_string_equal(assert_taken(ground)->candidates.items[0], "/usr/bin/dash");
}

static void test_a_program_in_the_home_must_be_granted(void **state)
{
	struct ground *ground = *state;
	ground->verdict.grants.program = (struct place){ .path = in(ground, "home/bin/tool") };
	assert_int_equal(take(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_PROGRAM_NOT_FOUND);
	assert_string_equal(ground->err.boundary, "filesystem");
	assert_non_null(strstr(ground->err.remediation, in(ground, "home/bin/tool")));
	const struct place bin = { .path = in(ground, "home/bin"), .is_directory = true };
	places_add(&ground->arena, &ground->verdict.grants.reads, &bin);
	assert_taken(ground);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_the_verdict_is_in_the_profile),
		CASE(test_what_was_granted_is_mounted),
		CASE(test_names_that_were_found_are_masked),
		CASE(test_a_toolchains_masked_name_is_shown_where_it_was_granted),
		CASE(test_the_order_of_what_is_gathered),
		CASE(test_parts_of_programs_where_only_these_may_run),
		CASE(test_the_environment),
		CASE(test_a_proxy_on_the_machines_loopback),
		CASE(test_a_proxy_where_something_answers),
		CASE(test_without_a_private_root),
		CASE(test_the_tmp_of_a_session),
		CASE(test_the_program_that_was_judged_is_the_one_that_starts),
		CASE(test_a_program_in_the_home_must_be_granted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
