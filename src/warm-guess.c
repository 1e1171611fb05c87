/* Programs that are there before their command is decided on: see warm.h.
 *
 * What a command of some walls was started with (environment, directory, how its program was found) is mostly what the next one
 * will be: the mould's habit. A request that looks like the one it came from reserves a place before anything else, and the
 * command in it is told what the walk will probably say, with the request's own arguments. It becomes the program while
 * the walk decides, and its init holds that before its first instruction (run/init-hold.c). Step 5 lets it go if the walk came to
 * the same walls, program, environment and directory, to the letter. Else it is killed, and the command starts in another place;
 * a mould whose habit misled is not believed again before it would have been right a number of times. */
#include "warm.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/processors.h"

#define MISLED (-8)                     /* so often it has to be right then */
#define PAUSE_MS 60000                  /* where a program cannot be held */

static bool same_name(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Is the request like the one that the habit came from? Only whether it is worth trying. */
static bool is_like(const struct warm_habit *habit, const struct cordon_request *request)
{
	return habit->fresh == request->fresh && same_name(habit->session, request->session) &&
	       same_name(habit->workspace, request->workspace) && same_name(habit->asked_cwd, request->cwd) &&
	       (!habit->judged || !strcmp(habit->name, request->argv.items[0]));
}

static struct warm_ring *ring_of(struct warm *warm, const struct cordon_request *request)
{
	const char *const texts[] = { request->session, request->workspace };
	uint32_t hash = 2166136261u;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		for (const char *text = texts[i] ? texts[i] : ""; *text; text++)
			hash = (hash ^ (unsigned char)*text) * 16777619u;
	return &warm->habitual[hash % WARM_BUCKETS];
}

static struct warm_mould *of_habitual(struct warm_ring *member)
{
	return (struct warm_mould *)(void *)((char *)member - offsetof(struct warm_mould, habitual));
}

static void free_habit(struct warm_habit *habit)
{
	if (habit)
		arena_free(&habit->arena);
	free(habit);
}

void warm_habit_free(struct warm_mould *mould)
{
	free_habit(mould->habit);
	mould->habit = NULL;
}

static int copy_name(struct arena *arena, const char *name, const char **ret_copy)
{
	*ret_copy = name ? arena_strdup(arena, name) : NULL;
	return name && !*ret_copy ? -1 : 0;
}

/* NULL where memory is short. */
static struct warm_habit *new_habit(const struct execution *execution)
{
	const struct profile *profile = &execution->profile.profile;
	const struct place *program = &execution->capability.program;
	struct warm_habit *habit = calloc(1, sizeof(*habit));
	if (!habit)
		return NULL;
	memcpy(habit->id, execution->audit.id, sizeof(habit->id));
	habit->fresh = execution->request->fresh;
	habit->judged = program->path;
	habit->device = program->device;
	habit->inode = program->inode;
	if (copy_name(&habit->arena, execution->request->session, &habit->session) < 0 ||
	    copy_name(&habit->arena, execution->request->workspace, &habit->workspace) < 0 ||
	    copy_name(&habit->arena, execution->request->cwd, &habit->asked_cwd) < 0 ||
	    copy_name(&habit->arena, profile->argv.items[0], &habit->name) < 0 ||
	    copy_name(&habit->arena, profile->cwd, &habit->cwd) < 0 ||
	    warm_copy_strings(&habit->arena, &profile->environment, NULL, NULL, &habit->environment) < 0 ||
	    (habit->judged && warm_copy_strings(&habit->arena, &profile->candidates, NULL, NULL, &habit->candidates) < 0)) {
		free_habit(habit);
		return NULL;
	}
	return habit;
}

static bool is_judged_same(const struct execution *execution, bool judged, uint64_t device, uint64_t inode)
{
	const struct place *program = &execution->capability.program;
	return judged == (program->path != NULL) && (!judged || (device == program->device && inode == program->inode));
}

static bool holds_still(const struct warm_habit *habit, const struct execution *execution)
{
	const struct profile *profile = &execution->profile.profile;
	if (!is_like(habit, execution->request) || strcmp(habit->cwd, profile->cwd) ||
	    habit->environment.count != profile->environment.count ||
	    !is_judged_same(execution, habit->judged, habit->device, habit->inode) ||
	    (habit->judged && !strings_same(&habit->candidates, &profile->candidates)))
		return false;
	for (size_t i = 0; i < habit->environment.count; i++)
		if (!warm_same_text(habit->environment.items[i], habit->id, profile->environment.items[i], execution->audit.id))
			return false;
	return true;
}

void warm_habit_learn(struct warm *warm, struct warm_mould *mould, const struct execution *execution)
{
	/* Listeners belong to one command. */
	if (execution->profile.profile.egress.count)
		return;
	if (mould->habit && holds_still(mould->habit, execution)) {
		mould->trust += mould->trust < 1;
		return;
	}
	warm_habit_free(mould);
	warm_ring_leave(&mould->habitual);
	mould->habit = new_habit(execution);
	if (mould->habit)
		warm_ring_enter(ring_of(warm, execution->request), &mould->habitual);
	mould->trust = mould->trust > 0 ? 0 : mould->trust;
}

bool warm_may_hold(const struct warm *warm, const struct warm_mould *mould)
{
	uint64_t now = warm_now_ms();
	return now >= warm->unheld_ms && now >= mould->unheld_ms;
}

/* With the lock. The one used last, of those that are to be believed; a shell that waits for its line is there sooner still. */
static struct warm_mould *find_mould(struct warm *warm, const struct execution *execution)
{
	struct warm_mould *found = NULL;
	struct warm_ring *ring = ring_of(warm, execution->request);
	bool shell = warm_shell_is_for(execution);
	for (struct warm_ring *at = ring->next; at != ring; at = at->next) {
		struct warm_mould *mould = of_habitual(at);
		if (mould->places && mould->places->slot.held && mould->trust > 0 && warm_may_hold(warm, mould) && !(shell && mould->shell) &&
		    is_like(mould->habit, execution->request) && (!found || mould->used_ms > found->used_ms))
			found = mould;
	}
	return found;
}

/* With the lock: what the habit says of this request. */
static struct warm_guess *make_guess(struct execution *execution, const struct warm_mould *mould)
{
	const struct warm_habit *habit = mould->habit;
	struct arena *arena = &execution->arena;
	struct warm_guess *guess = arena_alloc(arena, sizeof(*guess));
	if (!guess)
		return NULL;
	*guess = (struct warm_guess){ .serial = mould->serial, .judged = habit->judged, .device = habit->device,
		                      .inode = habit->inode, .cwd = arena_strdup(arena, habit->cwd), .theirs = { -1, -1, -1 } };
	if (!guess->cwd ||
	    warm_copy_strings(arena, &habit->environment, habit->id, execution->audit.id, &guess->environment) < 0)
		return NULL;
	if (habit->judged)
		return warm_copy_strings(arena, &habit->candidates, NULL, NULL, &guess->candidates) < 0 ? NULL : guess;
	return profile_candidates(arena, execution->request->argv.items[0], NULL, &guess->environment, &guess->candidates) < 0 ? NULL : guess;
}

static int begin(struct execution *execution, struct warm_place *place, struct warm_guess *guess)
{
	struct cordon_error ignored;
	/* It gets up while the rest is done here. */
	if (processors_one_is_free()) {
		slot_send_away(&place->slot);
		slot_rouse(&place->slot);
	}
	if (supervise_pipes(execution->run.stdio_fd, guess->theirs) < 0)
		return -1;
	const struct launch launch = {
		.cwd = guess->cwd, .cwd_fd = -1, .candidates = guess->candidates.items, .argv = execution->request->argv.items,
		.environment = guess->environment.items, .program_judged = guess->judged,
		.program_device = guess->device, .program_inode = guess->inode,
		.stdio = { guess->theirs[0], guess->theirs[1], guess->theirs[2] },
	};
	return slot_order(&place->slot, &launch, &ignored);
}

void warm_guess(struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_place *place = NULL;
	struct warm_guess *guess = NULL;
	if (!warm || execution->run.reserved || execution->request->job || execution->request->tty || execution->probe)
		return;
	pthread_mutex_lock(&warm->lock);
	struct warm_mould *mould = find_mould(warm, execution);
	if (mould && (guess = make_guess(execution, mould)))
		place = warm_place_pop(warm, mould);
	pthread_mutex_unlock(&warm->lock);
	if (!place)
		return;
	execution->run.reserved = place;
	execution->run.guess = guess;
	if (begin(execution, place, guess) < 0)
		warm_unreserve(execution);
}

bool warm_guess_same(const struct execution *execution)
{
	const struct warm_guess *guess = execution->run.guess;
	const struct profile *profile = &execution->profile.profile;
	return !strcmp(guess->cwd, profile->cwd) && strings_same(&guess->environment, &profile->environment) &&
	       strings_same(&guess->candidates, &profile->candidates) && strings_same(&execution->request->argv, &profile->argv) &&
	       is_judged_same(execution, guess->judged, guess->device, guess->inode);
}

void warm_guess_misled(const struct execution *execution)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_ring *ring = ring_of(warm, execution->request);
	pthread_mutex_lock(&warm->lock);
	for (struct warm_ring *at = ring->next; at != ring; at = at->next)
		if (of_habitual(at)->serial == execution->run.guess->serial)
			of_habitual(at)->trust = MISLED;
	pthread_mutex_unlock(&warm->lock);
}

/* Of these walls alone, unless it was none of the program's doing. */
int warm_not_held(struct execution *execution, struct cordon_error *err)
{
	struct warm *warm = execution->cordon->warm;
	struct warm_house *house;
	struct profile_key key;
	if (err->class != CORDON_E_SESSION_BUSY)
		return -1;
	bool known = profile_walls_key(&execution->arena, &execution->profile.profile, &key) == 0;
	pthread_mutex_lock(&warm->lock);
	struct warm_mould *mould = known ? warm_mould_find(warm, warm_house_id(execution), &key, &house) : NULL;
	if (mould && strcmp(err->subject, SLOT_UNHELD))
		mould->unheld_ms = warm_now_ms() + PAUSE_MS;
	else
		warm->unheld_ms = warm_now_ms() + PAUSE_MS;
	pthread_mutex_unlock(&warm->lock);
	return -1;
}
