/* A session and a question about it. The ledger is a file of lines here, and the wall clock runs as the test wants. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "walk.h"
#include "approval/gate.h"
#include "session/registry.h"

struct ground {
	struct arena arena;
	char data[64], out[80];
	struct cordon cordon;
	struct config config;
	struct strings argv;
	struct capability_set excess, ceiling;
	struct gate_question question;
	struct gate_answer answer;
	struct cordon_error err;
};

extern bool backwards, broken_ledger;
extern bool die_after_row, die_before_settling;        /* at the two moments when half is done */

/* What a callback answers, what it does before, and what it was shown. */
struct said {
	struct ground *ground;
	enum cordon_answer answer;
	const char *reason;
	int calls;
	void (*meanwhile)(struct ground *ground, const struct cordon_card *card);
	char hash[65], session[32], json[8192], text[4096];
};

char *ground_ledger(const struct ground *ground);
int ground_set_up(void **state);
int ground_tear_down(void **state);
int ground_ask(struct ground *ground);
void ground_sweep(struct ground *ground);
struct session_record ground_record(struct ground *ground);

/* The rows of a kind; the last one, to be decref'ed. */
json_t *ground_last_row(struct ground *ground, const char *kind, size_t *ret_count);

const char *ground_text(const json_t *object, const char *key);
void ground_assert_row(struct ground *ground, size_t expected, const char *outcome, const char *scope,
                       const char *door);
void ground_assert_nothing_waits(struct ground *ground);
enum cordon_answer ground_approver(void *arg, const struct cordon_card *card, char reason[256]);
