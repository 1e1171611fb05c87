/* The gate: every outcome, who is asked, what is remembered, and that whatever dies when, no approval is lost or doubled.
 * The ledger is a file of lines here, and the wall clock runs as the test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "api/policy.h"
#include "base/json.h"
#include "base/remove.h"
#include "base/utc.h"
#include "execute.h"
#include "gate.h"
#include "session/approvals.h"
#include "session/registry.h"

#include <cmocka.h>

#define KILLS 200

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

/* ---- the ledger and the clock of this test ----------------------------------------------------------------------- */

static bool backwards, broken_ledger;
static bool die_after_row, die_before_settling;        /* at the two moments when half is done */

int clock_gettime(clockid_t id, struct timespec *now)
{
	static __thread time_t turned;
	int result = (int)syscall(SYS_clock_gettime, id, now);
	if (id == CLOCK_REALTIME && backwards)
		now->tv_sec -= ++turned * 3600;
	return result;
}

void audit_row_begin(struct json *json, const char *kind, const char *id, const char *session_id)
{
	json_init(json);
	json_object_begin(json);
	json_key_string(json, "row", kind);
	json_key_string(json, "id", id);
	json_key_string(json, "session", session_id);
}

/* The public calls ask whether they are switched on, and record what they refuse; end-to-end tests look at both. */
int policy_check(struct cordon *cordon, struct cordon_error *err)
{
	(void)cordon;
	(void)err;
	return 0;
}

int audit_refusal(struct cordon *cordon, const char *session_id, const char *action, enum cordon_step step,
                  struct cordon_error *err)
{
	(void)cordon;
	(void)session_id;
	(void)action;
	err->step = step;
	return -1;
}

static int open_ledger(const struct cordon *cordon)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/ledger", cordon->data_dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/ledger/2026-01-31.jsonl", cordon->data_dir);
	return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

int audit_row_end(struct json *json, struct cordon *cordon, struct cordon_error *err)
{
	json_object_end(json);
	auto_free char *line = json_take(json);
	auto_close int fd = open_ledger(cordon);
	char *text = NULL;
	if (broken_ledger)
		return (fail)(err, CORDON_E_AUDIT_UNAVAILABLE, ENOSPC, NULL, "full");
	int length = asprintf(&text, "%s\n", line);
	int result = length > 0 && write(fd, text, (size_t)length) == length ? 0 : -1;
	free(text);
	if (die_after_row)
		raise(SIGKILL);
	return result;
}

int unlinkat(int fd, const char *name, int flags)
{
	if (die_before_settling && !strcmp(name, "card.json"))
		raise(SIGKILL);
	return (int)syscall(SYS_unlinkat, fd, name, flags);
}

static char *read_ledger(const struct cordon *cordon)
{
	auto_close int fd = open_ledger(cordon);
	struct stat info;
	assert_int_equal(fstat(fd, &info), 0);
	char *text = calloc(1, (size_t)info.st_size + 1);
	assert_int_equal(pread(fd, text, (size_t)info.st_size, 0), info.st_size);
	return text;
}

/* ---- a session, and a question about it -------------------------------------------------------------------------- */

static int set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	struct session_record record;
	bool made;
	/* In memory, where that can be: a record with answers in it is synced to disk. */
	strcpy(ground->data, access("/dev/shm", W_OK) == 0 ? "/dev/shm/cordon-gate-XXXXXX" : "/tmp/cordon-gate-XXXXXX");
	assert_non_null(mkdtemp(ground->data));
	snprintf(ground->out, sizeof(ground->out), "%s/out", ground->data);
	assert_int_equal(mkdir(ground->out, 0700), 0);
	ground->cordon = (struct cordon){ .data_dir = ground->data, .approver.interrupt_fd = -1 };
	ground->config.approval.denials_to_pause = 3;
	ground->config.approval.queue = true;
	assert_int_equal(strings_add(&ground->arena, &ground->argv, "make"), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->argv, "secret-argument"), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->excess.fs_write, ground->out), 0);
	ground->question = (struct gate_question){ .session_id = "s", .audit_id = "AUDIT", .tool = "run", .argv = &ground->argv,
		.program = "/usr/bin/make", .cwd = "/work", .excess = &ground->excess, .ceiling = &ground->ceiling,
		.excess_name = "fs_write", .excess_subject = ground->out, .ended_fd = -1 };
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", NULL, &record, &made, &ground->err), 0);
	*state = ground;
	return 0;
}

static int tear_down(void **state)
{
	struct ground *ground = *state;
	backwards = broken_ledger = false;
	int left = remove_tree(AT_FDCWD, ground->data);
	arena_free(&ground->arena);
	free(ground);
	return left;
}

static int ask(struct ground *ground)
{
	return gate_ask(&ground->cordon, &ground->arena, &ground->config, &ground->question, &ground->answer, &ground->err);
}

static struct session_record record_of(struct ground *ground)
{
	struct session_record record = { 0 };
	bool found;
	assert_int_equal(registry_read(&ground->arena, ground->data, "s", &record, &found, &ground->err), 0);
	assert_true(found);
	return record;
}

/* The rows of a kind; the last one, to be decref'ed. */
static json_t *last_row(struct ground *ground, const char *kind, size_t *ret_count)
{
	auto_free char *text = read_ledger(&ground->cordon);
	char *rest = text;
	json_t *last = NULL;
	*ret_count = 0;
	for (char *line; (line = strsep(&rest, "\n")) && *line;) {
		json_t *row = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(row);
		bool wanted = !strcmp(json_string_value(json_object_get(row, "row")), kind);
		*ret_count += wanted;
		json_decref(wanted ? last : row);
		last = wanted ? row : last;
	}
	assert_null(strstr(text ? text : "", "secret-argument"));
	return last;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "(none)";
}

static void assert_row(struct ground *ground, size_t expected, const char *outcome, const char *scope, const char *door)
{
	size_t count;
	json_t *row = last_row(ground, "approval", &count);
	assert_int_equal(count, expected);
	assert_string_equal(text_of(row, "outcome"), outcome);
	assert_string_equal(text_of(row, "scope"), scope);
	assert_string_equal(text_of(json_object_get(row, "by"), "door"), door);
	assert_string_equal(text_of(row, "audit_id"), "AUDIT");
	assert_int_equal(strlen(text_of(row, "hash")), 64);
	assert_non_null(json_object_get(json_object_get(row, "asks_for"), "fs_write"));
	json_decref(row);
}

static void assert_nothing_waits(struct ground *ground)
{
	auto_free char *json = NULL;
	assert_int_equal(cordon_approvals_list(&ground->cordon, &json, &ground->err), 0);
	assert_string_equal(json, "{\"approvals\":[]}");
}

/* ---- the callback ------------------------------------------------------------------------------------------------ */

struct said {
	struct ground *ground;
	enum cordon_answer answer;
	const char *reason;
	int calls;
	void (*meanwhile)(struct ground *ground, const struct cordon_card *card);
	char hash[65], session[32], json[8192], text[4096];
};

static enum cordon_answer approver(void *arg, const struct cordon_card *card, char reason[256])
{
	struct said *said = arg;
	said->calls++;
	snprintf(said->hash, sizeof(said->hash), "%s", card->hash);
	snprintf(said->session, sizeof(said->session), "%s", card->session);
	snprintf(said->json, sizeof(said->json), "%s", card->json);
	snprintf(said->text, sizeof(said->text), "%s", card->text);
	if (said->meanwhile)
		said->meanwhile(said->ground, card);
	if (said->reason)
		snprintf(reason, 256, "%s", said->reason);
	return said->answer;
}

static void test_approved_once(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_ONCE };
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), 0);
	assert_int_equal(ground->answer.answer, CORDON_APPROVED_ONCE);
	assert_int_equal(record_of(ground).grant_count, 0);
	assert_row(ground, 1, "approved", "once", "callback");
	assert_non_null(strstr(said.text, "make secret-argument"));
	assert_string_equal(said.session, "s");
	json_t *card = json_loads(said.json, 0, NULL);
	assert_string_equal(text_of(card, "hash"), said.hash);
	assert_string_equal(text_of(json_object_get(card, "content"), "text"), said.text);
	json_decref(card);
	assert_nothing_waits(ground);
	/* Once is once. */
	assert_int_equal(ask(ground), 0);
	assert_int_equal(said.calls, 2);
}

static void test_approved_for_the_session(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	struct stat info;
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), 0);
	assert_int_equal(ground->answer.answer, CORDON_APPROVED_SESSION);
	assert_row(ground, 1, "approved", "session", "callback");
	struct session_record record = record_of(ground);
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
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_string_equal(ground->err.subject, ground->out);
	assert_non_null(strstr(ground->err.reason, "denied by a human: not "));
	assert_string_equal(ground->err.boundary, "approval");
	assert_row(ground, 1, "denied", "(none)", "callback");
	said.answer = CORDON_APPROVED_ONCE;
	assert_int_equal(ask(ground), -1);
	assert_int_equal(said.calls, 1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "denied in this session before"));
	assert_non_null(strstr(ground->err.remediation, "cordon session pause, then resume"));
	assert_row(ground, 2, "denied", "(none)", "memory");
	assert_int_equal(record_of(ground).denied_in_a_row, 1);
	/* Another request is another question. */
	ground->argv.items[1] = "other";
	assert_int_equal(ask(ground), 0);
	assert_int_equal(said.calls, 2);
	assert_int_equal(record_of(ground).denied_in_a_row, 0);
}

static void test_three_denials_pause(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_DENIED };
	static const char *const words[] = { "1", "2", "3" };
	size_t count;
	cordon_approver(&ground->cordon, approver, &said);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		assert_int_equal(record_of(ground).state, SESSION_ACTIVE);
		ground->argv.items[1] = words[i];
		assert_int_equal(ask(ground), -1);
		assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	}
	assert_non_null(strstr(ground->err.reason, "the session is paused after 3 denials in a row"));
	assert_non_null(strstr(ground->err.remediation, "resume"));
	assert_int_equal(record_of(ground).state, SESSION_PAUSED);
	json_t *row = last_row(ground, "session", &count);
	assert_int_equal(count, 1);
	assert_string_equal(text_of(row, "session"), "s");
	json_decref(row);
}

static void test_nobody_to_ask(void **state)
{
	struct ground *ground = *state;
	ground->config.approval.queue = false;
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "nobody can be asked"));
	assert_row(ground, 1, "denied", "(none)", "nobody");
	/* It is no human's denial. */
	assert_int_equal(record_of(ground).denial_count, 0);
	assert_int_equal(record_of(ground).denied_in_a_row, 0);
}

static void test_timeout(void **state)
{
	struct ground *ground = *state;
	backwards = true;
	ground->config.approval.timeout_ms = 120;
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	assert_row(ground, 1, "timeout", "(none)", "clock");
	assert_int_equal(record_of(ground).denial_count, 0);
	/* Not remembered: it is asked again. */
	struct said said = { .answer = CORDON_APPROVED_ONCE };
	ground->config.approval.timeout_ms = 0;
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), 0);
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
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	assert_row(ground, 1, "timeout", "(none)", "clock");
}

/* ---- two who answer ---------------------------------------------------------------------------------------------- */

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
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "elsewhere"));
	assert_row(ground, 1, "denied", "(none)", "queue");
	assert_int_equal(record_of(ground).grant_count, 0);
}

static void answer_with_another_hash(struct ground *ground, const struct cordon_card *card)
{
	char wrong[65];
	snprintf(wrong, sizeof(wrong), "%s", card->hash);
	wrong[0] = wrong[0] == '0' ? '1' : '0';
	assert_int_equal(cordon_approvals_answer(&ground->cordon, card->id, wrong, CORDON_APPROVED_ONCE, NULL, &ground->err), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	/* One that was put there by other means. */
	char path[256];
	snprintf(path, sizeof(path), "%s/approvals/%s/answer.json", ground->data, card->id);
	struct approval_answer answer = { .outcome = APPROVAL_SESSION, .hash = wrong, .reason = "", .time = "", .by.door = "x" };
	auto_free char *text = approval_answer_write(&answer);
	FILE *file = fopen(path, "w");
	assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_an_answer_for_another_content(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .meanwhile = answer_with_another_hash };
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "another content"));
	assert_row(ground, 1, "void", "(none)", "x");
	assert_int_equal(record_of(ground).grant_count, 0);
	assert_int_equal(record_of(ground).denial_count, 0);
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
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground->err.reason, "replaced"));
	assert_row(ground, 1, "void", "(none)", "callback");
	assert_int_equal(record_of(ground).grant_count, 0);
	/* A grant that was given earlier says nothing about what stands there now: it is asked again. */
	said.meanwhile = NULL;
	assert_int_equal(ask(ground), 0);
	replace_place(ground, NULL);
	assert_int_equal(ask(ground), 0);
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
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_SESSION_PAUSED);
}

static void test_without_a_session(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	ground->question.session_id = "AUDIT";
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), 0);
	assert_int_equal(ground->answer.answer, CORDON_APPROVED_ONCE);
	assert_string_equal(said.session, "");
	said.answer = CORDON_DENIED;
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(said.calls, 3);
}

static void test_what_a_rule_asks(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	ground->excess = (struct capability_set){ 0 };
	ground->question.excess_name = ground->question.excess_subject = NULL;
	ground->question.rule = "ask about make: config.toml:1:1";
	cordon_approver(&ground->cordon, approver, &said);
	assert_int_equal(ask(ground), 0);
	char card[ID_SIZE];
	memcpy(card, ground->answer.card, sizeof(card));
	assert_int_equal(ask(ground), 0);
	assert_int_equal(said.calls, 1);
	assert_string_equal(ground->answer.card, card);
	ground->argv.items[1] = "other";
	assert_int_equal(ask(ground), 0);
	assert_int_equal(said.calls, 2);
}

static void test_interrupted(void **state)
{
	struct ground *ground = *state;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	cordon_approver_interrupt(&ground->cordon, ends[0]);
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	assert_row(ground, 1, "cancelled", "(none)", "caller");
	close(ends[0]);
	close(ends[1]);
}

static void test_an_approver_of_its_own(void **state)
{
	struct ground *ground = *state;
	struct said said = { .ground = ground, .answer = CORDON_DENIED }, own = { .ground = ground, .answer = CORDON_APPROVED_ONCE };
	const struct approver other = { approver, &own, -1 }, nobody = { NULL, NULL, -1 };
	cordon_approver(&ground->cordon, approver, &said);
	ground->question.approver = &other;
	assert_int_equal(ask(ground), 0);
	assert_int_equal(own.calls, 1);
	ground->question.approver = &nobody;
	ground->config.approval.queue = false;
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(said.calls, 0);
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
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_APPROVAL_TIMEOUT);
	assert_row(ground, 1, "cancelled", "(none)", "caller");
	cordon_approver(&ground->cordon, NULL, NULL);
	assert_int_equal(ask(ground), -1);
	assert_row(ground, 2, "cancelled", "(none)", "caller");
	close(ends[0]);
	close(ends[1]);
}

static void test_a_ledger_that_cannot_be_written(void **state)
{
	struct ground *ground = *state;
	struct said said = { .answer = CORDON_APPROVED_SESSION };
	cordon_approver(&ground->cordon, approver, &said);
	broken_ledger = true;
	assert_int_equal(ask(ground), -1);
	assert_int_equal(ground->err.class, CORDON_E_AUDIT_UNAVAILABLE);
	assert_int_equal(record_of(ground).grant_count, 0);
	/* The human said yes: it is not lost. */
	broken_ledger = false;
	gate_sweep(&ground->cordon);
	assert_int_equal(record_of(ground).grant_count, 1);
	assert_row(ground, 1, "approved", "session", "callback");
}

/* ---- those who die ----------------------------------------------------------------------------------------------- */

static enum cordon_answer die(void *arg, const struct cordon_card *card, char reason[256])
{
	const struct said *said = arg;
	struct cordon other = { .data_dir = said->ground->data, .approver.interrupt_fd = -1 };
	(void)reason;
	if (said->answer && cordon_approvals_answer(&other, card->id, NULL, said->answer, "said", &said->ground->err) < 0)
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
		ask(ground);
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
	gate_sweep(&ground->cordon);
	assert_row(ground, 1, "abandoned", "(none)", "sweep");
	ask_and_die(ground, CORDON_APPROVED_ONCE);
	gate_sweep(&ground->cordon);
	assert_row(ground, 2, "abandoned", "(none)", "queue");
	assert_int_equal(record_of(ground).grant_count, 0);
	ask_and_die(ground, CORDON_APPROVED_SESSION);
	assert_int_equal(record_of(ground).grant_count, 0);
	/* Whoever asks next finds it. */
	ground->config.approval.queue = false;
	ground->argv.items[1] = "next";
	assert_int_equal(ask(ground), -1);
	assert_int_equal(record_of(ground).grant_count, 1);
	ground->config.approval.queue = true;
	gate_sweep(&ground->cordon);
	assert_int_equal(record_of(ground).grant_count, 1);
	ask_and_die(ground, CORDON_DENIED);
	gate_sweep(&ground->cordon);
	assert_int_equal(record_of(ground).denial_count, 1);
	assert_int_equal(record_of(ground).denied_in_a_row, 1);
	assert_nothing_waits(ground);
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
				cordon_approver(&ground->cordon, approver, &said);
				ask(ground);
				_exit(1);
			}
			int status;
			assert_int_equal(waitpid(child, &status, 0), child);
			assert_true(WIFSIGNALED(status));
			gate_sweep(&ground->cordon);
			gate_sweep(&ground->cordon);
			json_decref(last_row(ground, "approval", &count));
			assert_int_equal(count, ++rows);
			assert_int_equal(record_of(ground).grant_count, moment + (i >= 1));
			assert_int_equal(record_of(ground).denial_count, moment + (i >= 2));
		}
	assert_nothing_waits(ground);
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
		if (ask(ground) == 0)
			memcpy(tally->card[round], ground->answer.card, ID_SIZE);
		_exit(0);
	}
	pid_t answerer = fork();
	if (answerer == 0)
		answer_all(ground, tally, round);
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
	auto_free char *text = read_ledger(&ground->cordon);
	char *rest = text;
	json_t *outcomes = json_object();
	for (char *line; (line = strsep(&rest, "\n")) && *line;) {
		json_t *row = json_loads(line, 0, NULL);
		const char *id = text_of(row, "id");
		assert_null(json_object_get(outcomes, id));
		json_object_set(outcomes, id, json_object_get(row, "outcome"));
		assert_int_equal(has_grant(record, id), !strcmp(text_of(row, "scope"), "session"));
		json_decref(row);
	}
	return outcomes;
}

static void check_cards(struct ground *ground, const struct tally *tally)
{
	struct session_record record = record_of(ground);
	json_t *outcomes = read_outcomes(ground, &record);
	size_t told = 0, approved = 0;
	for (int i = 0; i < KILLS; i++) {
		told += tally->told[i] == 2;
		approved += tally->card[i][0] != '\0';
		if (tally->card[i][0])
			assert_string_equal(text_of(outcomes, tally->card[i]), "approved");
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
	gate_sweep(&ground->cordon);
	gate_sweep(&ground->cordon);
	assert_nothing_waits(ground);
	check_cards(ground, tally);
	munmap(tally, sizeof(*tally));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_approved_once), TEST(test_approved_for_the_session), TEST(test_denied_and_remembered),
		TEST(test_three_denials_pause), TEST(test_nobody_to_ask), TEST(test_timeout),
		TEST(test_a_callback_that_is_too_late), TEST(test_an_approver_of_its_own), TEST(test_two_approvers),
		TEST(test_an_answer_for_another_content),
		TEST(test_a_place_that_is_replaced), TEST(test_a_session_that_is_paused_meanwhile), TEST(test_without_a_session),
		TEST(test_what_a_rule_asks), TEST(test_interrupted), TEST(test_not_wanted_any_more), TEST(test_a_ledger_that_cannot_be_written),
		TEST(test_dead_askers), TEST(test_half_done), TEST(test_kills),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
