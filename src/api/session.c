/* Sessions for whoever embeds the library: made, paused, resumed, ended, removed.
 *
 *              active          paused          ended
 *     pause    paused          -               -
 *     resume   -               active          -
 *     end      ended           ended           -, or only the workspace is removed
 *     remove   -               -               gone
 *
 * Each change is in the ledger before it is made, unless it stops the session: that is done whatever becomes of the
 * row, and whoever asked for it is told. What is refused is in the ledger as well. Who ends a session ends its jobs,
 * and what it asked is withdrawn. What runs finds out by itself that the session is paused, and is frozen where it can
 * be (session_wish()). */
#include <jansson.h>

#include "api/session-json.h"

#include <string.h>

#include "api/policy.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/text.h"
#include "base/utf8.h"
#include "audit/row.h"
#include "session/jobs.h"
#include "session/layers.h"
#include "walk.h"
#include "session/session-row.h"
#include "policy/capability-json.h"
#include "driver/machine.h"
#include "approval/approvals.h"
#include "session/discard.h"
#include "session/workspace.h"

#define WHY_MAX 1024

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* What belongs to each command by itself, and would be lost in a session. */
static int check_settings(const struct cordon_request *settings, struct cordon_error *err)
{
	const struct {
		bool given;
		const char *key;
	} others[] = {
		{ settings->argv.count > 0, "a command" },
		{ settings->session != NULL, "session" },
		{ settings->cwd != NULL, "cwd" },
		{ settings->driver != NULL, "driver" },
		{ settings->view != VIEW_SYSTEM, "view" },
		{ settings->tty, "tty" },
		{ settings->env.count > 0, "env" },
		{ settings->pass_env.count > 0, "pass-env" },
		{ settings->private_hosts.count > 0, "net-private" },
		{ settings->choose_toolchains, "toolchain" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i].given) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, others[i].key,
			     "this belongs to each command, not to a session");
			return fail_remedy(err, "a session keeps its workspace, what it may reach, and its limits");
		}
	return 0;
}

static int check_paths(struct arena *arena, const struct capability_set *set, struct cordon_error *err)
{
	const struct strings *const lists[] = { &set->fs_read, &set->fs_write, &set->programs, &set->devices,
		                                &set->sockets };
	struct place place;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			if (beneath_resolve(arena, lists[i]->items[j], &place, NULL, err) < 0)
				return -1;
	return 0;
}

/* What the session has on top of the configured baseline, whatever that will be when a command runs. */
static int make_baseline(struct arena *arena, const struct config *config, const struct cordon_request *settings,
                         struct session_record *first, struct cordon_error *err)
{
	static const struct capability_set nothing;
	struct capability_set granted;
	if (!settings->no_spawn && capability_same(&settings->granted, &nothing))
		return 0;
	if (capability_granted(settings, config, arena, &granted, err) < 0 || check_paths(arena, &granted, err) < 0)
		return -1;
	if (capability_normalise(arena, &granted, &first->baseline, NULL) < 0)
		return fail_oom(err);
	/* No limit at all, said on purpose, is not the same as nothing said. */
	first->baseline.limits = settings->granted.limits;
	first->baseline.spawn = !settings->no_spawn;
	first->has_baseline = true;
	return 0;
}

/* Whoever comes first to see it. */
static int end_if_idle(struct cordon *cordon, struct arena *arena, const char *id, struct session_record *record,
                       struct cordon_error *err)
{
	bool ended, found;
	if (record->state == SESSION_ENDED || !session_is_idle(cordon->data_dir, id, record->idle_expiry_s))
		return 0;
	return session_row_end_idle(cordon->ledger, cordon->data_dir, id, &ended, err) < 0 ? -1 :
	       registry_read(arena, cordon->data_dir, id, record, &found, err);
}

static int make(struct cordon *cordon, const struct config *config, struct arena *arena, const char *id,
                const struct cordon_request *settings, struct session_record *ret_record, struct cordon_error *err)
{
	struct session_record first = { .own_root = config->workspace_root };
	struct place place;
	auto_close int fd = -1;
	bool made;
	uint64_t idle_ms = settings ? settings->idle_expiry_ms : 0;
	if (registry_check_new(id, settings && settings->of_agent, err) < 0)
		return -1;
	first.idle_expiry_s = idle_ms == UINT64_MAX ? 0 : idle_ms / 1000;
	if (settings && (check_settings(settings, err) < 0 || make_baseline(arena, config, settings, &first, err) < 0))
		return -1;
	if (settings && settings->no_network && config->baseline.network != NETWORK_NONE) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "net",
		     "a session cannot be made with less than the configuration gives it");
		return fail_remedy(err, "set capabilities.network for it in a [[session]] of the configuration");
	}
	if (settings && settings->workspace) {
		if (workspace_named(arena, settings->workspace, cordon->data_dir,
		                    workspace_home(arena, request_variable(settings, "HOME")), &place, &fd, err) < 0 ||
		    workspace_refuse_among(arena, place.path, config->workspace_root, err) < 0)
			return -1;
		first.workspace = place.path;
		first.own_root = NULL;
	}
	if (workspace_make_data_dir(cordon->data_dir, err) < 0 ||
	    session_row_open(cordon->ledger, arena, cordon->data_dir, id, &first, ret_record, &made, err) < 0 ||
	    end_if_idle(cordon, arena, id, ret_record, err) < 0)
		return -1;
	if (ret_record->state != SESSION_ENDED)
		return 0;
	fail(err, CORDON_E_SESSION_ENDED, 0, id, "a session of this id has ended");
	return fail_remedy(err, "use another id, or remove the session first: cordon session rm ID");
}

int cordon_session_new(struct cordon *cordon, const char *id, const struct cordon_request *settings, char **ret_json,
                       struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct session_record record;
	const struct config *config;
	if (call_check(err, cordon, id, ret_json) < 0 || registry_check_id(id, err) < 0 ||
	    policy_take(cordon, id, &config, err) < 0)
		return -1;
	int result = make(cordon, config, &arena, id, settings, &record, err);
	if (result < 0)
		audit_refusal(cordon->ledger, id, "session new", CORDON_STEP_SESSION, err);
	else
		result = session_take_whole(cordon, config, &arena, &record, ret_json, err);
	config_unref(config);
	arena_free(&arena);
	return result;
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

enum action { PAUSE, RESUME, END, END_AND_CLEAR, REMOVE, ACTION_MAX };

/* What comes of it in each state: the next one, or why not. */
struct transition {
	enum cordon_class refusal;
	const char *reason, *remedy;
	enum session_state next;
};

#define BECOMES(state) { .next = SESSION_##state }
#define REFUSED(class, reason, remedy) { CORDON_E_##class, reason, remedy, SESSION_STATE_MAX }
#define HAS_ENDED REFUSED(SESSION_ENDED, "the session has ended", "begin another one: cordon session new ID")
#define NOT_ENDED REFUSED(INVALID_REQUEST, "the session has not ended", "end it first: cordon session end ID")

static const struct {
	const char *action, *change;
	bool stops;
	struct transition from[SESSION_STATE_MAX];
} actions[] = {
	[PAUSE] = { "session pause",
	            "paused",
	            true,
	            { [SESSION_ACTIVE] = BECOMES(PAUSED),
	              [SESSION_PAUSED] =
	                      REFUSED(INVALID_REQUEST, "the session is paused already", "see cordon session show ID"),
	              [SESSION_ENDED] = HAS_ENDED } },
	[RESUME] = { "session resume",
	             "resumed",
	             false,
	             { [SESSION_ACTIVE] = REFUSED(INVALID_REQUEST, "the session is not paused", "go on using it"),
	               [SESSION_PAUSED] = BECOMES(ACTIVE),
	               [SESSION_ENDED] = HAS_ENDED } },
	[END] = { "session end",
	          "ended",
	          true,
	          { [SESSION_ACTIVE] = BECOMES(ENDED),
	            [SESSION_PAUSED] = BECOMES(ENDED),
	            [SESSION_ENDED] = REFUSED(SESSION_ENDED, "the session has ended already",
	                                      "to forget it: cordon session rm ID") } },
	/* The workspace may be kept at first and removed later. */
	[END_AND_CLEAR] = { "session end",
	                    "ended",
	                    true,
	                    { [SESSION_ACTIVE] = BECOMES(ENDED),
	                      [SESSION_PAUSED] = BECOMES(ENDED),
	                      [SESSION_ENDED] = BECOMES(ENDED) } },
	[REMOVE] = { "session rm",
	             "removed",
	             false,
	             { [SESSION_ACTIVE] = NOT_ENDED, [SESSION_PAUSED] = NOT_ENDED, [SESSION_ENDED] = BECOMES(ENDED) } },
};
_Static_assert(ARRAY_SIZE(actions) == ACTION_MAX, "every action has a row");

struct change {
	struct cordon *cordon;
	enum action action;
	const char *why;
	bool made, unrecorded;                  /* it was, and no row says so: */
	struct cordon_error unwritten;
};

/* Under the session's lock. */
static int apply(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	struct change *change = arg;
	const struct transition *transition = &actions[change->action].from[record->state];
	bool removes = change->action == END_AND_CLEAR || change->action == REMOVE;
	bool stops = actions[change->action].stops && record->state != transition->next;
	(void)arena;
	if (transition->reason) {
		fail(err, transition->refusal, 0, record->id, "%s", transition->reason);
		fail_remedy(err, "%s", transition->remedy);
		return fail_boundary(err, "session");
	}
	/* Why it was paused is no longer so; why it ended stays with it. */
	if (record->state != SESSION_ENDED)
		record->why = change->why;
	/* After the session was resumed, what was denied before is asked about again. */
	if (change->action == RESUME)
		record->denied_in_a_row = record->denial_count = 0;
	record->state = transition->next;
	change->unrecorded = session_row_write(change->cordon->ledger, actions[change->action].change, record,
	                                       removes && !record->workspace, &change->unwritten) < 0;
	if (!change->unrecorded || stops)
		return change->action == REMOVE;
	*err = change->unwritten;
	return -1;
}

static int fail_unrecorded(const struct change *change, struct cordon_error *err)
{
	*err = change->unwritten;
	fail(err, change->unwritten.class, 0, change->unwritten.subject,
	     "the session is %s, but the ledger does not say so: %s", actions[change->action].change,
	     change->unwritten.reason);
	err->os_errno = change->unwritten.os_errno;
	fail_remedy(err, "%s", change->unwritten.remediation);
	return fail_boundary(err, change->unwritten.boundary);
}

static int change_session(struct change *change, const char *id, struct arena *arena, struct session_record *ret_record,
                          struct cordon_error *err)
{
	/* One that a newer version made can be ended and removed. */
	change->made = (change->action == PAUSE || change->action == RESUME ? registry_change : registry_change_any)(
	                       arena, change->cordon->data_dir, id, apply, change, ret_record, err) == 0;
	if (change->made && change->unrecorded)
		return fail_unrecorded(change, err);
	return change->made ? 0 : -1;
}

static int change_only(struct change *change, const char *id, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct session_record record;
	struct cordon *cordon = change->cordon;
	if (registry_check_id(id, err) < 0 || policy_check(cordon, err) < 0)
		return -1;
	int result = change_session(change, id, &arena, &record, err);
	arena_free(&arena);
	return result < 0 ?
	               audit_refusal(cordon->ledger, id, actions[change->action].action, CORDON_STEP_SESSION, err) :
	               0;
}

int cordon_session_pause(struct cordon *cordon, const char *id, const char *why, struct cordon_error *err)
{
	size_t length = why ? strlen(why) : 0;
	if (call_check(err, cordon, id) < 0)
		return -1;
	if (length > WHY_MAX || (why && (!utf8_valid(why, length) || text_has_control(why))))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, why,
		            "the reason must be UTF-8 without control characters, and not longer than 1 KiB");
	return change_only(&(struct change){ .cordon = cordon, .action = PAUSE, .why = length ? why : NULL }, id, err);
}

int cordon_session_resume(struct cordon *cordon, const char *id, struct cordon_error *err)
{
	if (call_check(err, cordon, id) < 0 ||
	    change_only(&(struct change){ .cordon = cordon, .action = RESUME }, id, err) < 0)
		return -1;
	return 0;
}

/* ---- ending and removing ----------------------------------------------------------------------------------------- */

/* One of the session's own directories, on its way out. */
struct leaving {
	const char *parent;
	struct discarded discarded;
};

static int move_aside(struct arena *arena, const char *parent, const char *id, struct leaving *ret_leaving,
                      struct cordon_error *err)
{
	const char *hash = workspace_hash(arena, id);
	if (!parent || !hash)
		return fail_oom(err);
	ret_leaving->parent = parent;
	return discard_move(parent, hash, &ret_leaving->discarded, err);
}

/* Before the session can be held exclusively. One that has not ended is not removed, and keeps its jobs. */
static int end_jobs(const struct change *change, const char *id, struct arena *arena, struct cordon_error *err)
{
	struct session_record record;
	bool found = false;
	if (registry_read_any(arena, change->cordon->data_dir, id, &record, &found, err) < 0)
		return -1;
	if (!found || actions[change->action].from[record.state].reason)
		return 0;
	return jobs_end(change->cordon->data_dir, id, err);
}

#define LEAVING_MAX 5

/* The session is not in use, and cannot be used until its directories are moved away and, if it is to be forgotten,
 * the record is removed. Only then are they deleted, which may take a while. */
static int end_and_clear(struct change *change, const char *id, struct arena *arena,
                         struct leaving leaving[LEAVING_MAX], struct cordon_error *err)
{
	struct cordon *cordon = change->cordon;
	struct session_record record;
	auto_unlock int alone = -1;
	if (end_jobs(change, id, arena, err) < 0 || registry_exclude(cordon->data_dir, id, &alone, err) < 0 ||
	    change_session(change, id, arena, &record, err) < 0 ||
	    (!record.workspace &&
	     move_aside(arena, session_workspaces(cordon, arena, &record), id, &leaving[0], err) < 0))
		return -1;
	if (change->action != REMOVE)
		return 0;
	if (move_aside(arena, session_homes(cordon, arena), id, &leaving[1], err) < 0 ||
	    move_aside(arena, session_jobs(cordon, arena), id, &leaving[2], err) < 0 ||
	    move_aside(arena, session_tmps(cordon, arena), id, &leaving[3], err) < 0 ||
	    move_aside(arena, layers_parent(arena, cordon->data_dir), id, &leaving[4], err) < 0)
		return -1;
	return registry_remove(cordon->data_dir, id, err);
}

static int end_session(struct cordon *cordon, enum action action, const char *id, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct leaving leaving[LEAVING_MAX] = { 0 };
	struct change change = { .cordon = cordon, .action = action };
	if (registry_check_id(id, err) < 0 || policy_check(cordon, err) < 0)
		return -1;
	int result = end_and_clear(&change, id, &arena, leaving, err);
	if (result == 0)
		sandboxes_lower(cordon->sandboxes, id);
	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(leaving); i++)
		if (leaving[i].parent)
			result = discard_remove(leaving[i].parent, &leaving[i].discarded, err);
	arena_free(&arena);
	return result < 0 ? audit_refusal(cordon->ledger, id, actions[action].action, CORDON_STEP_SESSION, err) : 0;
}

static void withdraw_questions(const struct cordon *cordon, const char *id)
{
	struct arena arena = { 0 };
	struct approval_by by;
	if (approval_by_process(&arena, "session", 0, &by) == 0)
		approvals_withdraw(&arena, cordon->data_dir, id, &by);
	arena_free(&arena);
}

/* Frozen processes whose supervisor was killed, so that nothing else would end them. */
static void end_abandoned(struct cordon *cordon, const char *id)
{
	const struct config *config;
	struct cordon_error untold;
	if (policy_take(cordon, id, &config, &untold) < 0)
		return;
	driver_groups_sweep(config->cgroup);
	config_unref(config);
}

int cordon_session_end(struct cordon *cordon, const char *id, bool remove_workspace, struct cordon_error *err)
{
	if (call_check(err, cordon, id) < 0 || handle_check(cordon, err) < 0)
		return -1;
	end_abandoned(cordon, id);
	if (remove_workspace)
		return end_session(cordon, END_AND_CLEAR, id, err);
	struct change change = { .cordon = cordon, .action = END };
	int result = change_only(&change, id, err);
	if (change.made)
		withdraw_questions(cordon, id);
	sandboxes_lower(cordon->sandboxes, id);
	if (result == 0)
		result = jobs_end(cordon->data_dir, id, err);
	/* If it cannot be recorded, running commands are ended nevertheless. */
	else if (err->os_errno && jobs_end(cordon->data_dir, id, NULL) == 0)
		fail_remedy(err, "its jobs were ended; %s", err->remediation);
	return result;
}

int cordon_session_remove(struct cordon *cordon, const char *id, struct cordon_error *err)
{
	return call_check(err, cordon, id) < 0 ? -1 : end_session(cordon, REMOVE, id, err);
}
