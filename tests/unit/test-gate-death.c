/* The gate: whatever dies when, no approval is lost or doubled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
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

#define KILLS 200

static enum cordon_answer die(void *arg, const struct cordon_card *card, char reason[256])
{
	const struct said *said = arg;
	struct cordon other = { .data_dir = said->ground->data, .approver.interrupt_fd = -1 };
	(void)reason;
	if (said->answer &&
	    cordon_approvals_answer(&other, card->id, NULL, said->answer, "said", &said->ground->err) < 0)
		_exit(1);
	raise(SIGKILL);
	return CORDON_UNANSWERED;
}

static void ask_and_die(struct ground *ground, enum cordon_answer answer)
{
	pid_t child = fork();
	if (child == 0) {
		struct said said = { .ground = ground, .answer = answer };
		cordon_approver(&ground->cordon, die, &said);
		ground_ask(ground);
		_exit(1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static void test_dead_askers(void **state)
{
	struct ground *ground = *state;
	ask_and_die(ground, CORDON_UNANSWERED);
	ground_sweep(ground);
	ground_assert_row(ground, 1, "abandoned", "(none)", "sweep");
	ask_and_die(ground, CORDON_APPROVED_ONCE);
	ground_sweep(ground);
	ground_assert_row(ground, 2, "abandoned", "(none)", "queue");
	assert_int_equal(ground_record(ground).grant_count, 0);
	ask_and_die(ground, CORDON_APPROVED_SESSION);
	assert_int_equal(ground_record(ground).grant_count, 0);
	/* Whoever asks next finds it. */
	ground->config.approval.queue = false;
	ground->argv.items[1] = "next";
	assert_int_equal(ground_ask(ground), -1);
	assert_int_equal(ground_record(ground).grant_count, 1);
	ground->config.approval.queue = true;
	ground_sweep(ground);
	assert_int_equal(ground_record(ground).grant_count, 1);
	ask_and_die(ground, CORDON_DENIED);
	ground_sweep(ground);
	assert_int_equal(ground_record(ground).denial_count, 1);
	assert_int_equal(ground_record(ground).denied_in_a_row, 1);
	ground_assert_nothing_waits(ground);
}

static void test_half_done(void **state)
{
	struct ground *ground = *state;
	bool *const moments[] = { &die_after_row, &die_before_settling };
	static const enum cordon_answer answers[] = { CORDON_APPROVED_ONCE, CORDON_APPROVED_SESSION, CORDON_DENIED };
	size_t rows = 0, count;
	for (size_t moment = 0; moment < ARRAY_SIZE(moments); moment++)
		for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
			struct said said = { .answer = answers[i] };
			ground->argv.items[1] = arena_printf(&ground->arena, "%zu-%zu", moment, i);
			pid_t child = fork();
			if (child == 0) {
				*moments[moment] = true;
				cordon_approver(&ground->cordon, ground_approver, &said);
				ground_ask(ground);
				_exit(1);
			}
			int status;
			assert_int_equal(waitpid(child, &status, 0), child);
			assert_true(WIFSIGNALED(status));
			ground_sweep(ground);
			ground_sweep(ground);
			json_decref(ground_last_row(ground, "approval", &count));
			assert_int_equal(count, ++rows);
			assert_int_equal(ground_record(ground).grant_count, moment + (i >= 1));
			assert_int_equal(ground_record(ground).denial_count, moment + (i >= 2));
		}
	ground_assert_nothing_waits(ground);
}

/* An asker and an answerer at a time, each killed at some moment or not at all. */
struct tally {
	int told[KILLS];                        /* the answer of this round was accepted */
	char card[KILLS][ID_SIZE];              /* the asker of this round got its approval */
};

static void answer_all(struct ground *ground, struct tally *tally, int round)
{
	struct cordon other = { .data_dir = ground->data, .approver.interrupt_fd = -1 };
	struct cordon_error err;
	for (int tries = 0; tries < 2000; tries++) {
		auto_free char *json = NULL;
		if (cordon_approvals_list(&other, &json, &err) < 0)
			_exit(1);
		const char *id = strstr(json, "\"id\":\"");
		char card[ID_SIZE] = "";
		if (!id) {
			usleep(200);
			continue;
		}
		memcpy(card, id + 6, ID_SIZE - 1);
		enum cordon_answer answer = round % 4 ? CORDON_APPROVED_SESSION : CORDON_APPROVED_ONCE;
		/* What is just being swept may be listed. */
		if (cordon_approvals_answer(&other, card, NULL, answer, NULL, &err) < 0)
			continue;
		tally->told[round] = answer == CORDON_APPROVED_SESSION ? 2 : 1;
		_exit(0);
	}
	_exit(1);
}

static void kill_after(pid_t pid, unsigned us)
{
	if (us) {
		usleep(us);
		kill(pid, SIGKILL);
	}
	waitpid(pid, NULL, 0);
}

static void play_round(struct ground *ground, struct tally *tally, int round)
{
	char word[16];
	snprintf(word, sizeof(word), "%d", round);
	ground->argv.items[1] = word;
	pid_t asker = fork();
	if (asker == 0) {
		ground->config.approval.timeout_ms = 3000;
		if (ground_ask(ground) == 0)
			memcpy(tally->card[round], ground->answer.card, ID_SIZE);
		_exit(0);
	}
	assert_true(asker > 0);
	pid_t answerer = fork();
	if (answerer == 0)
		answer_all(ground, tally, round);
	assert_true(answerer > 0);
	unsigned us = (unsigned)rand() % 6000;
	/* In turn: the asker dies, the answerer dies, both live. */
	kill_after(round % 3 == 1 ? answerer : asker, round % 3 == 2 ? 0 : us);
	if (round % 3 == 1) {
		/* Nobody answers any more, unless it did before. */
		usleep(2000);
		kill(asker, SIGKILL);
		waitpid(asker, NULL, 0);
	} else {
		kill(answerer, SIGKILL);
		waitpid(answerer, NULL, 0);
	}
}

static bool has_grant(const struct session_record *record, const char *card)
{
	size_t found = 0;
	for (size_t i = 0; i < record->grant_count; i++)
		found += !strcmp(record->grants[i].card, card);
	assert_true(found <= 1);
	return found;
}

/* One row for each question; a grant for each that says so, and for no other. */
static json_t *read_outcomes(struct ground *ground, const struct session_record *record)
{
	auto_free char *text = ground_ledger(ground);
	char *rest = text;
	json_t *outcomes = json_object();
	for (char *line; (line = strsep(&rest, "\n")) && *line;) {
		json_t *row = json_loads(line, 0, NULL);
		const char *id = ground_text(row, "id");
		assert_null(json_object_get(outcomes, id));
		json_object_set(outcomes, id, json_object_get(row, "outcome"));
		assert_int_equal(has_grant(record, id), !strcmp(ground_text(row, "scope"), "session"));
		json_decref(row);
	}
	return outcomes;
}

static void check_cards(struct ground *ground, const struct tally *tally)
{
	struct session_record record = ground_record(ground);
	json_t *outcomes = read_outcomes(ground, &record);
	size_t told = 0, approved = 0;
	for (int i = 0; i < KILLS; i++) {
		told += tally->told[i] == 2;
		approved += tally->card[i][0] != '\0';
		if (tally->card[i][0])
			assert_string_equal(ground_text(outcomes, tally->card[i]), "approved");
	}
	/* Nothing that was accepted is lost; the answer of one that was killed may count without its knowing. */
	assert_true(record.grant_count >= told);
	print_message("# %zu questions, %zu grants, %zu approvals that reached the asker\n", json_object_size(outcomes),
	              record.grant_count, approved);
	assert_true(told > KILLS / 8 && approved > KILLS / 8 && approved < KILLS);
	json_decref(outcomes);
}

static void test_kills(void **state)
{
	struct ground *ground = *state;
	struct tally *tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(tally, MAP_FAILED);
	srand(7);
	for (int round = 0; round < KILLS; round++)
		play_round(ground, tally, round);
	ground_sweep(ground);
	ground_sweep(ground);
	ground_assert_nothing_waits(ground);
	check_cards(ground, tally);
	munmap(tally, sizeof(*tally));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_set_up, ground_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_dead_askers), TEST(test_half_done), TEST(test_kills),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
