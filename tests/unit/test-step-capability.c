/* Step 3: what a request may reach, whom it asks about what, and in which order it refuses. The gate is this test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "approval/gate.h"
#include "base/remove.h"
#include "config/config.h"
#include "driver/machine.h"
#include "host/kernel-mounts.h"
#include "session/registry.h"
#include "walk.h"
#include "system-has.h"

/* Without credentials in the configuration. */
bool credentials_are_configured(const struct config *config)
{
	(void)config;
	return false;
}

int credentials_choose(const struct walk_facts *facts, const struct verdict_session *session, struct grants *grants,
                       struct cordon_error *err)
{
	(void)facts, (void)session, (void)grants, (void)err;
	return 0;
}

#include <cmocka.h>

/* ---- what the step calls beyond its own parts ------------------------------------------------------------------- */

static struct {
	unsigned calls;
	bool deny;
	struct gate_question question;
	struct capability_set excess;
} gate;

cordon_approver_fn approver_fn(const struct approver *approver, const struct config *config)
{
	return approver->is_client && config->approval.own_approver ? NULL : approver->fn;
}

int gate_ask(const struct gate *with, struct arena *arena, const struct config *config,
             const struct gate_question *question, struct gate_answer *ret_answer, struct cordon_error *err)
{
	(void)with, (void)arena, (void)config;
	gate.calls++;
	gate.question = *question;
	gate.excess = *question->excess;
	ret_answer->answer = CORDON_APPROVED_ONCE;
	return gate.deny ? (fail)(err, CORDON_E_CAPABILITY_DENIED, 0, NULL, "the human said no") : 0;
}

bool driver_groups_show(const char *path, int known_fd)
{
	(void)known_fd;
	return strstr(path, "/control-groups") != NULL;
}

static int mounts_unreadable;   /* an errno, or 0 */

int kernel_mounts_beneath(const char *path, const char **ret_type)
{
	*ret_type = strstr(path, "/has-debugfs") ? "debugfs" : NULL;
	return -mounts_unreadable;
}

#ifdef _WIN32
#define PROGRAM "cmd"
#define PROGRAM_FILE "**/cmd.exe"
#define PROGRAM_DIRECTORY "/c/windows/system32"
#else
#define PROGRAM "sh"
#define PROGRAM_FILE "**/sh"
#define PROGRAM_DIRECTORY "/bin"
#endif
static char search_path[] = "PATH=/c/none:" PROGRAM_DIRECTORY, *environment[] = { search_path, NULL };

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

/* ---- a request of a session -------------------------------------------------------------------------------------- */

struct ground {
	struct arena arena;
	char top[32];
	struct cordon cordon;
	struct cordon_request request;
	struct config config;
	struct session_record record;
	struct driver driver;
	struct walk_facts facts;
	struct walk_held held;
	struct verdict verdict;
	bool asked;
	struct cordon_error err;
};

static char *in(struct ground *ground, const char *name)
{
	return arena_printf(&ground->arena, "%s/%s", ground->top, name);
}

static void make_file(struct ground *ground, const char *path)
{
	int fd = open(in(ground, path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static int set_up(void **state)
{
	static const char *const directories[] = { "work", "data", "data/a",         "data/ab",
		                                   "out",  "own",  "control-groups", "has-debugfs" };
	struct ground *ground = calloc(1, sizeof(*ground));
	struct verdict_session *session = &ground->verdict.session;
	memset(&gate, 0, sizeof(gate));
	mounts_unreadable = 0;
	strcpy(ground->top, "/tmp/cordon-step-XXXXXX");
	assert_non_null(mkdtemp(ground->top));
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		assert_int_equal(mkdir(in(ground, directories[i]), 0700), 0);
	make_file(ground, "data/.env");
	make_file(ground, "out/plain");
	ground->cordon = (struct cordon){ .data_dir = in(ground, "own"), .approver = { .interrupt_fd = -1 } };
	strings_add(&ground->arena, &ground->request.argv, PROGRAM);
	ground->config.baseline.spawn = true;
	ground->config.baseline.limits =
		(struct limits){ .memory_bytes = 1000, .wall_ms = 60000, .stdout_bytes = 4096 };
	strings_add(&ground->arena, &ground->config.baseline.deny, "**/.env");
	strings_add(&ground->arena, &ground->config.baseline.protect, ".git/hooks");
	ground->driver = (struct driver){ .name = "test", .holds_writes = true };
	*session = (struct verdict_session){
		.id = "s", .record = &ground->record, .config = &ground->config, .driver = &ground->driver,
		.workspace = { .path = in(ground, "work"), .is_directory = true }, .workspace_fd = -1,
	};
	ground->verdict.cwd = (struct verdict_cwd){ session->workspace.path, -1 };
	ground->facts = (struct walk_facts){
		.arena = &ground->arena, .cordon = &ground->cordon, .request = &ground->request, .audit_id = "AUDIT"
	};
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
	memset(&ground->err, 0, sizeof(ground->err));
	return capability_step(&ground->facts, &ground->held, &ground->verdict, &ground->verdict.grants, &ground->asked,
	                       &ground->err);
}

static void assert_taken(struct ground *ground, unsigned questions)
{
	if (take(ground) < 0)
		fail_msg("%s: %s", ground->err.subject, ground->err.reason);
	assert_int_equal(gate.calls, questions);
	assert_int_equal(ground->asked, questions > 0);
	gate.calls = 0;
}

static void assert_refused(struct ground *ground, enum cordon_class class, const char *reason)
{
	assert_int_equal(take(ground), -1);
	assert_int_equal(ground->err.class, class);
	if (!strstr(ground->err.reason, reason))
		fail_msg("<%s> is not in <%s>", reason, ground->err.reason);
	gate.calls = 0;
}

static void want(struct ground *ground, struct strings *list, const char *path)
{
	*list = (struct strings){ 0 };
	assert_int_equal(strings_add(&ground->arena, list, in(ground, path)), 0);
}

/* What a human approved, and what the path was then. */
static void approve(struct ground *ground, const char *path, bool writable)
{
	struct stat info;
	struct session_grant *grant = arena_alloc(&ground->arena, sizeof(*grant));
	*grant = (struct session_grant){ .card = "CARD", .hash = "", .time = "" };
	assert_int_equal(stat(in(ground, path), &info), 0);
	const struct place place = { .path = in(ground, path), .device = info.st_dev, .inode = info.st_ino,
	                             .is_directory = S_ISDIR(info.st_mode) };
	strings_add(&ground->arena, writable ? &grant->set.fs_write : &grant->set.fs_read, place.path);
	places_add(&ground->arena, &grant->places, &place);
	ground->record.grants = grant;
	ground->record.grant_count = 1;
}

/* ---- within ------------------------------------------------------------------------------------------------------ */

static void test_the_baseline_needs_no_asking(void **state)
{
	struct ground *ground = *state;
	assert_taken(ground, 0);
	assert_true(ground->verdict.grants.set.spawn);
	assert_int_equal(ground->verdict.grants.reads.count, 0);
	want(ground, &ground->config.baseline.fs_read, "data");
	assert_taken(ground, 0);
	assert_string_equal(ground->verdict.grants.reads.items[0].path, in(ground, "data"));
	want(ground, &ground->request.granted.fs_read, "data/a");
	assert_taken(ground, 0);
	ground->request.no_spawn = true;
	assert_taken(ground, 0);
	assert_false(ground->verdict.grants.set.spawn);
}

static void test_more_than_the_baseline_is_asked_about(void **state)
{
	struct ground *ground = *state;
	want(ground, &ground->config.baseline.fs_read, "data/a");
	want(ground, &ground->request.granted.fs_read, "data/ab");
	assert_taken(ground, 1);
	assert_int_equal(gate.excess.fs_read.count, 1);
	assert_string_equal(gate.excess.fs_read.items[0], in(ground, "data/ab"));
	assert_string_equal(gate.question.excess_name, "fs_read");
	assert_string_equal(gate.question.session_id, "s");
	assert_string_equal(gate.question.tool, "run");
	/* Reading is not writing. */
	ground->request.granted.fs_read = (struct strings){ 0 };
	want(ground, &ground->request.granted.fs_write, "data/a");
	assert_taken(ground, 1);
	assert_int_equal(gate.excess.fs_write.count, 1);
	gate.deny = true;
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "the human said no");
	assert_true(ground->asked);
}

static void test_an_earlier_grant_needs_no_asking(void **state)
{
	struct ground *ground = *state;
	want(ground, &ground->request.granted.fs_write, "out");
	approve(ground, "out", true);
	assert_taken(ground, 0);
	/* Granted was what it was then, not its name. */
	assert_int_equal(rename(in(ground, "out"), in(ground, "was-out")), 0);
	assert_int_equal(mkdir(in(ground, "out"), 0700), 0);
	assert_taken(ground, 1);
}

static void test_a_one_off_and_a_dry_walk_ask_nobody(void **state)
{
	struct ground *ground = *state;
	want(ground, &ground->request.granted.fs_write, "out");
	gate.deny = true;
	ground->facts.dry = true;
	assert_int_equal(take(ground), 0);
	/* It would ask. */
	assert_true(!gate.calls && ground->asked);
	assert_string_equal(ground->verdict.grants.excess.fs_write.items[0], in(ground, "out"));
	ground->facts.dry = false;
	ground->verdict.session.one_off = true;
	assert_taken(ground, 0);
	assert_string_equal(ground->verdict.grants.writes.items[0].path, in(ground, "out"));
}

/* ---- limits and network ------------------------------------------------------------------------------------------ */

static void test_limits(void **state)
{
	struct ground *ground = *state;
	const struct limits *limits = &ground->verdict.grants.set.limits;
	ground->config.usual.wall_ms = 5000;
	assert_taken(ground, 0);
	assert_int_equal(limits->wall_ms, 5000);
	assert_int_equal(limits->memory_bytes, 1000);
	/* What is asked for counts instead of the usual, up to the baseline without asking. */
	ground->request.granted.limits = (struct limits){ .wall_ms = 60000, .memory_bytes = 500 };
	assert_taken(ground, 0);
	assert_int_equal(limits->wall_ms, 60000);
	ground->request.granted.limits.wall_ms = 60001;
	assert_taken(ground, 1);
	assert_string_equal(gate.question.excess_name, "limits");
	ground->request.granted.limits = (struct limits){ 0 };
	/* The session's own, said when it was made, is what its commands usually have. */
	ground->record.has_baseline = true;
	ground->record.baseline = (struct capability_set){ .spawn = true, .limits = { .wall_ms = 7000 } };
	assert_taken(ground, 0);
	assert_int_equal(limits->wall_ms, 7000);
}

static void test_a_job_runs_longer(void **state)
{
	struct ground *ground = *state;
	struct job_place *place = arena_alloc(&ground->arena, 1024);
	ground->config.usual.wall_ms = 5000;
	ground->config.usual.job_ms = 3600000;
	ground->request.job = place;
	assert_taken(ground, 0);
	assert_int_equal(ground->verdict.grants.set.limits.wall_ms, 3600000);
}

static void test_the_network_is_narrowed_by_request(void **state)
{
	struct ground *ground = *state;
	struct grants *grants = &ground->verdict.grants;
	ground->config.baseline.network = NETWORK_ALL;
	assert_taken(ground, 0);
	assert_int_equal(grants->set.network, NETWORK_ALL);
	ground->request.granted.network = NETWORK_HOSTS;
	strings_add(&ground->arena, &ground->request.granted.hosts, "example.com:443");
	assert_taken(ground, 0);
	assert_int_equal(grants->set.network, NETWORK_HOSTS);
	assert_int_equal(grants->set.hosts.count, 1);
	ground->request.no_network = true;
	ground->request.granted = (struct capability_set){ 0 };
	assert_taken(ground, 0);
	assert_int_equal(grants->set.network, NETWORK_NONE);
}

static void test_hosts_may_be_asked_about_later(void **state)
{
	struct ground *ground = *state;
	struct grants *grants = &ground->verdict.grants;
	ground->config.baseline.network = NETWORK_HOSTS;
	strings_add(&ground->arena, &ground->config.baseline.hosts, "example.com:443");
	assert_taken(ground, 0);
	assert_null(grants->host_question);
	ground->config.approval.queue = true;
	assert_taken(ground, 0);
	assert_non_null(grants->host_question);
	assert_ptr_equal(grants->host_question->ceiling, &grants->set);
	/* A host that was approved for the session is there for its later commands. */
	struct session_grant grant = { .card = "CARD", .hash = "", .set = { .network = NETWORK_HOSTS } };
	strings_add(&ground->arena, &grant.set.hosts, "approved.example:443");
	ground->record.grants = &grant;
	ground->record.grant_count = 1;
	assert_taken(ground, 0);
	assert_int_equal(grants->set.hosts.count, 2);
	ground->verdict.session.one_off = true;
	assert_taken(ground, 0);
	assert_null(grants->host_question);
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static void test_rules_about_the_program(void **state)
{
	struct ground *ground = *state;
	struct tool_rules *rules = &ground->config.rules;
	assert_int_equal(rules_add(&ground->arena, rules, "run", "/no/such/program", RULE_DENY, "FILE:1", &ground->err),
	                 0);
	assert_taken(ground, 0);
	/* What was judged is what starts. */
	assert_non_null(ground->verdict.grants.program.path);
	assert_int_equal(rules_add(&ground->arena, rules, "run", PROGRAM_FILE, RULE_ASK, "FILE:2", &ground->err), 0);
	assert_taken(ground, 1);
	assert_non_null(strstr(gate.question.rule, "FILE:2"));
	assert_int_equal(gate.excess.fs_read.count, 0);
	rules_next_layer(rules);
	assert_int_equal(rules_add(&ground->arena, rules, "run", PROGRAM_FILE, RULE_DENY, "FILE:3", &ground->err), 0);
	want(ground, &ground->request.granted.fs_write, "out");
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "");
	assert_string_equal(ground->err.boundary, "policy");
	assert_non_null(strstr(ground->err.remediation, "FILE:3"));
	/* A rule also holds for a one-off. */
	ground->verdict.session.one_off = true;
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "");
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

static void test_a_hidden_name_is_granted_by_itself_only(void **state)
{
	struct ground *ground = *state;
	const struct strings *by_name = &ground->verdict.grants.by_name;
	want(ground, &ground->config.baseline.fs_read, "data");
	want(ground, &ground->request.granted.fs_read, "data/.env");
	assert_taken(ground, 1);
	assert_string_equal(gate.excess.fs_read.items[0], in(ground, "data/.env"));
	assert_true(strings_find(by_name, in(ground, "data/.env")) >= 0);
	/* The directory around it was granted, not the name. */
	ground->request.granted.fs_read = (struct strings){ 0 };
	assert_taken(ground, 0);
	assert_true(strings_find(by_name, in(ground, "data/.env")) < 0);
	want(ground, &ground->request.granted.fs_read, "data/.env");
	approve(ground, "data/.env", false);
	assert_taken(ground, 0);
	assert_true(strings_find(by_name, in(ground, "data/.env")) >= 0);
}

static void test_a_protected_name_is_never_granted_for_writing(void **state)
{
	struct ground *ground = *state;
	assert_int_equal(mkdir(in(ground, "data/.git"), 0700), 0);
	assert_int_equal(mkdir(in(ground, "data/.git/hooks"), 0700), 0);
	want(ground, &ground->request.granted.fs_read, "data/.git/hooks");
	assert_taken(ground, 1);
	ground->request.granted.fs_read = (struct strings){ 0 };
	want(ground, &ground->request.granted.fs_write, "data/.git/hooks");
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "a protected name");
	assert_false(ground->asked);
}

/* ---- the order of refusal ---------------------------------------------------------------------------------------- */

static void test_what_cannot_be_granted_is_refused_before_anybody_is_asked(void **state)
{
	struct ground *ground = *state;
	static const struct {
		const char *path, *reason;
	} rows[] = {
		{ "/", "cannot be granted as a whole" }, { "/proc", "cannot be granted as a whole" },
		{ "/dev", "cannot be granted as a whole" }, { "/no/such/path/anywhere", "" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ground->request.granted.fs_read = (struct strings){ 0 };
		strings_add(&ground->arena, &ground->request.granted.fs_read, rows[i].path);
		assert_int_equal(take(ground), -1);
		assert_true(!HAS_ROOT || strstr(ground->err.reason, rows[i].reason));
		assert_int_equal(gate.calls, 0);
	}
	want(ground, &ground->request.granted.fs_read, "own");
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "cordon's own data");
	want(ground, &ground->request.granted.fs_read, "control-groups");
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "control groups cannot be granted");
	want(ground, &ground->request.granted.fs_read, "has-debugfs");
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "debugfs");
	ground->request.granted.fs_read = (struct strings){ 0 };
	want(ground, &ground->request.granted.devices, "out/plain");
	assert_refused(ground, CORDON_E_INVALID_REQUEST, "not a device");
	assert_false(ground->asked);
}

static void test_mounts_that_cannot_be_read_are_not_called_mounted(void **state)
{
	struct ground *ground = *state;
	want(ground, &ground->request.granted.fs_read, "data");
	mounts_unreadable = EACCES;
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "the table of mounts cannot be read");
	mounts_unreadable = EMFILE;
	assert_refused(
		ground, CORDON_E_RESOURCE_EXHAUSTED,
		"the table of mounts cannot be read, so what is granted with it is unknown: Too many open files");
	assert_non_null(strstr(ground->err.remediation, "ulimit -n"));
}

static void test_a_link_that_the_command_can_write_grants_nothing(void **state)
{
	struct ground *ground = *state;
	assert_int_equal(symlink("../out", in(ground, "work/link")), 0);
	want(ground, &ground->request.granted.fs_write, "work/link");
	assert_refused(ground, CORDON_E_CAPABILITY_DENIED, "leads this path out of it");
	assert_int_equal(symlink("out", in(ground, "link")), 0);
	want(ground, &ground->request.granted.fs_write, "link");
	assert_taken(ground, 1);
	assert_string_equal(gate.excess.fs_write.items[0], in(ground, "out"));
}

/* ---- file tools -------------------------------------------------------------------------------------------------- */

static void test_a_file_tool_asks_for_its_path(void **state)
{
	struct ground *ground = *state;
	struct walk_tool tool = { .name = "read", .paths = { "sub/file" } };
	ground->facts.tool = &tool;
	ground->request.argv = (struct strings){ 0 };
	assert_taken(ground, 0);
	assert_int_equal(ground->verdict.grants.reads.count, 0);
	tool.paths[0] = "../out/plain";
	assert_taken(ground, 1);
	assert_string_equal(gate.excess.fs_read.items[0], in(ground, "out/plain"));
	assert_string_equal(gate.question.tool, "read");
	assert_string_equal(gate.question.program, "../out/plain");
	assert_string_equal(ground->verdict.grants.reads.items[0].path, in(ground, "out/plain"));
	approve(ground, "out", true);
	assert_taken(ground, 0);
	tool = (struct walk_tool){
		.name = "write", .paths = { in(ground, "data/new") }, .writes = true, .may_miss = true
	};
	assert_taken(ground, 1);
	assert_string_equal(gate.excess.fs_write.items[0], in(ground, "data"));
	tool.may_miss = false;
	assert_int_equal(take(ground), -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_the_baseline_needs_no_asking),
		CASE(test_more_than_the_baseline_is_asked_about),
		CASE(test_an_earlier_grant_needs_no_asking),
		CASE(test_a_one_off_and_a_dry_walk_ask_nobody),
		CASE(test_limits),
		CASE(test_a_job_runs_longer),
		CASE(test_the_network_is_narrowed_by_request),
		CASE(test_hosts_may_be_asked_about_later),
		CASE(test_rules_about_the_program),
		CASE(test_a_hidden_name_is_granted_by_itself_only),
		CASE(test_a_protected_name_is_never_granted_for_writing),
		CASE(test_what_cannot_be_granted_is_refused_before_anybody_is_asked),
		CASE(test_mounts_that_cannot_be_read_are_not_called_mounted),
		CASE(test_a_link_that_the_command_can_write_grants_nothing),
		CASE(test_a_file_tool_asks_for_its_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
