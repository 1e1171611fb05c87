/* The queue of questions: the first answer counts, whoever gives it; what is late, changed or unknown is told so; what
 * the dead leave behind is found. And what answers mean for a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/remove.h"
#include "policy/card.h"
#include "approval/queue.h"
#include "system-has.h"

#include <cmocka.h>

struct ground {
	struct arena arena;
	char data[64];
	char hash[CARD_HASH_SIZE];
	struct approval_question question;
	struct cordon_error err;
};

#define CONTENT "{\"text\":\"may I?\"}"

static int set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->data, "/tmp/cordon-approvals-XXXXXX");
	assert_non_null(mkdtemp(ground->data));
	card_hash(CONTENT, ground->hash);
	struct approval_question *question = &ground->question;
	*question = (struct approval_question){ .session = "s", .audit_id = "AUDIT", .time = "then", .tool = "run",
		.program = "/bin/true", .hash = ground->hash, .content = CONTENT, .timeout_ms = 120000, .pid = 7,
		.denials_to_pause = 3 };
	id_make(question->id);
	assert_int_equal(strings_add(&ground->arena, &question->excess.fs_write, "/srv/out"), 0);
	assert_int_equal(strings_add(&ground->arena, &question->excess.fs_write, "/srv/\xff"), 0);
	question->excess.limits.stdout_bytes = UINT64_MAX;
	const struct place place = {
		.path = "/real", .alias = "/srv/out", .device = UINT64_MAX, .inode = 5, .is_directory = true
	};
	assert_int_equal(places_add(&ground->arena, &question->places, &place), 0);
	*state = ground;
	return 0;
}

static int tear_down(void **state)
{
	struct ground *ground = *state;
	remove_tree(AT_FDCWD, ground->data);
	arena_free(&ground->arena);
	free(ground);
	return 0;
}

static struct approval_wait post(struct ground *ground)
{
	struct approval_wait wait;
	id_make(ground->question.id);
	assert_int_equal(approvals_post(ground->data, &ground->question, &wait, &ground->err), 0);
	return wait;
}

static struct approval_answer answer_of(struct ground *ground, enum approval_outcome outcome)
{
	struct approval_answer answer = { .outcome = outcome, .hash = ground->hash, .reason = "", .time = "now" };
	assert_int_equal(approval_by_process(&ground->arena, "test", 0, &answer.by), 0);
	return answer;
}

static int answer(struct ground *ground, const char *id, const char *shown, enum approval_outcome outcome)
{
	struct approval_answer given = answer_of(ground, outcome);
	return approvals_answer(&ground->arena, ground->data, id, shown, &given, &ground->err);
}

static bool take(struct ground *ground, const struct approval_wait *wait, const struct approval_answer *ours,
                 struct approval_answer *ret_answer)
{
	bool found = false;
	assert_int_equal(approvals_take(&ground->arena, wait, ours, ret_answer, &found, &ground->err), 0);
	return found;
}

static void assert_refused(struct ground *ground, int result, enum cordon_class class, const char *says)
{
	assert_int_equal(result, -1);
	assert_int_equal(ground->err.class, class);
	if (!strstr(ground->err.reason, says))
		fail_msg("\"%s\" does not say \"%s\"", ground->err.reason, says);
	assert_string_equal(ground->err.boundary, "approval");
}

static void count(void *arg, const struct approval_question *question)
{
	(void)question;
	++*(int *)arg;
}

static int waiting(struct ground *ground)
{
	int counted = 0;
	assert_int_equal(approvals_each(ground->data, count, &counted, &ground->err), 0);
	return counted;
}

static bool exists(struct ground *ground, const char *name)
{
	char path[256];
	struct stat info;
	snprintf(path, sizeof(path), "%s/approvals/%s", ground->data, name);
	return lstat(path, &info) == 0;
}

static const char *path_of(struct ground *ground, const char *id, const char *name)
{
	return arena_printf(&ground->arena, "%s/approvals/%s/%s", ground->data, id, name);
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static bool is_ready(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	return poll(&ready, 1, 0) == 1;
}

static void test_one_answer(void **state)
{
	struct ground *ground = *state;
	struct approval_answer taken;
	struct approval_wait wait = post(ground);
	struct stat info;
	assert_int_equal(lstat(path_of(ground, wait.id, "card.json"), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0600);
	assert_false(take(ground, &wait, NULL, &taken));
	assert_true(!HAS_WATCH || (wait.notify_fd >= 0 && !is_ready(wait.notify_fd)));
	assert_int_equal(waiting(ground), 1);
	assert_int_equal(answer(ground, wait.id, ground->hash, APPROVAL_SESSION), 0);
	assert_true(!HAS_WATCH || is_ready(wait.notify_fd));
	assert_int_equal(waiting(ground), 0);
	assert_true(take(ground, &wait, NULL, &taken));
	assert_int_equal(taken.outcome, APPROVAL_SESSION);
	assert_string_equal(taken.hash, ground->hash);
	assert_int_equal(taken.by.uid, getuid());
	assert_int_equal(taken.by.pid, getpid());
	approvals_settle(&wait);
	assert_false(exists(ground, wait.id));
	assert_int_not_equal(
		lstat(path_of(ground, arena_printf(&ground->arena, "settled/%s", wait.id), "card.json"), &info), 0);
}

static void test_the_first_counts(void **state)
{
	struct ground *ground = *state;
	struct approval_answer taken, ours = answer_of(ground, APPROVAL_TIMEOUT);
	struct approval_wait wait = post(ground);
	assert_int_equal(answer(ground, wait.id, NULL, APPROVAL_DENIED), 0);
	assert_refused(ground, answer(ground, wait.id, NULL, APPROVAL_ONCE), CORDON_E_INVALID_REQUEST,
	               "answered already: denied");
	assert_true(take(ground, &wait, &ours, &taken));
	assert_int_equal(taken.outcome, APPROVAL_DENIED);
	approvals_settle(&wait);
	assert_refused(ground, answer(ground, wait.id, NULL, APPROVAL_ONCE), CORDON_E_INVALID_REQUEST,
	               "answered already: denied");
}

static void test_too_late(void **state)
{
	struct ground *ground = *state;
	struct approval_answer taken, ours = answer_of(ground, APPROVAL_TIMEOUT);
	struct approval_wait wait = post(ground);
	assert_true(take(ground, &wait, &ours, &taken));
	assert_int_equal(taken.outcome, APPROVAL_TIMEOUT);
	assert_refused(ground, answer(ground, wait.id, NULL, APPROVAL_ONCE), CORDON_E_APPROVAL_TIMEOUT, "too late");
	approvals_settle(&wait);
	assert_refused(ground, answer(ground, wait.id, NULL, APPROVAL_ONCE), CORDON_E_APPROVAL_TIMEOUT, "too late");
}

static void test_unknown(void **state)
{
	struct ground *ground = *state;
	static const char *const bad[] = { "", "x", "..", "../../etc/passwd", "settled", "01AAAAAAAAAAAAAAAAAAAAAAA/",
		                           "01AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(ground, answer(ground, bad[i], NULL, APPROVAL_ONCE), CORDON_E_NOT_FOUND, "no id");
	const char *id = "01AAAAAAAAAAAAAAAAAAAAAAAA";
	assert_refused(ground, answer(ground, id, NULL, APPROVAL_ONCE), CORDON_E_NOT_FOUND, "no question");
	assert_false(exists(ground, "."));
	struct approval_wait wait = post(ground);
	assert_refused(ground, answer(ground, id, NULL, APPROVAL_ONCE), CORDON_E_NOT_FOUND, "no question");
	approvals_settle(&wait);
}

static void test_another_content(void **state)
{
	struct ground *ground = *state;
	struct approval_wait wait = post(ground);
	char other[CARD_HASH_SIZE];
	card_hash("{}", other);
	assert_refused(ground, answer(ground, wait.id, other, APPROVAL_ONCE), CORDON_E_CAPABILITY_DENIED,
	               "not what was shown");
	/* The card itself is changed: the content no longer has its hash. */
	ground->question.content = "{\"text\":\"may I not?\"}";
	auto_free char *text = approval_question_write(&ground->question);
	const char *path = path_of(ground, wait.id, "card.json");
	FILE *file = fopen(path, "w");
	assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
	assert_refused(ground, answer(ground, wait.id, NULL, APPROVAL_ONCE), CORDON_E_CAPABILITY_DENIED, "was changed");
	assert_refused(ground, answer(ground, wait.id, ground->hash, APPROVAL_ONCE), CORDON_E_CAPABILITY_DENIED,
	               "was changed");
	assert_int_equal(waiting(ground), 0);
	approvals_settle(&wait);
}

static void test_without_a_session(void **state)
{
	struct ground *ground = *state;
	ground->question.session = "";
	struct approval_wait wait = post(ground);
	assert_refused(ground, answer(ground, wait.id, NULL, APPROVAL_SESSION), CORDON_E_INVALID_REQUEST, "once only");
	assert_int_equal(answer(ground, wait.id, NULL, APPROVAL_ONCE), 0);
	approvals_settle(&wait);
}

/* Nothing that is not an answer of cordon's own approves anything. */
static void test_forged_answers(void **state)
{
	struct ground *ground = *state;
	static const char *const forged[] = {
		"", "x", "{}", "{\"answer\":\"once\"}", "[]", "{\"version\":1,\"answer\":\"void\"}",
		"{\"version\":1,\"answer\":\"once\",\"hash\":\"\",\"reason\":\"\",\"time\":\"\",\"by\":{}}",
	};
	for (size_t i = 0; i <= ARRAY_SIZE(forged) + 1; i++) {
		struct approval_answer taken;
		if (i == ARRAY_SIZE(forged) && !HAS_LINKS)
			continue;
		struct approval_wait wait = post(ground);
		const char *path = path_of(ground, wait.id, "answer.json");
		if (i < ARRAY_SIZE(forged)) {
			FILE *file = fopen(path, "w");
			assert_true(file && fputs(forged[i], file) >= 0 && fclose(file) == 0);
		} else if (i == ARRAY_SIZE(forged)) {
			assert_int_equal(symlink("/etc/passwd", path), 0);
		} else {
			struct approval_answer good = answer_of(ground, APPROVAL_ONCE);
			auto_free char *text = approval_answer_write(&good);
			FILE *file = fopen(path, "w");
			assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, 0666) == 0);
		}
		assert_true(take(ground, &wait, NULL, &taken));
		assert_int_equal(taken.outcome, APPROVAL_VOID);
		approvals_settle(&wait);
	}
}

static void test_settled_are_bounded(void **state)
{
	struct ground *ground = *state;
	struct approval_answer taken, ours = answer_of(ground, APPROVAL_TIMEOUT);
	char first[ID_SIZE] = "", last[ID_SIZE] = "";
	for (int i = 0; i < 70; i++) {
		struct approval_wait wait = post(ground);
		assert_true(take(ground, &wait, &ours, &taken));
		memcpy(i ? last : first, wait.id, ID_SIZE);
		approvals_settle(&wait);
		usleep(1100); /* ids sort by the millisecond */
	}
	auto_close int queue = -1;
	assert_int_equal(queue_open(ground->data, false, &queue, &ground->err), 0);
	assert_int_equal(queue_list(&ground->arena, queue, "settled", queue_is_id).count, 64);
	assert_refused(ground, answer(ground, first, NULL, APPROVAL_ONCE), CORDON_E_NOT_FOUND, "no question");
	assert_refused(ground, answer(ground, last, NULL, APPROVAL_ONCE), CORDON_E_APPROVAL_TIMEOUT, "too late");
}

/* ---- the dead ---------------------------------------------------------------------------------------------------- */

struct swept {
	int count, unreadable;
	bool keep;
	enum approval_outcome outcome;
};

static bool sweep_one(void *arg, struct arena *arena, const struct approval_wait *wait,
                      const struct approval_question *question)
{
	struct swept *swept = arg;
	struct approval_answer taken, none = { .outcome = APPROVAL_ABANDONED, .hash = "", .reason = "", .time = "",
	                                       .by = { .door = "sweep" } };
	bool found = false;
	assert_int_equal(approvals_take(arena, wait, &none, &taken, &found, NULL), 0);
	assert_true(found);
	swept->count++;
	swept->unreadable += question == NULL;
	swept->outcome = taken.outcome;
	return !swept->keep;
}

/* Posts in a process that dies; the id stays in the question. */
static void post_and_die(struct ground *ground, bool answered)
{
	id_make(ground->question.id);
	pid_t child = fork();
	if (child == 0) {
		struct approval_wait wait;
		struct approval_answer ours = answer_of(ground, APPROVAL_SESSION), taken;
		bool found;
		if (approvals_post(ground->data, &ground->question, &wait, NULL) < 0 ||
		    (answered && approvals_take(&ground->arena, &wait, &ours, &taken, &found, NULL) < 0))
			_exit(1);
		raise(SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static struct swept sweep(struct ground *ground)
{
	struct swept swept = { 0 };
	approvals_each_stale(ground->data, sweep_one, &swept);
	return swept;
}

static void test_dead_askers(void **state)
{
	struct ground *ground = *state;
	assert_int_equal(sweep(ground).count, 0);
	post_and_die(ground, false);
	assert_int_equal(waiting(ground), 0);
	assert_refused(ground, answer(ground, ground->question.id, NULL, APPROVAL_ONCE), CORDON_E_INVALID_REQUEST,
	               "gone");
	struct swept kept = { .keep = true };
	approvals_each_stale(ground->data, sweep_one, &kept);
	assert_int_equal(kept.count, 1);
	assert_true(exists(ground, ground->question.id));
	struct swept swept = sweep(ground);
	assert_int_equal(swept.count, 1);
	assert_int_equal(swept.outcome, APPROVAL_ABANDONED);
	assert_false(exists(ground, ground->question.id));
	assert_int_equal(sweep(ground).count, 0);
	assert_refused(ground, answer(ground, ground->question.id, NULL, APPROVAL_ONCE), CORDON_E_INVALID_REQUEST,
	               "gone");
	post_and_die(ground, true);
	assert_int_equal(sweep(ground).outcome, APPROVAL_SESSION);
}

static void test_the_living_are_not_swept(void **state)
{
	struct ground *ground = *state;
	struct approval_wait wait = post(ground);
	assert_int_equal(sweep(ground).count, 0);
	assert_int_equal(waiting(ground), 1);
	/* Given up, not settled. */
	approvals_release(&wait);
	assert_int_equal(waiting(ground), 0);
	assert_int_equal(sweep(ground).count, 1);
}

static void test_what_killed_makers_left(void **state)
{
	struct ground *ground = *state;
	struct approval_wait wait = post(ground);
	const char *directory = path_of(ground, ".new-01AAAAAAAAAAAAAAAAAAAAAAAA", "");
	const char *answered = path_of(ground, ".answer-01AAAAAAAAAAAAAAAAAAAAAAAA", "");
	((char *)answered)[strlen(answered) - 1] = '\0';
	assert_int_equal(mkdir(directory, 0700), 0);
	auto_close int fd = open(answered, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	sweep(ground);
	assert_false(exists(ground, ".new-01AAAAAAAAAAAAAAAAAAAAAAAA"));
	assert_true(exists(ground, ".answer-01AAAAAAAAAAAAAAAAAAAAAAAA"));
	assert_int_equal(flock(fd, LOCK_UN), 0);
	sweep(ground);
	assert_false(exists(ground, ".answer-01AAAAAAAAAAAAAAAAAAAAAAAA"));
	approvals_settle(&wait);
}

static void test_damaged_questions(void **state)
{
	struct ground *ground = *state;
	post_and_die(ground, false);
	assert_int_equal(truncate(path_of(ground, ground->question.id, "card.json"), 10), 0);
	struct swept swept = sweep(ground);
	assert_int_equal(swept.count, 1);
	assert_int_equal(swept.unreadable, 1);
	assert_int_equal(sweep(ground).count, 0);
}

static void test_a_queue_that_is_not_ours(void **state)
{
	struct ground *ground = *state;
	struct approval_wait wait;
	const char *path = arena_printf(&ground->arena, "%s/approvals", ground->data);
	if (HAS_LINKS) {
		assert_int_equal(symlink("/tmp", path), 0);
		assert_refused(ground, approvals_post(ground->data, &ground->question, &wait, &ground->err),
		               CORDON_E_INTERNAL, "");
		assert_refused(ground, answer(ground, ground->question.id, NULL, APPROVAL_ONCE), CORDON_E_INTERNAL, "");
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(mkdir(path, 0700) + chmod(path, 0777), 0);
	assert_refused(ground, approvals_post(ground->data, &ground->question, &wait, &ground->err), CORDON_E_INTERNAL,
	               "");
}

/* Of many answers at once exactly one is told that it counts. */
static void test_a_race_of_answers(void **state)
{
	struct ground *ground = *state;
	struct approval_wait wait = post(ground);
	int gate[2], winners = 0;
	char go;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	for (int i = 0; i < 16; i++)
		if (fork() == 0) {
			close(gate[1]);
			_exit(read(gate[0], &go, 1) == 0 && answer(ground, wait.id, NULL, APPROVAL_ONCE) == 0 ? 0 : 1);
		}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0, status; i < 16; i++) {
		assert_true(wait4(-1, &status, 0, NULL) > 0);
		winners += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	assert_int_equal(winners, 1);
	approvals_settle(&wait);
}

/* ---- text and meaning -------------------------------------------------------------------------------------------- */

static void test_a_question_as_text(void **state)
{
	struct ground *ground = *state;
	struct approval_question read, *wrote = &ground->question;
	auto_free char *text = approval_question_write(wrote);
	assert_int_equal(approval_question_read(&ground->arena, text, strlen(text), &read), 0);
	auto_free char *again = approval_question_write(&read);
	assert_string_equal(text, again);
	assert_string_equal(read.excess.fs_write.items[1], "/srv/\xff");
	assert_true(read.excess.limits.stdout_bytes == UINT64_MAX);
	assert_true(read.places.items[0].device == UINT64_MAX);
	assert_null(read.rule);
	for (size_t length = 0; length < strlen(text); length++)
		assert_int_equal(approval_question_read(&ground->arena, text, length, &read), -1);
}

static struct session_record record_of(struct ground *ground)
{
	(void)ground;
	return (struct session_record){ .id = "s", .state = SESSION_ACTIVE };
}

static void test_a_grant(void **state)
{
	struct ground *ground = *state;
	struct session_record record = record_of(ground);
	struct approval_answer yes = answer_of(ground, APPROVAL_SESSION);
	record.denied_in_a_row = 2;
	assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &yes), 0);
	assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &yes), 1);
	assert_int_equal(record.grant_count, 1);
	assert_string_equal(record.grants[0].card, ground->question.id);
	assert_string_equal(record.grants[0].hash, ground->hash);
	assert_string_equal(record.grants[0].set.fs_write.items[0], "/srv/out");
	assert_int_equal(record.grants[0].places.items[0].inode, 5);
	assert_int_equal(record.denied_in_a_row, 0);
	/* Whether a grant of paths holds is not decided by the hash. */
	assert_null(approval_granted(&record, &ground->question));
	ground->question.places.count = 0;
	assert_ptr_equal(approval_granted(&record, &ground->question), &record.grants[0]);
	ground->question.hash = "another";
	assert_null(approval_granted(&record, &ground->question));
}

static void test_denials_pause(void **state)
{
	struct ground *ground = *state;
	struct session_record record = record_of(ground);
	struct approval_answer no = answer_of(ground, APPROVAL_DENIED), once = answer_of(ground, APPROVAL_ONCE);
	const char *const hashes[] = { "a", "b", "c", "d" };
	assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &once), 1);
	for (size_t i = 0; i < 2; i++) {
		ground->question.hash = hashes[i];
		assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &no), 0);
		assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &no), 1);
	}
	assert_int_equal(record.denied_in_a_row, 2);
	assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &once), 0);
	assert_int_equal(record.denied_in_a_row, 0);
	assert_int_equal(record.denial_count, 2);
	record.denied_in_a_row = 2;
	ground->question.hash = hashes[2];
	assert_null(approval_denied(&record, &ground->question));
	assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &no), 0);
	assert_non_null(approval_denied(&record, &ground->question));
	assert_int_equal(record.state, SESSION_PAUSED);
	assert_string_equal(record.why, "3 denials in a row");
	/* 0: never */
	record.state = SESSION_ACTIVE;
	ground->question.denials_to_pause = 0;
	ground->question.hash = hashes[3];
	assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &no), 0);
	assert_int_equal(record.state, SESSION_ACTIVE);
	/* What is neither yes nor no changes nothing. */
	for (enum approval_outcome outcome = APPROVAL_TIMEOUT; outcome < APPROVAL_OUTCOME_MAX; outcome++) {
		struct approval_answer other = answer_of(ground, outcome);
		ground->question.hash = "other";
		assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &other), 1);
	}
}

static void test_denials_are_bounded(void **state)
{
	struct ground *ground = *state;
	struct session_record record = record_of(ground);
	struct approval_answer no = answer_of(ground, APPROVAL_DENIED);
	for (int i = 0; i < 600; i++) {
		ground->question.hash = arena_printf(&ground->arena, "%d", i);
		assert_int_equal(approval_apply(&ground->arena, &record, &ground->question, &no), 0);
	}
	assert_int_equal(record.denial_count, 512);
	assert_string_equal(record.denials[511].hash, "599");
	assert_string_equal(record.denials[0].hash, "88");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_one_answer),
		TEST(test_the_first_counts),
		TEST(test_too_late),
		TEST(test_unknown),
		TEST(test_another_content),
		TEST(test_without_a_session),
		TEST(test_forged_answers),
		TEST(test_settled_are_bounded),
		TEST(test_dead_askers),
		TEST(test_the_living_are_not_swept),
		TEST(test_what_killed_makers_left),
		TEST(test_damaged_questions),
		TEST(test_a_queue_that_is_not_ours),
		TEST(test_a_race_of_answers),
		TEST(test_a_question_as_text),
		TEST(test_a_grant),
		TEST(test_denials_pause),
		TEST(test_denials_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
