/* Jobs on disk: their places, their records, who holds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#undef fail
#include "base/remove.h"
#include "session/jobs.h"

static char ground[] = "/tmp/cordon-jobs-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	memcpy(ground + sizeof(ground) - 7, "XXXXXX", 6);
	return mkdtemp(ground) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return remove_tree(AT_FDCWD, ground);
}

static const char *const words[] = { "make", "all", NULL };

static struct job_record record_of(const char *id)
{
	return (struct job_record){ .id = id,
		                    .session = "s",
		                    .state = JOB_RUNNING,
		                    .started = "2026-01-31T12:34:56.789Z",
		                    .command = { .items = (const char **)(uintptr_t)words, .count = 2 },
		                    .pid = 7 };
}

static struct job_place enter(const char *session)
{
	struct job_place place = JOB_PLACE_NONE;
	struct cordon_error err;
	char id[ID_SIZE];
	id_make(id);
	assert_int_equal(jobs_enter(ground, session, id, &place, &err), 0);
	assert_string_equal(place.id, id);
	return place;
}

static int count(void *arg, const struct job_record *record, int fd)
{
	int *counts = arg;
	(void)fd;
	counts[record->state]++;
	return 0;
}

static void check_counts(const char *session, int running, int ended, int lost)
{
	int counts[JOB_STATE_MAX] = { 0 };
	struct cordon_error err;
	assert_int_equal(jobs_each(ground, session, count, counts, &err), 0);
	assert_int_equal(counts[JOB_RUNNING], running);
	assert_int_equal(counts[JOB_ENDED], ended);
	assert_int_equal(counts[JOB_LOST], lost);
}

static void check_exit_code(const struct job_record *record, const char *expected)
{
	auto_free char *text = job_record_write(record);
	char member[64];
	snprintf(member, sizeof(member), "\"exit_code\":%s,", expected);
	assert_non_null(strstr(text, member));
}

static void test_a_life(void **state)
{
	struct arena arena = { 0 };
	struct job_record record, read_back;
	struct cordon_error err;
	auto_close int fd = -1;
	bool told;
	unsigned char message;
	(void)state;
	check_counts(NULL, 0, 0, 0);
	struct job_place place = enter("s");
	/* Not there before it runs. */
	assert_int_equal(jobs_find(ground, place.id, &fd, &err), -1);
	assert_int_equal(err.class, CORDON_E_NOT_FOUND);
	record = record_of(place.id);
	assert_int_equal(jobs_write(&place, &record, &err), 0);
	assert_int_equal(jobs_find(ground, place.id, &fd, &err), 0);
	assert_int_equal(jobs_read(&arena, fd, &read_back, &err), 0);
	assert_int_equal(read_back.state, JOB_RUNNING);
	assert_string_equal(read_back.command.items[1], "all");
	check_exit_code(&read_back, "null");
	assert_false(jobs_wait(fd, 0));
	assert_int_equal(jobs_tell(fd, JOB_END, &told, &err), 0);
	assert_true(told);
	assert_int_equal(read(place.control_fd, &message, 1), 1);
	assert_int_equal(message, JOB_END);
	record.state = JOB_ENDED;
	record.ended = "2026-01-31T12:34:57.789Z";
	record.exit_code = 3;
	assert_int_equal(jobs_write(&place, &record, &err), 0);
	jobs_leave(&place, false);
	assert_true(jobs_wait(fd, 0));
	assert_int_equal(jobs_read(&arena, fd, &read_back, &err), 0);
	assert_int_equal(read_back.state, JOB_ENDED);
	assert_int_equal(read_back.exit_code, 3);
	check_exit_code(&read_back, "3");
	assert_int_equal(jobs_tell(fd, JOB_END, &told, &err), 0);
	assert_false(told);
	check_counts("s", 0, 1, 0);
	check_counts("other", 0, 0, 0);
	arena_free(&arena);
}

/* A process that dies lets go of the lock, and says no more. */
static void test_lost(void **state)
{
	struct cordon_error err;
	(void)state;
	struct job_place place = enter("s"), second = enter("s");
	struct job_record record = record_of(place.id);
	assert_int_equal(jobs_write(&place, &record, &err), 0);
	check_counts("s", 1, 0, 0);
	jobs_leave(&place, false);
	check_counts(NULL, 0, 0, 1);
	/* One that never came to run leaves nothing, once somebody looks. */
	char path[128];
	snprintf(path, sizeof(path), "%s", second.id);
	int parent = fcntl(second.parent_fd, F_DUPFD_CLOEXEC, 3);
	jobs_leave(&second, false);
	assert_int_equal(faccessat(parent, path, F_OK, 0), 0);
	struct job_place third = enter("s");
	assert_int_equal(faccessat(parent, path, F_OK, 0), -1);
	snprintf(path, sizeof(path), "%s", third.id);
	jobs_leave(&third, true);
	assert_int_equal(faccessat(parent, path, F_OK, 0), -1);
	close(parent);
}

static void test_so_many(void **state)
{
	struct job_place places[JOBS_MAX], one_more = JOB_PLACE_NONE;
	struct cordon_error err = { 0 };
	char id[ID_SIZE];
	(void)state;
	for (int i = 0; i < JOBS_MAX; i++)
		places[i] = enter("s");
	id_make(id);
	assert_int_equal(jobs_enter(ground, "s", id, &one_more, &err), -1);
	assert_int_equal(err.class, CORDON_E_SESSION_BUSY);
	struct job_place other = enter("other");
	jobs_leave(&other, true);
	jobs_leave(&places[3], true);
	places[3] = enter("s");
	for (int i = 0; i < JOBS_MAX; i++)
		jobs_leave(&places[i], true);
	for (int i = 0; i < JOBS_KEPT + 3; i++) {
		struct job_place place = enter("s");
		struct job_record record = record_of(place.id);
		assert_int_equal(jobs_write(&place, &record, &err), 0);
		jobs_leave(&place, false);
	}
	check_counts("s", 0, 0, JOBS_KEPT);
}

/* ---- the record -------------------------------------------------------------------------------------------------- */

#define GOOD                                                                                                           \
	"{\"version\":1,\"state\":\"ended\",\"command\":[\"a\"],\"id\":\"01M7G957QRWYAEB8YCAYG2QA76\",\"session\":"    \
	"\"s\","                                                                                                       \
	"\"started\":\"x\",\"ended\":\"y\",\"pid\":1,\"timeout_ms\":2,\"exit_code\":-1,\"signal\":9,\"timed_out\":"    \
	"true,"                                                                                                        \
	"\"oom_killed\":false,\"killed\":true,\"limit_hit\":\"time\",\"note\":null,\"duration_ms\":3}"

/* What a newer version writes for readers of this one is read, whatever else it says. */
static void test_records_of_a_newer_version(void **state)
{
	static const char open[] = "{\"version\":3,\"reader\":1,\"more\":[]", newer[] = "{\"version\":3,\"reader\":2";
	struct arena arena = { 0 };
	struct job_record record;
	char text[1000];
	(void)state;
	snprintf(text, sizeof(text), "%s%s", open, strchr(GOOD, ','));
	assert_int_equal(job_record_read(&arena, text, strlen(text), &record), 0);
	assert_int_equal(record.pid, 1);
	snprintf(text, sizeof(text), "%s%s", newer, strchr(GOOD, ','));
	assert_int_equal(job_record_read(&arena, text, strlen(text), &record), -1);
	snprintf(text, sizeof(text), "{\"version\":1,\"reader\":2%s", strchr(GOOD, ','));
	assert_int_equal(job_record_read(&arena, text, strlen(text), &record), -1);
	arena_free(&arena);
}

static void test_records(void **state)
{
	static const struct {
		const char *from, *to;
	} wrong[] = {
		{ "\"ended\",", "\"lost\"," },
		{ "\"ended\",", "\"x\"," },
		{ "\"y\"", "null" },
		{ "\"x\"", "null" },
		{ ":[\"a\"]", ":[]" },
		{ ":[\"a\"]", ":\"a\"" },
		{ "[\"a\"]", "[1]" },
		{ "\"id\":\"0", "\"id\":\"!" },
		{ "version\":1", "version\":2" },
		{ ":-1", ":-2" },
		{ ":-1", ":1.5" },
		{ ":-1", ":null" },
		{ ":-1", ":99999999999" },
		{ "\"killed\":true", "\"killed\":1" },
		{ "\"pid\":1", "\"pid\":-1" },
		{ "{", "{\"more\":1," },
		{ "\"note\":null,", "" },
		{ "\"s\"", "1" },
		{ "\"pid\":1", "\"pid\":1,\"pid\":1" },
	};
	struct arena arena = { 0 };
	struct job_record record;
	(void)state;
	assert_int_equal(job_record_read(&arena, GOOD, strlen(GOOD), &record), 0);
	char *text = job_record_write(&record);
	assert_string_equal(text, GOOD);
	free(text);
	record.shares = true;
	text = job_record_write(&record);
	assert_int_equal(job_record_read(&arena, text, strlen(text), &record), 0);
	assert_true(record.shares);
	free(text);
	for (size_t i = 0; i < strlen(GOOD); i++)
		assert_int_equal(job_record_read(&arena, GOOD, i, &record), -1);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *at = strstr(GOOD, wrong[i].from);
		assert_non_null(at);
		char *changed = arena_printf(&arena, "%.*s%s%s", (int)(at - GOOD), GOOD, wrong[i].to,
		                             at + strlen(wrong[i].from));
		print_message("# %s\n", changed);
		assert_int_equal(job_record_read(&arena, changed, strlen(changed), &record), -1);
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_life, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_so_many, set_up, tear_down),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_records_of_a_newer_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
