/* The gate: what others do while it asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/policy.h"
#include "walk.h"
#include "approval/gate.h"
#include "approval/approvals.h"
#include "session/registry.h"
#include "gate-ground.h"

#include <cmocka.h>

static void deny_elsewhere(struct ground *ground, const struct cordon_card *card)
{
	struct pollfd ready = { .fd = card->settled_fd, .events = POLLIN };
	struct cordon other = { .data_dir = ground->data, .approver.interrupt_fd = -1 };
	struct cordon_error err;
	assert_int_equal(poll(&ready, 1, 0), 0);
	assert_int_equal(cordon_approvals_answer(&other, card->id, card->hash, CORDON_DENIED, "elsewhere", &err), 0);
	assert_int_equal(poll(&ready, 1, 60000), 1);
}

static void test_two_approvers(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_APPROVED_SESSION, .meanwhile = deny_elsewhere };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "elsewhere"));
	ground_assert_row(ground, 1, "denied", "(none)", "queue");
	assert_int_equal(ground_record(ground).grant_count, 0);
}

static void answer_with_another_hash(struct ground *ground, const struct cordon_card *card)
{
	char wrong[65];
	snprintf(wrong, sizeof(wrong), "%s", card->hash);
	wrong[0] = wrong[0] == '0' ? '1' : '0';
	assert_int_equal(
		cordon_approvals_answer(&ground->cordon, card->id, wrong, CORDON_APPROVED_ONCE, NULL, &ground->err),
		-1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	/* One that was put there by other means. */
	char path[256];
	snprintf(path, sizeof(path), "%s/approvals/%s/answer.json", ground->data, card->id);
	struct approval_answer answer = {
		.outcome = APPROVAL_SESSION, .hash = wrong, .reason = "", .time = "", .by.door = "x"
	};
	auto_free char *text = approval_answer_write(&answer);
	FILE *file = fopen(path, "w");
	assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_an_answer_for_another_content(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .meanwhile = answer_with_another_hash };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "another content"));
	ground_assert_row(ground, 1, "void", "(none)", "x");
	assert_int_equal(ground_record(ground).grant_count, 0);
	assert_int_equal(ground_record(ground).denial_count, 0);
}

static void replace_place(struct ground *ground, const struct cordon_card *card)
{
	char other[96];
	(void)card;
	snprintf(other, sizeof(other), "%s.old", ground->out);
	assert_int_equal(rename(ground->out, other), 0);
	assert_int_equal(mkdir(ground->out, 0700), 0);
}

static void test_a_place_that_is_replaced(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_APPROVED_SESSION, .meanwhile = replace_place };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "replaced"));
	ground_assert_row(ground, 1, "void", "(none)", "callback");
	assert_int_equal(ground_record(ground).grant_count, 0);
	/* A grant that was given earlier says nothing about what stands there now: it is asked again. */
	said.meanwhile = NULL;
	assert_int_equal(ground_ask(ground), 0);
	replace_place(ground, NULL);
	assert_int_equal(ground_ask(ground), 0);
	assert_int_equal(said.calls, 3);
}

static int pause_it(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)arg, (void)err;
	record->state = SESSION_PAUSED;
	record->why = "by hand";
	return 0;
}

static void pause_session(struct ground *ground, const struct cordon_card *card)
{
	(void)card;
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", pause_it, NULL, NULL, &ground->err), 0);
}

static void test_a_session_that_is_paused_meanwhile(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_APPROVED_ONCE, .meanwhile = pause_session };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_SESSION_PAUSED);
}

static int end_it(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)arg, (void)err;
	record->state = SESSION_ENDED;
	return 0;
}

static void end_session(struct ground *ground, const struct cordon_card *card)
{
	(void)card;
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", end_it, NULL, NULL, &ground->err), 0);
}

static void end_and_withdraw(struct ground *ground, const struct cordon_card *card)
{
	struct approval_by by;
	end_session(ground, card);
	assert_int_equal(approval_by_process(&ground->arena, "session", 0, &by), 0);
	approvals_withdraw(&ground->arena, ground->data, "s", &by);
	assert_int_equal(
		cordon_approvals_answer(&ground->cordon, card->id, NULL, CORDON_APPROVED_SESSION, NULL, &ground->err),
		-1);
	assert_int_equal(ground->err.class, CORDON_E_SESSION_ENDED);
}

/* Answered before its questions are withdrawn, or after. */
static void test_a_session_that_ends_meanwhile(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_APPROVED_SESSION, .meanwhile = end_session };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_SESSION_ENDED);
	assert_int_equal(ground_record(ground).grant_count, 0);
}

static void test_a_question_that_is_withdrawn(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_APPROVED_SESSION, .meanwhile = end_and_withdraw };
	cordon_approver(&ground->cordon, ground_approver, &said);
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_SESSION_ENDED);
	assert_int_equal(ground_record(ground).grant_count, 0);
	ground_assert_row(ground, 1, "cancelled", "(none)", "session");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_set_up, ground_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_two_approvers),
		TEST(test_an_answer_for_another_content), TEST(test_a_place_that_is_replaced),
		TEST(test_a_session_that_is_paused_meanwhile), TEST(test_a_session_that_ends_meanwhile),
		TEST(test_a_question_that_is_withdrawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
