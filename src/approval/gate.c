/* The gate: see gate.h. One question goes to everybody who can answer, and comes back with the one answer that was
 * first; which that is, is decided by the queue alone (approval/approvals.h), for the callback and the clock as for
 * everybody.
 *
 *     denied before?  nobody to ask?  ->  post  ->  callback  ->  wait  ->  settle: ledger, record
 *
 * Time is measured by the monotonic clock: what the wall clock does meanwhile does not matter. */
#include "approval/gate.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/utc.h"
#include "base/utf8.h"
#include "approval/gate-settle.h"
#include "policy/card.h"
#include "approval/approvals.h"
#include "session/beneath.h"

#define TIMEOUT_MS 120000
#define LOOK_AGAIN_MS 1000
#define LOOK_AGAIN_BLIND_MS 50          /* where the kernel cannot notify of an answer */

struct asking {
	const struct gate *gate;
	struct arena *arena;
	const struct config *config;
	const struct gate_question *question;
	const struct approver *approver;
	struct card card;
	struct approval_question posted;
	struct approval_wait wait;
	uint64_t begun_ms;
};

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t left_ms(const struct asking *asking)
{
	uint64_t passed = now_ms() - asking->begun_ms;
	return passed < asking->posted.timeout_ms ? asking->posted.timeout_ms - passed : 0;
}

static const char *subject_of(const struct gate_question *question)
{
	return question->excess_subject ? question->excess_subject : question->program;
}

/* ---- the question ------------------------------------------------------------------------------------------------ */

static int resolve(struct asking *asking, struct places *ret_places, struct cordon_error *err)
{
	const struct capability_set *excess = asking->question->excess;
	const struct strings *const lists[] = { &excess->fs_read, &excess->fs_write, &excess->programs,
		                                &excess->devices, &excess->sockets };
	struct places places = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++) {
			struct place place;
			if (beneath_resolve(asking->arena, lists[i]->items[j], &place, NULL, err) < 0)
				return fail_boundary(err, "filesystem");
			if (places_add(asking->arena, &places, &place) < 0)
				return fail_oom(err);
		}
	*ret_places = places;
	return 0;
}

/* An approval of a path holds for the file that had the path then. */
static bool is_unchanged(struct asking *asking)
{
	const struct places *places = &asking->posted.places;
	for (size_t i = 0; i < places->count; i++) {
		const struct place *was = &places->items[i];
		struct place is;
		if (beneath_resolve(asking->arena, was->alias ? was->alias : was->path, &is, NULL, NULL) < 0 ||
		    strcmp(is.path, was->path) || is.device != was->device || is.inode != was->inode)
			return false;
	}
	return true;
}

static int prepare(struct asking *asking, struct cordon_error *err)
{
	const struct gate_question *question = asking->question;
	struct approval_question *posted = &asking->posted;
	bool has_session = strcmp(question->session_id, question->audit_id) != 0;
	char now[UTC_SIZE];
	utc_now(now);
	*posted = (struct approval_question){
		.session = has_session ? question->session_id : "", .audit_id = question->audit_id,
		.time = arena_strdup(asking->arena, now), .tool = question->tool, .program = question->program,
		.rule = question->rule, .pid = (uint64_t)(asking->approver->pid ? asking->approver->pid : getpid()),
		.denials_to_pause = asking->config->approval.denials_to_pause,
		.timeout_ms = asking->config->approval.timeout_ms ? asking->config->approval.timeout_ms : TIMEOUT_MS,
	};
	id_make(posted->id);
	if (!posted->time)
		return fail_oom(err);
	if (resolve(asking, &posted->places, err) < 0)
		return -1;
	const struct card_question shown = {
		.session = posted->session,
		.tool = question->tool,
		.program = question->program,
		.cwd = question->cwd,
		.argv = question->argv,
		.env = question->env,
		.env_pass = question->env_pass,
		.excess = question->excess,
		.ceiling = question->ceiling,
		.places = &posted->places,
		.any_program = question->excess_name && !strcmp(question->excess_name, "programs") &&
		               !question->excess->programs.count,
		.rule = question->rule,
		.for_session = question->for_session,
	};
	if (card_make(asking->arena, &shown, &asking->card, err) < 0)
		return -1;
	posted->hash = asking->card.hash;
	posted->content = asking->card.content;
	posted->excess = asking->card.excess;
	return 0;
}

/* ---- without asking ---------------------------------------------------------------------------------------------- */

/* An answer of the gate's own. */
static int our_answer(struct asking *asking, enum approval_outcome outcome, const char *door, const char *reason,
                      struct approval_answer *ret_answer, struct cordon_error *err)
{
	char now[UTC_SIZE];
	utc_now(now);
	struct approval_answer answer = { .outcome = outcome, .hash = asking->card.hash, .reason = reason,
	                                  .time = arena_strdup(asking->arena, now) };
	if (!answer.time || approval_by_process(asking->arena, door, asking->approver->pid, &answer.by) < 0)
		return fail_oom(err);
	*ret_answer = answer;
	return 0;
}

/* Denies without a human; a ledger that cannot say so is the greater trouble. */
static int refuse_unasked(struct asking *asking, const char *door, const char *reason, struct cordon_error *err)
{
	struct approval_answer answer;
	struct gate_settling settling = { .question = &asking->posted, .answer = &answer };
	if (our_answer(asking, APPROVAL_DENIED, door, reason, &answer, err) < 0 ||
	    gate_record(asking->gate, &settling, err) < 0)
		return -1;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, subject_of(asking->question), "%s", reason);
	return fail_boundary(err, "approval");
}

static int refuse_remembered(struct asking *asking, const struct session_denial *denial, struct cordon_error *err)
{
	bool has_reason = denial->reason && *denial->reason;
	const char *reason = arena_printf(asking->arena, "the same was denied in this session before, at %s%s%s",
	                                  denial->time, has_reason ? ": " : "", has_reason ? denial->reason : "");
	if (!reason)
		return fail_oom(err);
	if (refuse_unasked(asking, "memory", reason, err) < 0 && err->class == CORDON_E_CAPABILITY_DENIED)
		fail_remedy(err,
		            "do without it, or have a human lift all denials of the session: cordon session pause, "
		            "then resume");
	return -1;
}

/* The session may have been paused or ended since the command began, or while the question was open. */
static int check_active(const struct session_record *record, struct cordon_error *err)
{
	if (record->state == SESSION_ACTIVE)
		return 0;
	bool paused = record->state == SESSION_PAUSED;
	fail(err, paused ? CORDON_E_SESSION_PAUSED : CORDON_E_SESSION_ENDED, 0, record->id,
	     "the session was %s while the question was open", session_state_names[record->state]);
	fail_remedy(err, paused ? "cordon session resume" : "use another session");
	return fail_boundary(err, "session");
}

/* 1: continue and ask. 0: it was approved before. */
static int consult_memory(struct asking *asking, struct gate_answer *ret_answer, struct cordon_error *err)
{
	struct session_record record;
	bool found = false;
	if (!*asking->posted.session)
		return 1;
	if (registry_read(asking->arena, asking->gate->data_dir, asking->posted.session, &record, &found, err) < 0)
		return -1;
	if (!found)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, asking->posted.session, "there is no such session");
	if (check_active(&record, err) < 0)
		return -1;
	const struct session_denial *denial = approval_denied(&record, &asking->posted);
	if (denial)
		return refuse_remembered(asking, denial, err);
	const struct session_grant *grant = approval_granted(&record, &asking->posted);
	if (!grant)
		return 1;
	*ret_answer = (struct gate_answer){ .answer = CORDON_APPROVED_SESSION };
	snprintf(ret_answer->card, sizeof(ret_answer->card), "%s", grant->card);
	return 0;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Readable once there is nothing left to ask: it was answered, or is not wanted any more. */
static int stop_asking_fd(const struct asking *asking)
{
	const int fds[] = { asking->wait.notify_fd, asking->question->ended_fd };
	int both = epoll_create1(EPOLL_CLOEXEC), watched = 0;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		watched += fds[i] >= 0 &&
		           epoll_ctl(both, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){ .events = EPOLLIN }) == 0;
	if (watched)
		return both;
	cleanup_close(&both);
	return -1;
}

cordon_approver_fn approver_fn(const struct approver *approver, const struct config *config)
{
	return approver->is_client && config->approval.own_approver ? NULL : approver->fn;
}

/* What the callback says; APPROVAL_VOID where it leaves the answer to others, or is too late. */
static int call_approver(struct asking *asking, enum approval_outcome *ret_outcome, const char **ret_reason,
                         struct cordon_error *err)
{
	char reason[APPROVAL_REASON_MAX] = "";
	auto_free char *json = approval_describe(&asking->posted);
	auto_close int over = stop_asking_fd(asking);
	struct cordon_card card = {
		.id = asking->posted.id, .session = asking->posted.session, .hash = asking->card.hash,
		.text = asking->card.text,
		.json = json, .timeout_ms = asking->posted.timeout_ms, .settled_fd = over,
	};
	static const enum approval_outcome outcomes[CORDON_ANSWER_MAX] = {
		[CORDON_UNANSWERED] = APPROVAL_VOID, [CORDON_APPROVED_ONCE] = APPROVAL_ONCE,
		[CORDON_APPROVED_SESSION] = APPROVAL_SESSION, [CORDON_DENIED] = APPROVAL_DENIED,
	};
	if (!json)
		return fail_oom(err);
	unsigned said = asking->approver->fn(asking->approver->arg, &card, reason);
	enum approval_outcome outcome = said < CORDON_ANSWER_MAX && left_ms(asking) ? outcomes[said] : APPROVAL_VOID;
	if (outcome == APPROVAL_SESSION && !*asking->posted.session)
		outcome = APPROVAL_ONCE;
	reason[sizeof(reason) - 1] = '\0';
	size_t length = outcome == APPROVAL_DENIED ? strlen(reason) : 0;
	*ret_reason = arena_strndup(asking->arena, reason, length - utf8_cut_tail(reason, length));
	*ret_outcome = outcome;
	return *ret_reason ? 0 : fail_oom(err);
}

/* Stores our answer, or finds that there was one already. */
static int answer_it(struct asking *asking, enum approval_outcome outcome, const char *door, const char *reason,
                     struct approval_answer *ret_answer, bool *ret_found, struct cordon_error *err)
{
	struct approval_answer ours;
	if (our_answer(asking, outcome, door, reason, &ours, err) < 0)
		return -1;
	return approvals_take(asking->arena, &asking->wait, &ours, ret_answer, ret_found, err);
}

static bool is_readable(const struct pollfd *ready)
{
	return ready->fd >= 0 && ready->revents;
}

static int wait_for_answer(struct asking *asking, struct approval_answer *ret_answer, struct cordon_error *err)
{
	char events[512];
	for (bool found = false;;) {
		if (approvals_take(asking->arena, &asking->wait, NULL, ret_answer, &found, err) < 0)
			return -1;
		uint64_t left = left_ms(asking),
			 most = asking->wait.notify_fd < 0 ? LOOK_AGAIN_BLIND_MS : LOOK_AGAIN_MS;
		if (!found && !left && answer_it(asking, APPROVAL_TIMEOUT, "clock", "", ret_answer, &found, err) < 0)
			return -1;
		if (found)
			return 0;
		struct pollfd ready[] = { { .fd = asking->approver->interrupt_fd, .events = POLLIN },
			                  { .fd = asking->wait.notify_fd, .events = POLLIN },
			                  { .fd = asking->question->ended_fd, .events = POLLIN } };
		poll(ready, ARRAY_SIZE(ready), (int)(left < most ? left : most));
		while (is_readable(&ready[1]) && read(ready[1].fd, events, sizeof(events)) > 0)
			;
		if (is_readable(&ready[0]) || is_readable(&ready[2]))
			return answer_it(asking, APPROVAL_CANCELLED, "caller", "", ret_answer, &found, err);
	}
}

/* The state of a session is set to ended before its questions are withdrawn. */
static bool has_ended(const struct asking *asking)
{
	struct session_look look = { 0 };
	const char *session = asking->posted.session;
	return *session && registry_look(asking->gate->data_dir, session, &look) == SESSION_ENDED;
}

static int ask(struct asking *asking, struct approval_answer *ret_answer, struct cordon_error *err)
{
	enum approval_outcome outcome = APPROVAL_VOID;
	const char *reason = "";
	bool found = false;
	if (has_ended(asking))
		return answer_it(asking, APPROVAL_CANCELLED, "session", APPROVAL_SESSION_ENDED, ret_answer, &found,
		                 err);
	if (approver_fn(asking->approver, asking->config) && call_approver(asking, &outcome, &reason, err) < 0)
		return -1;
	if (outcome == APPROVAL_VOID)
		return wait_for_answer(asking, ret_answer, err);
	return answer_it(asking, outcome, "callback", reason, ret_answer, &found, err);
}

/* ---- what it means ----------------------------------------------------------------------------------------------- */

static int refuse_denied(const struct asking *asking, const struct approval_answer *answer,
                         const struct session_record *record, bool paused, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, subject_of(asking->question), "denied by a human%s%s%s%s",
	     *answer->reason ? ": " : "", answer->reason, paused ? "; the session is paused after " : "",
	     paused ? record->why : "");
	fail_remedy(err, paused ? "cordon session resume, once it is clear what went wrong"
	                        : "do without it; in this session the same is not asked again");
	return fail_boundary(err, "approval");
}

static int refuse_unanswered(const struct asking *asking, const struct approval_answer *answer,
                             struct cordon_error *err)
{
	if (answer->outcome == APPROVAL_TIMEOUT) {
		fail(err, CORDON_E_APPROVAL_TIMEOUT, 0, subject_of(asking->question), "no answer within %ju s",
		     (uintmax_t)(asking->posted.timeout_ms + 999) / 1000);
		fail_remedy(err, "try again when an approver is available, or set approval.timeout");
	} else if (answer->outcome == APPROVAL_CANCELLED) {
		fail(err, CORDON_E_APPROVAL_TIMEOUT, 0, subject_of(asking->question),
		     "the request was interrupted before the question was answered");
		fail_remedy(err, "try again");
	} else {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, subject_of(asking->question), "the answer does not count: %s",
		     answer->reason);
		fail_remedy(err, "run it again, to be asked about what it is now");
	}
	return fail_boundary(err, "approval");
}

/* An answer counts for what was shown, and for nothing that was put in its place. */
static void judge(struct asking *asking, struct approval_answer *answer)
{
	const char *wrong = NULL;
	if (answer->outcome != APPROVAL_VOID && strcmp(answer->hash, asking->card.hash))
		wrong = "it is for another content";
	else if (answer->outcome <= APPROVAL_SESSION && !is_unchanged(asking))
		wrong = "the path was replaced while the question was open";
	else if (answer->outcome == APPROVAL_ONCE && asking->question->for_session)
		wrong = "it is for once, and what was asked for is for the session";
	if (!wrong)
		return;
	answer->outcome = APPROVAL_VOID;
	answer->reason = wrong;
}

/* A question that could not be settled is left to the next sweep. */
static int settle(struct asking *asking, struct approval_answer *answer, struct session_record *record, bool *paused,
                  struct cordon_error *err)
{
	int result = ask(asking, answer, err);
	if (result == 0) {
		struct gate_settling settling = { .question = &asking->posted, .answer = answer,
		                                  .waited_ms = now_ms() - asking->begun_ms };
		judge(asking, answer);
		result = gate_settle(asking->gate, asking->arena, &settling, record, paused, err);
	}
	if (result == 0)
		approvals_settle(&asking->wait);
	else
		approvals_release(&asking->wait);
	return result;
}

/* Where one path or host is all that is missing, it is the grant. */
static void name_grant(const struct capability_set *excess, struct cordon_error *err)
{
	const struct {
		const char *key;
		const struct strings *list;
	} grants[] = { { "read", &excess->fs_read }, { "write", &excess->fs_write }, { "net", &excess->hosts } };
	size_t total = 0;
	for (size_t i = 0; i < ARRAY_SIZE(grants); i++)
		total += grants[i].list->count;
	for (size_t i = 0; i < ARRAY_SIZE(grants) && total == 1; i++)
		if (grants[i].list->count)
			fail_grant(err, grants[i].key, grants[i].list->items[0]);
}

static int refuse_unreachable(struct asking *asking, struct cordon_error *err)
{
	refuse_unasked(asking, "nobody", "approval is required, but no approver is available", err);
	if (err->class == CORDON_E_CAPABILITY_DENIED)
		fail_remedy(err, "have it granted beforehand (cordon session new), run it from a terminal, or set "
		            "approval.queue and answer with cordon approvals");
	if (asking->question->excess)
		name_grant(asking->question->excess, err);
	return -1;
}

int gate_ask(const struct gate *gate, struct arena *arena, const struct config *config,
             const struct gate_question *question, struct gate_answer *ret_answer, struct cordon_error *err)
{
	struct asking asking = { .gate = gate, .arena = arena, .config = config, .question = question,
	                         .approver = question->approver ? question->approver : gate->approver };
	struct approval_answer answer;
	struct session_record record = { .state = SESSION_ACTIVE };
	bool paused = false;
	gate_sweep(gate);
	if (prepare(&asking, err) < 0)
		return -1;
	int remembered = consult_memory(&asking, ret_answer, err);
	if (remembered <= 0)
		return remembered;
	if (!approver_fn(asking.approver, config) && !config->approval.queue)
		return refuse_unreachable(&asking, err);
	if (approvals_post(gate->data_dir, &asking.posted, &asking.wait, err) < 0)
		return -1;
	asking.begun_ms = now_ms();
	if (settle(&asking, &answer, &record, &paused, err) < 0)
		return -1;
	if (record.state == SESSION_ENDED)
		return check_active(&record, err);
	if (answer.outcome == APPROVAL_DENIED)
		return refuse_denied(&asking, &answer, &record, paused, err);
	if (answer.outcome > APPROVAL_SESSION)
		return refuse_unanswered(&asking, &answer, err);
	if (check_active(&record, err) < 0)
		return -1;
	ret_answer->answer = answer.outcome == APPROVAL_ONCE ? CORDON_APPROVED_ONCE : CORDON_APPROVED_SESSION;
	memcpy(ret_answer->card, asking.posted.id, sizeof(ret_answer->card));
	return 0;
}
