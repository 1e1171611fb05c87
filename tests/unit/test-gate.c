/* The gate: every outcome, who is asked, and what is remembered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "api/policy.h"
#include "base/json.h"
#include "walk.h"
#include "approval/gate.h"
#include "approval/approvals.h"
#include "session/registry.h"
#include "gate-ground.h"

#include <cmocka.h>

static void test_approved_once(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_ONCE };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(ground->answer.answer, CORDON_APPROVED_ONCE);
	assert_int_equal(ground_record(ground).grant_count, 0);
	ground_assert_row(ground, 1, "approved", "once", "callback");
	assert_non_null(strstr(said.text, "make secret-argument"));
	assert_string_equal(said.session, "s");
	json_t *card = json_loads(said.json, 0, NULL);
	assert_string_equal(ground_text(card, "hash"), said.hash);
	assert_string_equal(ground_text(json_object_get(card, "content"), "text"), said.text);
	json_decref(card);
	ground_assert_nothing_waits(ground);
	/* Once is once. */
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(said.calls, 2);
}

static void test_approved_for_the_session(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	struct stat info;
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(ground->answer.answer, CORDON_APPROVED_SESSION);
	ground_assert_row(ground, 1, "approved", "session", "callback");
	struct session_record record = ground_record(ground);
	assert_int_equal(record.grant_count, 1);
	assert_string_equal(record.grants[0].card, ground->answer.card);
	assert_string_equal(record.grants[0].set.fs_write.items[0], ground->out);
	assert_int_equal(stat(ground->out, &info), 0);
	assert_int_equal(record.grants[0].places.items[0].inode, info.st_ino);
	assert_int_equal(record.grants[0].places.items[0].device, info.st_dev);
}

static void test_denied_and_remembered(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_DENIED, .reason = "not \xe2\x80\xaethere" };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_string_equal(ground->err.subject, ground->out);
	assert_non_null(strstr(ground->err.reason, "denied by a human: not "));
	assert_string_equal(ground->err.boundary, "approval");
	ground_assert_row(ground, 1, "denied", "(none)", "callback");
	said.answer = CORDON_APPROVED_ONCE;
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(said.calls, 1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "denied in this session before"));
	assert_non_null(strstr(ground->err.remediation, "cordon session pause, then resume"));
	ground_assert_row(ground, 2, "denied", "(none)", "memory");
	assert_int_equal(ground_record(ground).denied_in_a_row, 1);
	/* Another request is another question. */
	ground->argv.items[1] = "other";
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(said.calls, 2);
	assert_int_equal(ground_record(ground).denied_in_a_row, 0);
}

static void test_three_denials_pause(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_DENIED };
	static const char *const words[] = { "1", "2", "3" };
	size_t count;
	cordon_approver(&ground->cordon, ground_approver, &said);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		assert_int_equal(ground_record(ground).state, SESSION_ACTIVE);
		ground->argv.items[1] = words[i];
		assert_int_equal(ground_ask(ground), -1);
		assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	}
	assert_non_null(strstr(ground->err.reason, "the session is paused after 3 denials in a row"));
	assert_non_null(strstr(ground->err.remediation, "resume"));
	assert_int_equal(ground_record(ground).state, SESSION_PAUSED);
	json_t *row = ground_last_row(ground, "session", &count);
	assert_int_equal(count, 1);
	assert_string_equal(ground_text(row, "session"), "s");
	json_decref(row);
}

static void test_nobody_to_ask(void **state)
{
	struct ground *ground = *state;
	ground->config.approval.queue = false;
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "no approver is available"));
	ground_assert_row(ground, 1, "denied", "(none)", "nobody");
	/* It is no human's denial. */
	assert_int_equal(ground_record(ground).denial_count, 0);
	assert_int_equal(ground_record(ground).denied_in_a_row, 0);
}

static void test_timeout(void **state)
{
	struct ground *ground = *state;
	backwards = true;
	ground->config.approval.timeout_ms = 120;
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	ground_assert_row(ground, 1, "timeout", "(none)", "clock");
	assert_int_equal(ground_record(ground).denial_count, 0);
	/* Not remembered: it is asked again. */
	struct said said = { .answer = CORDON_APPROVED_ONCE };
	ground->config.approval.timeout_ms = 0;
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(said.calls, 1);
}

static void dawdle(struct ground *ground, const struct cordon_card *card)
{
	(void)ground;
	usleep((useconds_t)card->timeout_ms * 1000 + 20000);
}

static void test_a_callback_that_is_too_late(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_ONCE, .meanwhile = dawdle };
	ground->config.approval.timeout_ms = 30;
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	ground_assert_row(ground, 1, "timeout", "(none)", "clock");
}

static void test_without_a_session(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	ground->question.session_id = "AUDIT";
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(ground->answer.answer, CORDON_APPROVED_ONCE);
	assert_string_equal(said.session, "");
	said.answer = CORDON_DENIED;
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(said.calls, 3);
}

static void test_what_a_rule_asks(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	ground->excess = (struct capability_set){ 0 };
	ground->question.excess_name = ground->question.excess_subject = NULL;
	ground->question.rule = "ask about make: config.toml:1:1";
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), 0);
	char card[ID_SIZE];
	memcpy(card, ground->answer.card, sizeof(card));
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(said.calls, 1);
	assert_string_equal(ground->answer.card, card);
	ground->argv.items[1] = "other";
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(said.calls, 2);
}

static void test_interrupted(void **state)
{
	struct ground *ground = *state;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	cordon_approver_interrupt(&ground->cordon, ends[0]);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	ground_assert_row(ground, 1, "cancelled", "(none)", "caller");
	close(ends[0]);
	close(ends[1]);
}

static void test_an_approver_of_its_own(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_DENIED },
		    own = { .ground = ground, .answer = CORDON_APPROVED_ONCE };
	const struct approver other = { ground_approver, &own, -1, 0, false }, nobody = { NULL, NULL, -1, 0, false };
	cordon_approver(&ground->cordon, ground_approver, &said);
	ground->question.approver = &other;
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(own.calls, 1);
	ground->question.approver = &nobody;
	ground->config.approval.queue = false;
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(said.calls, 0);
}

/* Where the configuration demands cordon's own approver, an approver behind a client is none. */
static void test_an_approver_behind_a_client(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_APPROVED_ONCE };
	const struct approver client = { ground_approver, &said, -1, 0, true };
	ground->question.approver = &client;
	ground->config.approval.queue = false;
	ground->config.approval.own_approver = true;
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(said.calls, 0);
	ground->config.approval.own_approver = false;
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(said.calls, 1);
}

/* What was asked for is not wanted any more, before anybody is asked or while the callback asks. */
static enum cordon_answer wait_until_settled(void *arg, const struct cordon_card *card, char reason[256])
{
	const int *end = arg;
	struct pollfd ready = { .fd = card->settled_fd, .events = POLLIN };
	(void)reason;
	assert_int_equal(poll(&ready, 1, 0), 0);
	assert_int_equal(write(*end, "x", 1), 1);
	assert_int_equal(poll(&ready, 1, -1), 1);
	return CORDON_UNANSWERED;
}

static void test_not_wanted_any_more(void **state)
{
	struct ground *ground = *state;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	ground->question.ended_fd = ends[0];
	cordon_approver(&ground->cordon, wait_until_settled, &ends[1]);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	ground_assert_row(ground, 1, "cancelled", "(none)", "caller");
	cordon_approver(&ground->cordon, NULL, NULL);
	assert_int_equal(ground_ask(ground), -1);
	ground_assert_row(ground, 2, "cancelled", "(none)", "caller");
	close(ends[0]);
	close(ends[1]);
}

static void test_a_ledger_that_cannot_be_written(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	cordon_approver(&ground->cordon, ground_approver, &said);
	broken_ledger = true;
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_AUDIT_UNAVAILABLE);
	assert_int_equal(ground_record(ground).grant_count, 0);
	/* The human said yes: it is not lost. */
	broken_ledger = false;
	ground_sweep(ground);
	assert_int_equal(ground_record(ground).grant_count, 1);
	ground_assert_row(ground, 1, "approved", "session", "callback");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_set_up, ground_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_approved_once),
		TEST(test_approved_for_the_session),
		TEST(test_denied_and_remembered),
		TEST(test_three_denials_pause),
		TEST(test_nobody_to_ask),
		TEST(test_timeout),
		TEST(test_a_callback_that_is_too_late),
		TEST(test_an_approver_of_its_own),
		TEST(test_an_approver_behind_a_client),
		TEST(test_without_a_session),
		TEST(test_what_a_rule_asks),
		TEST(test_interrupted),
		TEST(test_not_wanted_any_more),
		TEST(test_a_ledger_that_cannot_be_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
