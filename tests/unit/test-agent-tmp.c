/* What an agent's session is granted of the agent's temporary directory, by what the driver can do. The library is a
 * stand-in that notes the settings; no driver of Linux keeps names without a private home, as macOS's does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "door/agent/agent.h"
#include "door/agent/agent-tmp.h"

#define SETTINGS_MAX 64

static struct cordon_driver_facts driver;
static bool no_driver;
static char settings[SETTINGS_MAX][512];
static size_t setting_count;
static char home[64], own[512];

/* ---- the library ------------------------------------------------------------------------------------------------- */

int cordon_driver_look(struct cordon *cordon, struct cordon_driver_facts *ret_facts, struct cordon_error *err)
{
	(void)cordon;
	err->class = CORDON_E_SPAWN_SANDBOX_UNAVAILABLE;
	if (no_driver)
		return -1;
	*ret_facts = driver;
	return 0;
}

int cordon_request_new(struct cordon_request **ret_request, struct cordon_error *err)
{
	(void)err;
	*ret_request = (struct cordon_request *)settings;
	return 0;
}

void cordon_request_unref(struct cordon_request *request)
{
	(void)request;
}

int cordon_request_set(struct cordon_request *request, const char *key, const char *value, struct cordon_error *err)
{
	(void)request;
	(void)err;
	assert_true(setting_count < SETTINGS_MAX);
	snprintf(settings[setting_count++], sizeof(settings[0]), "%s=%s", key, value);
	return 0;
}

int cordon_session_new(struct cordon *cordon, const char *id, const struct cordon_request *request, char **ret_json,
                       struct cordon_error *err)
{
	(void)cordon;
	(void)id;
	(void)request;
	(void)err;
	*ret_json = strdup("{\"created\":\"2026-01-01T00:00:00.000Z\"}");
	return 0;
}

int cordon_session_show(struct cordon *cordon, const char *id, char **ret_json, struct cordon_error *err)
{
	(void)cordon;
	(void)id;
	(void)ret_json;
	err->class = CORDON_E_NOT_FOUND;
	return -1;
}

int cordon_session_list(struct cordon *cordon, char **ret_json, struct cordon_error *err)
{
	return cordon_session_show(cordon, "", ret_json, err);
}

int cordon_session_remove(struct cordon *cordon, const char *id, struct cordon_error *err)
{
	return cordon_session_show(cordon, id, NULL, err);
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	snprintf(home, sizeof(home), "/tmp/agent-tmp-XXXXXX");
	assert_non_null(mkdtemp(home));
	char directory[128];
	snprintf(directory, sizeof(directory), "%s/.cache/cordon/claude", home);
	snprintf(own, sizeof(own), "%s/claude-%u", directory, (unsigned)geteuid());
	setenv("HOME", home, 1);
	unsetenv("XDG_CACHE_HOME");
	setenv("CLAUDE_CODE_TMPDIR", directory, 1);
	driver = (struct cordon_driver_facts){ 0 };
	no_driver = false;
	setting_count = 0;
	return 0;
}

static int tear_down(void **state)
{
	char line[128];
	(void)state;
	snprintf(line, sizeof(line), "rm -r %s", home);
	return system(line);
}

static bool is_set(const char *key, const char *path)
{
	char wanted[512];
	snprintf(wanted, sizeof(wanted), "%s=%s", key, path);
	for (size_t i = 0; i < setting_count; i++)
		if (!strcmp(settings[i], wanted))
			return true;
	return false;
}

static size_t count_of(const char *key)
{
	size_t count = 0;
	for (size_t i = 0; i < setting_count; i++)
		count += !strncmp(settings[i], key, strlen(key)) && settings[i][strlen(key)] == '=';
	return count;
}

static const char *make_session(struct arena *arena)
{
	static const struct agent_caller caller = { .agent = AGENT_CLAUDE, .id = "one", .workspace = "/srv/project" };
	const char *id = NULL;
	struct cordon_error err;
	setting_count = 0;
	assert_int_equal(agent_session(arena, NULL, &caller, &id, &err), 0);
	return id;
}

static void test_a_private_home(void **state)
{
	struct arena arena = { 0 };
	(void)state;
	driver = (struct cordon_driver_facts){ .private_home = true, .keeps_names = true };
	make_session(&arena);
	assert_int_equal(count_of("write"), 0);
	/* Where the agent was started is not told here, so nothing of it is the conversation's. */
	assert_int_equal(count_of("read"), 0);
	arena_free(&arena);
}

static void test_what_the_agent_writes_is_kept(void **state)
{
	struct arena arena = { 0 };
	struct stat info;
	(void)state;
	driver = (struct cordon_driver_facts){ .keeps_names = true };
	const char *id = make_session(&arena);
	assert_int_equal(count_of("write"), 1);
	assert_true(is_set("write", getenv("CLAUDE_CODE_TMPDIR")));
	assert_int_equal(count_of("read"), 1);
	assert_true(is_set("read", own));
	/* It is there from the start, so that no command makes it. */
	assert_int_equal(lstat(own, &info), 0);
	assert_true(S_ISDIR(info.st_mode) && (info.st_mode & 0777) == 0700);
	assert_string_equal(make_session(&arena), id);
	arena_free(&arena);
}

static void test_it_cannot_be_kept(void **state)
{
	struct arena arena = { 0 };
	(void)state;
	make_session(&arena);
	assert_true(is_set("write", getenv("CLAUDE_CODE_TMPDIR")));
	assert_int_equal(count_of("read"), 0);
	assert_int_not_equal(access(own, F_OK), 0);
	arena_free(&arena);
}

static void test_no_driver(void **state)
{
	struct arena arena = { 0 };
	(void)state;
	no_driver = true;
	make_session(&arena);
	assert_int_equal(count_of("write") + count_of("read"), 0);
	arena_free(&arena);
}

static void test_another_directory(void **state)
{
	struct arena arena = { 0 };
	(void)state;
	driver = (struct cordon_driver_facts){ .keeps_names = true };
	setenv("CLAUDE_CODE_TMPDIR", "/tmp", 1);
	make_session(&arena);
	assert_int_equal(count_of("write") + count_of("read"), 0);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_private_home, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_the_agent_writes_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_it_cannot_be_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_driver, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_directory, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
