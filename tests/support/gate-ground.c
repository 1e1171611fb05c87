/* See gate-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "api/policy.h"
#include "audit/row.h"
#include "base/json.h"
#include "base/remove.h"
#include "walk.h"
#include "approval/gate.h"
#include "approval/approvals.h"
#include "session/registry.h"
#include "gate-ground.h"

#include <cmocka.h>

bool backwards, broken_ledger, die_after_row, die_before_settling;

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

int audit_refusal(struct ledger *ledger, const char *session_id, const char *action, enum cordon_step step,
                  struct cordon_error *err)
{
	(void)ledger;
	(void)session_id;
	(void)action;
	err->step = step;
	return -1;
}

/* Of the test that runs. */
static const char *data_dir;

static int open_ledger(const char *directory)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/ledger", directory);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/ledger/2026-01-31.jsonl", directory);
	return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

int audit_row_end(struct json *json, struct ledger *ledger, struct cordon_error *err)
{
	json_object_end(json);
	auto_free char *line = json_take(json);
	auto_close int fd = open_ledger(data_dir);
	(void)ledger;
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

char *ground_ledger(const struct ground *ground)
{
	auto_close int fd = open_ledger(ground->data);
	struct stat info;
	assert_int_equal(fstat(fd, &info), 0);
	char *text = calloc(1, (size_t)info.st_size + 1);
	assert_int_equal(pread(fd, text, (size_t)info.st_size, 0), info.st_size);
	return text;
}

int ground_set_up(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	struct session_record record;
	bool made;
	/* In memory, where that can be: a record with answers in it is synced to disk. */
	strcpy(ground->data, access("/dev/shm", W_OK) == 0 ? "/dev/shm/cordon-gate-XXXXXX" : "/tmp/cordon-gate-XXXXXX");
	assert_non_null(mkdtemp(ground->data));
	data_dir = ground->data;
	snprintf(ground->out, sizeof(ground->out), "%s/out", ground->data);
	assert_int_equal(mkdir(ground->out, 0700), 0);
	ground->cordon = (struct cordon){ .data_dir = ground->data, .approver.interrupt_fd = -1 };
	ground->config.approval.denials_to_pause = 3;
	ground->config.approval.queue = true;
	assert_int_equal(strings_add(&ground->arena, &ground->argv, "make"), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->argv, "secret-argument"), 0);
	assert_int_equal(strings_add(&ground->arena, &ground->excess.fs_write, ground->out), 0);
	ground->question = (struct gate_question){ .session_id = "s",
		                                   .audit_id = "AUDIT",
		                                   .tool = "run",
		                                   .argv = &ground->argv,
		                                   .program = "/usr/bin/make",
		                                   .cwd = "/work",
		                                   .excess = &ground->excess,
		                                   .ceiling = &ground->ceiling,
		                                   .excess_name = "fs_write",
		                                   .excess_subject = ground->out,
		                                   .ended_fd = -1 };
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", NULL, &record, &made, &ground->err), 0);
	*state = ground;
	return 0;
}

int ground_tear_down(void **state)
{
	struct ground *ground = *state;
	backwards = broken_ledger = false;
	int left = remove_tree(AT_FDCWD, ground->data);
	arena_free(&ground->arena);
	free(ground);
	return left;
}

int ground_ask(struct ground *ground)
{
	const struct gate gate = handle_gate(&ground->cordon);
	return gate_ask(&gate, &ground->arena, &ground->config, &ground->question, &ground->answer, &ground->err);
}

void ground_sweep(struct ground *ground)
{
	const struct gate gate = handle_gate(&ground->cordon);
	gate_sweep(&gate);
}

struct session_record ground_record(struct ground *ground)
{
	struct session_record record = { 0 };
	bool found;
	assert_int_equal(registry_read(&ground->arena, ground->data, "s", &record, &found, &ground->err), 0);
	assert_true(found);
	return record;
}

json_t *ground_last_row(struct ground *ground, const char *kind, size_t *ret_count)
{
	auto_free char *text = ground_ledger(ground);
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

const char *ground_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "(none)";
}

void ground_assert_row(struct ground *ground, size_t expected, const char *outcome, const char *scope, const char *door)
{
	size_t count;
	json_t *row = ground_last_row(ground, "approval", &count);
	assert_int_equal(count, expected);
	assert_string_equal(ground_text(row, "outcome"), outcome);
	assert_string_equal(ground_text(row, "scope"), scope);
	assert_string_equal(ground_text(json_object_get(row, "by"), "door"), door);
	assert_string_equal(ground_text(row, "audit_id"), "AUDIT");
	assert_int_equal(strlen(ground_text(row, "hash")), 64);
	assert_non_null(json_object_get(json_object_get(row, "asks_for"), "fs_write"));
	json_decref(row);
}

void ground_assert_nothing_waits(struct ground *ground)
{
	auto_free char *json = NULL;
	assert_int_equal(cordon_approvals_list(&ground->cordon, &json, &ground->err), 0);
	assert_string_equal(json, "{\"approvals\":[]}");
}

enum cordon_answer ground_approver(void *arg, const struct cordon_card *card, char reason[256])
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
