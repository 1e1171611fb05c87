/* Step 1: the session, its workspace, home and /tmp, the policy and the driver; in which order it refuses, and what is
 * made when. The configuration and the driver are this test's; the registry and the directories are real. */
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

#include "approval/gate.h"
#include "audit/ledger.h"
#include "base/remove.h"
#include "config/config.h"
#include "session/current.h"
#include "session/jobs.h"
#include "session/registry.h"
#include "session/session-row.h"
#include "walk.h"
#include "system-has.h"

#include <cmocka.h>

/* ---- what the step calls beyond its own parts ------------------------------------------------------------------- */

const char *const view_names[VIEW_MAX] = { "system", "host-readonly", "bare" };
static struct config config;
static const char *current, *home_variable;
static char asked_driver[32];
static int takes;
static enum config_keeping last_keeping;
static bool end_meanwhile;              /* the session is ended between its first look and the job's place */
static const char *data_dir;

int config_store_take(struct config_store *store, const char *session_id, int workspace_fd, const char *workspace_path,
                      enum config_keeping keeping, uint64_t mounts, const struct config **ret_config,
                      struct cordon_error *err)
{
	(void)store, (void)session_id, (void)workspace_path, (void)mounts, (void)err;
	/* First without the workspace, and nothing is kept; then with it. */
	assert_true(takes++ ? true : workspace_fd < 0 && keeping == CONFIG_KEEP_NOTHING);
	last_keeping = keeping;
	*ret_config = &config;
	return 0;
}

int config_builtin(const struct config **ret_config, struct cordon_error *err)
{
	(void)err;
	*ret_config = &config;
	return 0;
}

void config_unref(const struct config *gone)
{
	(void)gone;
}

const char *current_session(void)
{
	return current;
}

void ledger_set_sync(struct ledger *ledger, bool sync_disk)
{
	(void)ledger, (void)sync_disk;
}

void gate_sweep(const struct gate *gate)
{
	(void)gate;
}

int session_row_open(struct ledger *ledger, struct arena *arena, const char *data, const char *id,
                     const struct session_record *first, struct session_record *ret_record, bool *ret_made,
                     struct cordon_error *err)
{
	(void)ledger;
	return registry_open(arena, data, id, first, ret_record, ret_made, err);
}

bool session_is_idle(const char *data, const char *id, uint64_t idle_expiry_s)
{
	(void)data, (void)id, (void)idle_expiry_s;
	return false;
}

int session_row_end_idle(struct ledger *ledger, const char *data, const char *id, bool *ret_ended,
                         struct cordon_error *err)
{
	(void)ledger, (void)data, (void)id, (void)ret_ended, (void)err;
	return -1;
}

static int end_record(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)err;
	record->state = *(enum session_state *)arg;
	return 0;
}

static void set_state(const char *id, enum session_state state)
{
	struct arena arena = { 0 };
	struct session_record record;
	struct cordon_error err;
	assert_int_equal(registry_change(&arena, data_dir, id, end_record, &state, &record, &err), 0);
	arena_free(&arena);
}

int jobs_enter(const char *data, const char *session_id, const char *id, struct job_place *ret_place,
               struct cordon_error *err)
{
	(void)data, (void)id, (void)ret_place, (void)err;
	if (end_meanwhile)
		set_state(session_id, SESSION_ENDED);
	return 0;
}

const char *request_variable(const struct cordon_request *request, const char *name)
{
	(void)request;
	return !strcmp(name, "HOME") ? home_variable : NULL;
}

uint64_t handle_mounts(struct cordon *cordon, bool again)
{
	(void)cordon, (void)again;
	return 1;
}

static const struct driver test_driver = { .name = "test" };

const struct driver *driver_default(void)
{
	return &test_driver;
}

int probe_driver(struct cordon *cordon, const char *name, bool dry, const struct driver **ret_driver,
                 struct cordon_error *err)
{
	(void)cordon, (void)dry, (void)err;
	snprintf(asked_driver, sizeof(asked_driver), "%s", name);
	*ret_driver = &test_driver;
	return 0;
}

/* ---- a request --------------------------------------------------------------------------------------------------- */

struct ground {
	struct arena arena;
	char top[32];
	struct cordon cordon;
	struct cordon_request request;
	struct denials denials;
	struct walk_facts facts;
	struct walk_held held;
	struct verdict_session session;
	struct cordon_error err;
};

static char *in(struct ground *ground, const char *name)
{
	return arena_printf(&ground->arena, "%s/%s", ground->top, name);
}

static int set_up(void **state)
{
	static const char *const directories[] = { "work", "work/sub", "home", "other" };
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->top, "/tmp/cordon-step-XXXXXX");
	assert_non_null(mkdtemp(ground->top));
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		assert_int_equal(mkdir(in(ground, directories[i]), 0700), 0);
	config = (struct config){ .enabled = true };
	current = NULL;
	home_variable = in(ground, "home");
	end_meanwhile = false;
	*asked_driver = '\0';
	data_dir = ground->cordon.data_dir = in(ground, "data");
	ground->facts = (struct walk_facts){ .arena = &ground->arena,
		                             .cordon = &ground->cordon,
		                             .request = &ground->request,
		                             .audit_id = "AUDIT",
		                             .denials = &ground->denials };
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
	takes = 0;
	memset(&ground->err, 0, sizeof(ground->err));
	ground->session = (struct verdict_session){ .workspace_fd = -1 };
	ground->held = (struct walk_held){ .use_fd = -1, .home_fd = -1, .tmp_fd = -1, .scratch_fd = -1 };
	return session_step(&ground->facts, &ground->held, &ground->session, &ground->err);
}

static void leave(struct ground *ground)
{
	session_release(&ground->facts, &ground->held, &ground->session);
}

static void assert_taken(struct ground *ground)
{
	if (take(ground) < 0)
		fail_msg("%s: %s", ground->err.subject, ground->err.reason);
}

static void assert_refused(struct ground *ground, enum cordon_class class, const char *reason)
{
	assert_int_equal(take(ground), -1);
	if (ground->err.class != (int32_t)class || !strstr(ground->err.reason, reason))
		fail_msg("%d: <%s> is not in <%s>", (int)ground->err.class, reason, ground->err.reason);
	assert_true(*ground->err.remediation);
	leave(ground);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* ---- one-offs ---------------------------------------------------------------------------------------------------- */

static void test_a_one_off_has_a_workspace_of_its_own(void **state)
{
	struct ground *ground = *state;
	assert_taken(ground);
	const struct verdict_session *session = &ground->session;
	assert_true(session->one_off && session->own_workspace && ground->held.disposable);
	assert_string_equal(session->id, "AUDIT");
	assert_string_equal(session->home, session->workspace.path);
	assert_null(session->home_source);
	assert_null(session->tmp.path);
	assert_string_equal(asked_driver, "test");
	assert_int_equal(last_keeping, CONFIG_KEEP);
	const char *path = session->workspace.path;
	assert_true(is_there(path));
	leave(ground);
	assert_false(is_there(path));
	assert_false(is_there(in(ground, "data/sessions")));
}

static void test_a_one_off_in_a_named_directory(void **state)
{
	struct ground *ground = *state;
	ground->request.workspace = in(ground, "work");
	assert_taken(ground);
	assert_string_equal(ground->session.workspace.path, in(ground, "work"));
	assert_false(ground->session.own_workspace || ground->held.disposable);
	/* The home is in memory, at the path of the caller's. */
	assert_string_equal(ground->session.home, in(ground, "home"));
	assert_null(ground->session.home_source);
	leave(ground);
	assert_true(is_there(in(ground, "work")));
}

static void test_the_top_of_a_git_tree(void **state)
{
	struct ground *ground = *state;
	assert_int_equal(mkdir(in(ground, "work/.git"), 0700), 0);
	assert_int_equal(close(open(in(ground, "work/.git/HEAD"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	ground->request.workspace = in(ground, "work/sub");
	assert_taken(ground);
	assert_string_equal(ground->session.workspace.path, in(ground, "work/sub"));
	leave(ground);
	ground->request.find_top = true;
	assert_taken(ground);
	assert_string_equal(ground->session.workspace.path, in(ground, "work"));
	assert_string_equal(ground->session.here, in(ground, "work/sub"));
	leave(ground);
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

static void test_a_session_keeps_its_directories(void **state)
{
	struct ground *ground = *state;
	struct stat info;
	ground->request.session = "s";
	ground->request.workspace = in(ground, "work");
	assert_taken(ground);
	const struct verdict_session first = ground->session;
	assert_false(first.one_off);
	assert_string_equal(first.id, "s");
	assert_int_equal(fstat(ground->held.tmp_fd, &info), 0);
	assert_true(!HAS_MODES || (info.st_mode & 07777) == 01777);
	assert_true(ground->held.use_fd >= 0 && ground->held.home_fd >= 0);
	leave(ground);
	/* Its next command need not name the workspace. */
	ground->request.workspace = NULL;
	assert_taken(ground);
	assert_string_equal(ground->session.workspace.path, in(ground, "work"));
	assert_string_equal(ground->session.home_source, first.home_source);
	assert_string_equal(ground->session.tmp.path, first.tmp.path);
	leave(ground);
	assert_true(is_there(first.home_source) && is_there(first.tmp.path));
	/* Another one would be another session. */
	ground->request.workspace = in(ground, "other");
	assert_int_equal(take(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_INVALID_REQUEST);
	leave(ground);
}

static void test_a_command_that_shares_nothing(void **state)
{
	struct ground *ground = *state;
	ground->request.session = "s";
	ground->request.fresh = true;
	assert_taken(ground);
	assert_null(ground->session.tmp.path);
	assert_int_equal(ground->held.tmp_fd, -1);
	leave(ground);
}

static void test_the_current_session(void **state)
{
	struct ground *ground = *state;
	current = "entered";
	assert_taken(ground);
	assert_string_equal(ground->session.id, "entered");
	leave(ground);
	ground->request.session = "named";
	assert_taken(ground);
	assert_string_equal(ground->session.id, "named");
	leave(ground);
	/* A probe belongs to no session. */
	ground->request.session = NULL;
	ground->facts.probe = true;
	assert_taken(ground);
	assert_true(ground->session.one_off);
	leave(ground);
}

static void test_a_session_that_may_not_run(void **state)
{
	struct ground *ground = *state;
	ground->request.session = "s";
	assert_taken(ground);
	leave(ground);
	set_state("s", SESSION_PAUSED);
	assert_refused(ground, CORDON_E_SESSION_PAUSED, "paused");
	set_state("s", SESSION_ENDED);
	assert_refused(ground, CORDON_E_SESSION_ENDED, "ended");
}

static void test_a_workspace_that_became_a_link(void **state)
{
	struct ground *ground = *state;
	ground->request.session = "s";
	ground->request.workspace = in(ground, "work");
	assert_taken(ground);
	leave(ground);
	ground->request.workspace = NULL;
	assert_int_equal(rename(in(ground, "work"), in(ground, "moved")), 0);
	assert_int_equal(symlink("other", in(ground, "work")), 0);
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "replaced by a symbolic link");
}

static void test_a_job(void **state)
{
	struct ground *ground = *state;
	struct job_place place = JOB_PLACE_NONE;
	ground->request.job = &place;
	assert_refused(ground, CORDON_E_INVALID_REQUEST, "a job belongs to a session");
	ground->request.session = "s";
	assert_taken(ground);
	assert_ptr_equal(ground->held.job, &place);
	assert_int_equal(last_keeping, CONFIG_KEEP_UNSAID);
	leave(ground);
	/* The session is looked at once more when the job has its place. */
	end_meanwhile = true;
	assert_refused(ground, CORDON_E_SESSION_ENDED, "ended");
}

/* ---- the policy -------------------------------------------------------------------------------------------------- */

static void test_the_driver_of_the_configuration(void **state)
{
	struct ground *ground = *state;
	config.degrade = true;
	assert_taken(ground);
	leave(ground);
	assert_string_equal(asked_driver, "auto");
	config.driver = "landlock";
	assert_taken(ground);
	leave(ground);
	assert_string_equal(asked_driver, "landlock");
	/* A one-off may have any. */
	ground->request.driver = "local";
	assert_taken(ground);
	leave(ground);
	assert_string_equal(asked_driver, "local");
}

static void test_a_session_has_no_weaker_walls(void **state)
{
	struct ground *ground = *state;
	static const char weaker[] = "cannot have weaker walls";
	ground->request.session = "s";
	config.driver = "landlock";
	ground->request.driver = "local";
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, weaker);
	assert_string_equal(ground->err.subject, "driver");
	ground->request.driver = "test";
	assert_taken(ground);
	leave(ground);
	ground->request.driver = NULL;
	ground->request.view_named = true;
	ground->request.view = VIEW_HOST_READONLY;
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, weaker);
	assert_string_equal(ground->err.subject, "view");
	ground->request.view = VIEW_BARE;
	assert_taken(ground);
	assert_int_equal(ground->session.view, VIEW_BARE);
	leave(ground);
	config.choose_toolchains = true;
	strings_add(&ground->arena, &ground->request.toolchains, "node");
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, weaker);
	strings_add(&ground->arena, &config.toolchains, "node");
	assert_taken(ground);
	leave(ground);
}

static void test_workspaces_of_others_in_the_whole_view(void **state)
{
	struct ground *ground = *state;
	config.view = "host-readonly";
	config.workspace_root = in(ground, "other");
	assert_refused(ground, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, "cannot be hidden");
	config.workspace_root = NULL;
	assert_taken(ground);
	leave(ground);
}

/* ---- the order of refusal, and what is made ---------------------------------------------------------------------- */

static void test_nothing_is_made_where_the_sandbox_is_off(void **state)
{
	struct ground *ground = *state;
	config.enabled = false;
	ground->request.session = "s";
	assert_refused(ground, CORDON_E_SANDBOX_DISABLED, "switched off");
	assert_false(is_there(in(ground, "data")));
	/* An id that is none is refused before. */
	ground->request.session = "a\nb";
	assert_int_equal(take(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_INVALID_REQUEST);
	assert_int_equal(takes, 0);
	leave(ground);
}

static void test_a_dry_walk_makes_nothing(void **state)
{
	struct ground *ground = *state;
	ground->facts.dry = true;
	ground->request.session = "s";
	assert_taken(ground);
	assert_int_equal(ground->session.workspace_fd, -1);
	assert_int_equal(last_keeping, CONFIG_KEEP_NOTHING);
	leave(ground);
	assert_false(is_there(in(ground, "data")));
}

static void test_a_workspace_is_refused_before_a_session_is_made(void **state)
{
	struct ground *ground = *state;
	ground->request.session = "s";
	static const char *const paths[] = { "/", "/etc", "/no/such/directory" };
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		ground->request.workspace = paths[i];
		assert_int_equal(take(ground), -1);
		assert_string_equal(ground->err.subject, paths[i]);
		leave(ground);
	}
	ground->request.workspace = in(ground, "home");
	assert_int_equal(take(ground), -1);
	leave(ground);
	assert_false(is_there(in(ground, "data/sessions")));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_one_off_has_a_workspace_of_its_own), CASE(test_a_one_off_in_a_named_directory),
		CASE(test_the_top_of_a_git_tree), CASE(test_a_session_keeps_its_directories),
		CASE(test_a_command_that_shares_nothing), CASE(test_the_current_session),
		CASE(test_a_session_that_may_not_run), CASE(test_a_workspace_that_became_a_link), CASE(test_a_job),
		CASE(test_the_driver_of_the_configuration), CASE(test_a_session_has_no_weaker_walls),
		CASE(test_workspaces_of_others_in_the_whole_view), CASE(test_nothing_is_made_where_the_sandbox_is_off),
		CASE(test_a_dry_walk_makes_nothing), CASE(test_a_workspace_is_refused_before_a_session_is_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
