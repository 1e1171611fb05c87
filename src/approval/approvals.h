/* Questions that wait for a human, on disk, so that any process of the same user can answer:
 *
 *     approvals/<card>/            locked (flock) by who waits, so that what a dead one left is told from what waits
 *                      card.json   the question; gone once it is settled
 *                      answer.json the one answer; comes into place by link(), so that the first counts
 *               settled/<card>/    the answers of the last few, so that a late one is told why it is late
 *
 * Whoever has an answer, a human in a second terminal, the callback, the clock, links it there; whoever is not first
 * takes the one that was. One directory for all sessions: a card is found by its id, and listing costs what waits, not
 * what exists. A command never sees any of it: cordon's data is masked inside. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/place.h"
#include "policy/capability.h"
#include "session/registry.h"

struct json;

enum approval_outcome {
	APPROVAL_ONCE, APPROVAL_SESSION, APPROVAL_DENIED,       /* the answers a human can give */
	APPROVAL_TIMEOUT, APPROVAL_CANCELLED,                   /* what happens instead */
	APPROVAL_ABANDONED,                                     /* who asked is gone */
	APPROVAL_VOID,                                          /* an answer that does not count */
	APPROVAL_OUTCOME_MAX
};
extern const char *const approval_outcome_names[APPROVAL_OUTCOME_MAX];

struct approval_question {
	char id[ID_SIZE];
	const char *session;                    /* "" for a command without one: it can be approved once, and no more */
	const char *audit_id, *time;
	const char *tool, *program;
	const char *rule;                       /* or NULL */
	const char *hash, *content;             /* policy/card.h */
	uint64_t timeout_ms, pid;
	unsigned denials_to_pause;              /* 0: never */
	struct capability_set excess;
	struct places places;                   /* what the paths in `excess` were when it was asked */
};

/* The source of the answer, and the answer. */
struct approval_by {
	const char *door;                       /* "queue", "callback", … */
	const char *terminal;                   /* the answerer's, or NULL */
	uint64_t uid, pid;
};
/* This process, or another (`pid`). */
int approval_by_process(struct arena *arena, const char *door, int pid, struct approval_by *ret_by) must_check;

struct approval_answer {
	enum approval_outcome outcome;
	const char *hash;                       /* of the content it is about */
	const char *reason;                     /* or "" */
	const char *time;
	struct approval_by by;
};

#define APPROVAL_REASON_MAX 256         /* with the NUL */

/* ---- As text (approvals-json.c): what cordon writes and nothing else. What is written is to be free()d; NULL when
 * memory is short. */

char *approval_question_write(const struct approval_question *question);
int approval_question_read(struct arena *arena, const char *text, size_t length, struct approval_question *ret_question)
	must_check;
/* Of one that needs a newer version of cordon: which it is, so that it can be listed and denied. -1: it is no such. */
int approval_question_read_newer(struct arena *arena, const char *text, size_t length,
                                 struct approval_question *ret_question) must_check;
char *approval_answer_write(const struct approval_answer *answer);
int approval_answer_read(struct arena *arena, const char *text, size_t length, struct approval_answer *ret_answer)
	must_check;
/* The question as JSON for programs, with its content as an object; safe to print. */
char *approval_describe(const struct approval_question *question);
/* The value of "by", for the ledger too. */
void approval_by_write(struct json *json, const struct approval_by *by);

/* ---- What an answer means for the session (apply.c): changes the record, as registry_change() wants it.
 * Doing it twice is doing it once: a grant is known by its card, a denial by the hash. */

int approval_apply(struct arena *arena, struct session_record *record, const struct approval_question *question,
                   const struct approval_answer *answer) must_check;
/* Whether the same was answered before; NULL if not. A grant of paths does not count: what they name may have been
 * replaced, and whether such a grant still holds is decided elsewhere. */
const struct session_denial *approval_denied(const struct session_record *record,
                                             const struct approval_question *question);
const struct session_grant *approval_granted(const struct session_record *record,
                                             const struct approval_question *question);

/* ---- The queue (approvals.c) ------------------------------------------------------------------------------------- */

/* A question that this process waits for, or settles for one that died. */
struct approval_wait {
	int queue_fd, fd;                       /* `fd` holds the lock */
	int notify_fd;                          /* readable when there is an answer; -1 where the kernel cannot tell */
	char id[ID_SIZE];
};

int approvals_post(const char *data_dir, const struct approval_question *question, struct approval_wait *ret_wait,
                   struct cordon_error *err) must_check;
/* The answer that counts, if there is one. `ours` (may be NULL) is stored if there was none yet. An answer that cannot
 * be read is APPROVAL_VOID. */
int approvals_take(struct arena *arena, const struct approval_wait *wait, const struct approval_answer *ours,
                   struct approval_answer *ret_answer, bool *ret_found, struct cordon_error *err) must_check;
/* The question is settled: takes it out of the queue. */
void approvals_settle(struct approval_wait *wait);
/* Without that, what was posted counts as abandoned. */
void approvals_release(struct approval_wait *wait);

/* Answers it from outside. `shown` is the hash of what the answerer saw, or NULL. */
int approvals_answer(struct arena *arena, const char *data_dir, const char *id, const char *shown,
                     const struct approval_answer *answer, struct cordon_error *err) must_check;

/* After a session has ended, its questions can no longer be answered. */
#define APPROVAL_SESSION_ENDED "the session has ended"
void approvals_withdraw(struct arena *arena, const char *data_dir, const char *session, const struct approval_by *by);

/* Every question that waits and has no answer, the oldest first. */
typedef void (*approvals_each_fn)(void *arg, const struct approval_question *question);
int approvals_each(const char *data_dir, approvals_each_fn each, void *arg, struct cordon_error *err) must_check;

/* Every question whose asker died. `settle` gets it locked, or NULL in place of the question where it cannot be read;
 * true takes it out of the queue, false leaves it for the next time. Clears away what killed processes left. */
typedef bool (*approvals_stale_fn)(void *arg, struct arena *arena, const struct approval_wait *wait,
                                   const struct approval_question *question);
void approvals_each_stale(const char *data_dir, approvals_stale_fn settle, void *arg);
