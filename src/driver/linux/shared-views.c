/* The sandbox of a session, as the commands that run in it see it: its views, and the names that are covered in them.
 * See shared.h for the parts, and driver/driver.h for what `enter` promises. */
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/compat.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/running.h"
#include "profile/seccomp.h"

#define ADD_TRIES 2             /* names come and go while a view is made */
#define VIEWS_MAX 4             /* of which nothing runs in the older ones: one that is needed again is there */

/* What driver.h knows by this name. */
struct sandbox_view {
	struct sandbox_view *next;
	struct arena arena;
	struct shared_view view;
	struct profile_key key;                 /* of its walls, names and network left out */
	uint64_t mounts;                        /* the version of the host's mounts that it shows */
	struct mount_op *covers;                /* names that are covered in it */
	size_t cover_count, cover_capacity;
	unsigned running;
};

struct shared {
	struct shared_sandbox up;
	struct sandbox_view *views;             /* the newest first */
	int *listeners;                         /* made with it, until they are taken; or NULL */
	size_t listener_count;
	bool begun_in_host;                     /* its init is in the network of the host; then */
	int network_fd;                         /* is the sandbox's own network, once it has one; -1 */
	int landlock_abi;
	atomic_uint running;                    /* commands in all views */
};

static struct shared *shared_of(const struct sandbox *sandbox)
{
	return ((const struct linux_sandbox *)sandbox)->shared;
}

static bool is_cover(const struct mount_op *op)
{
	return op->kind == MOUNT_MASK || op->kind == MOUNT_FREEZE || op->kind == MOUNT_PIN;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static void free_view(struct sandbox_view *view)
{
	if (!view)
		return;
	shared_close_view(&view->view);
	free(view->covers);
	arena_free(&view->arena);
	free(view);
}

static int remember_cover(struct sandbox_view *view, const struct mount_op *op)
{
	if (view->cover_count == view->cover_capacity) {
		size_t capacity = view->cover_capacity ? 2 * view->cover_capacity : 16;
		struct mount_op *covers = realloc(view->covers, capacity * sizeof(*covers));
		if (!covers)
			return -1;
		view->covers = covers;
		view->cover_capacity = capacity;
	}
	struct mount_op copy = *op;
	copy.source = NULL;
	copy.target = arena_strdup(&view->arena, op->target);
	if (!copy.target)
		return -1;
	view->covers[view->cover_count++] = copy;
	return 0;
}

static struct sandbox_view *new_view(const struct walls *walls, const struct profile_key *key)
{
	const struct mount_plan *plan = &walls->profile->mounts;
	struct sandbox_view *view = calloc(1, sizeof(*view));
	if (!view)
		return NULL;
	view->view = SHARED_NO_VIEW;
	char *bytes = arena_alloc(&view->arena, key->length);
	bool kept = bytes;
	for (size_t i = 0; i < plan->count && kept; i++)
		kept = !is_cover(&plan->ops[i]) || remember_cover(view, &plan->ops[i]) == 0;
	if (!kept) {
		free_view(view);
		return NULL;
	}
	memcpy(bytes, key->bytes, key->length);
	view->key = (struct profile_key){ bytes, key->length };
	view->mounts = walls->mounts;
	return view;
}

/* Its first one stays, because with its starter the sandbox would end. */
static void close_old_views(struct shared *shared)
{
	unsigned count = 0;
	for (struct sandbox_view **at = &shared->views; *at;) {
		struct sandbox_view *view = *at;
		if (++count <= VIEWS_MAX || view->running || !view->next) {
			at = &view->next;
			continue;
		}
		*at = view->next;
		free_view(view);
	}
}

/* What the driver makes of the walls, for a starter instead of a command. */
static int prepare(const struct linux_sandbox *sandbox, const struct walls *walls, struct launch *launch,
                   struct driver_held *held, struct cordon_error *err)
{
	struct profile profile = *walls->profile;
	/* A starter forks; a command that may not gives that up by itself. */
	profile.seccomp &= ~(unsigned)SECCOMP_NO_SPAWN;
	*launch = (struct launch){ 0 };
	if (linux_driver(sandbox->sandbox.driver)->prepare(walls->arena, &profile, &sandbox->facts, launch, held, err) <
	    0)
		return -1;
	/* Commands of one session signal each other, also across a grant; the pid namespace holds the wall. The
	 * network namespace holds the one of abstract sockets. */
	launch->seal.landlock_scopes &= profile.network == NETWORK_ALL ? LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET : 0;
	launch->check_program = false;
	launch->own_session = true;
	launch->umask = 0;
	return 0;
}

int shared_new(struct linux_sandbox *sandbox, const struct walls *walls, struct cordon_error *err)
{
	struct launch launch = { 0 };
	struct driver_held held = { 0 };
	struct profile_key key;
	struct shared *shared = sandbox->shared = calloc(1, sizeof(*shared));
	if (!shared)
		return fail_oom(err);
	*shared = (struct shared){ .up = SHARED_NONE,
		                   .listener_count = walls->profile->egress.count,
		                   .begun_in_host = walls->profile->network == NETWORK_ALL,
		                   .network_fd = -1 };
	shared->listeners = malloc((shared->listener_count + 1) * sizeof(*shared->listeners));
	for (size_t i = 0; shared->listeners && i < shared->listener_count; i++)
		shared->listeners[i] = -1;
	if (profile_session_key(walls->arena, walls->profile, &key) == 0)
		shared->views = new_view(walls, &key);
	int result =
		!shared->views || !shared->listeners ? fail_oom(err) : prepare(sandbox, walls, &launch, &held, err);
	if (result == 0)
		result = shared_raise(&launch, &shared->up, &shared->views->view, shared->listeners, err);
	driver_release(&held);
	shared->landlock_abi = launch.seal.landlock_abi;
	sandbox->launch.become = launch.become;
	sandbox->launch.seal.landlock_abi = launch.seal.landlock_abi;
	return result;
}

/* The sandbox's own network, which its init is not in. */
static int keep_network(struct shared *shared, const struct shared_view *view, struct cordon_error *err)
{
	auto_close int user = -1;
	int found = pidfd_network(view->pidfd, &user, &shared->network_fd);
	return found < 0 ? fail(err, CORDON_E_INTERNAL, -found, "setns", "cannot reach the sandbox's network") : 0;
}

int shared_network(const struct shared *shared, int *ret_user, int *ret_network)
{
	if (!shared->begun_in_host)
		return pidfd_network(shared->up.pidfd, ret_user, ret_network);
	auto_close int network = shared->network_fd < 0 ? -1 : fcntl(shared->network_fd, F_DUPFD_CLOEXEC, 3);
	auto_close int user = network < 0 ? -1 : ioctl(network, NS_GET_USERNS);
	if (user < 0)
		return shared->network_fd < 0 ? -ESRCH : -errno;
	*ret_user = take_fd(&user);
	*ret_network = take_fd(&network);
	return 0;
}

/* 1: another sandbox is needed. */
static int add_view(const struct linux_sandbox *sandbox, const struct walls *walls, const struct profile_key *key,
                    struct cordon_error *err)
{
	struct launch launch;
	struct cordon_error failed;
	struct driver_held held = { 0 };
	struct shared *shared = sandbox->shared;
	struct sandbox_view *view = new_view(walls, key);
	int result = !view ? fail_oom(err) : prepare(sandbox, walls, &launch, &held, err);
	if (result == 0) {
		launch.other_network = (walls->profile->network == NETWORK_ALL) != shared->begun_in_host;
		launch.other_network_fd = shared->network_fd;
		result = shared_add_view(&shared->up, &shared->views->view, &launch, &view->view, &failed);
		/* What ended meanwhile cannot be entered. */
		if (result < 0 && shared_ends(&shared->up))
			result = 1;
		if (result < 0)
			*err = failed;
	}
	driver_release(&held);
	if (result == 0 && launch.other_network && shared->begun_in_host && shared->network_fd < 0)
		result = keep_network(shared, &view->view, err);
	if (result != 0) {
		free_view(view);
		return result;
	}
	view->next = shared->views;
	shared->views = view;
	close_old_views(shared);
	return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool has_cover(const struct mount_op *ops, size_t count, const struct mount_op *wanted)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind == wanted->kind && !strcmp(ops[i].target, wanted->target))
			return true;
	return false;
}

/* What this view covers and the plan does not: it is to be shown, or the host has moved it, and its cover with it. */
static bool covers_too_much(const struct sandbox_view *view, const struct mount_plan *plan)
{
	for (size_t i = 0; i < view->cover_count; i++)
		if (!has_cover(plan->ops, plan->count, &view->covers[i]))
			return true;
	return false;
}

/* In an older view some of the names may not be there at all. 1: nor are they in the newest, which shows something
 * else than the host has by now. */
static int cover_view(struct shared *shared, struct sandbox_view *view, const struct mount_plan *plan, bool is_older,
                      struct cordon_error *err)
{
	size_t count = 0;
	bool is_gone = false;
	struct mount_op *missing = malloc((plan->count + 1) * sizeof(*missing));
	if (!missing)
		return fail_oom(err);
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		int covered = is_cover(op) ? shared_is_covered(&view->view, op) : 1;
		if (covered == 0)
			missing[count++] = *op;
		is_gone |= covered < 0 && !is_older && !(op->flags & MOUNT_OPTIONAL);
	}
	int result = is_gone ? 1 : count ? shared_cover(&shared->up, &view->view, missing, count, err) : 0;
	for (size_t i = 0; i < count && result == 0; i++)
		if (!has_cover(view->covers, view->cover_count, &missing[i]) && remember_cover(view, &missing[i]) < 0)
			result = fail_oom(err);
	free(missing);
	return result;
}

/* Names that are to be covered, in every view where something runs, and in `view`. 1: it shows what the host has no
 * more, or hides what is to be shown; or it cannot be done, and nothing runs that would be lost with the sandbox. */
static int cover_all(struct shared *shared, struct sandbox_view *view, const struct mount_plan *plan,
                     struct cordon_error *err)
{
	struct cordon_error failed;
	if (covers_too_much(view, plan))
		return 1;
	int result = 0;
	for (struct sandbox_view *each = shared->views; each && result == 0; each = each->next)
		if (each == view || each->running)
			result = cover_view(shared, each, plan, each != view, &failed);
	if (result < 0 && !shared->running)
		return 1;
	if (result < 0)
		*err = failed;
	return result;
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static struct sandbox_view *find_view(const struct shared *shared, const struct profile_key *key, uint64_t mounts)
{
	struct sandbox_view *view = shared->views;
	while (view && (view->mounts != mounts || !profile_key_same(&view->key, key)))
		view = view->next;
	return view;
}

/* The view for these walls, made if need be. 1: another sandbox is needed. */
static int get_view(const struct linux_sandbox *sandbox, const struct walls *walls, bool may_add,
                    struct sandbox_view **ret_view, struct cordon_error *err)
{
	struct shared *shared = sandbox->shared;
	struct profile_key key;
	if (profile_session_key(walls->arena, walls->profile, &key) < 0)
		return fail_oom(err);
	struct sandbox_view *view = find_view(shared, &key, walls->mounts);
	int covered = view ? cover_all(shared, view, &walls->profile->mounts, err) : 1;
	if (covered > 0 && !may_add)
		return 0;
	for (int tries = 0; covered > 0 && tries < ADD_TRIES; tries++) {
		/* What runs in a sandbox without Landlock could look into a view with more in it. */
		int added = shared->landlock_abi ? add_view(sandbox, walls, &key, err) : 1;
		if (added != 0)
			return added;
		view = shared->views;
		covered = cover_all(shared, view, &walls->profile->mounts, err);
	}
	if (covered == 0)
		*ret_view = view;
	if (covered <= 0)
		return covered;
	fail(err, CORDON_E_SESSION_BUSY, 0, "masked_names",
	     "the workspace was changed by something else while the command was being started");
	return fail_remedy(err, "try again");
}

/* A view without its starter cannot be changed any more. */
static bool is_up(const struct sandbox *sandbox)
{
	const struct sandbox_view *view = shared_of(sandbox)->views;
	while (view && shared_has_starter(&view->view))
		view = view->next;
	return !view && shared_is_up(&shared_of(sandbox)->up);
}

static int enter(struct sandbox *sandbox, const struct walls *walls, bool may_add, struct sandbox_view **ret_view,
                 struct cordon_error *err)
{
	*ret_view = NULL;
	if (!is_up(sandbox))
		return 1;
	int result = get_view((const struct linux_sandbox *)sandbox, walls, may_add, ret_view, err);
	if (*ret_view) {
		(*ret_view)->running++;
		shared_of(sandbox)->running++;
	}
	return result;
}

static void leave(struct sandbox *sandbox, struct sandbox_view *view)
{
	view->running--;
	shared_of(sandbox)->running--;
}

static int make_listeners(struct sandbox *sandbox, const struct egress_listener *listeners, size_t count, int *ret_fds,
                          struct cordon_error *err)
{
	const struct shared *shared = shared_of(sandbox);
	auto_close int user = -1, network = -1;
	int found = shared_network(shared, &user, &network);
	if (found < 0)
		return fail(err, CORDON_E_INTERNAL, -found, "setns", "cannot reach the sandbox's network");
	return shared_listen(&shared->up, user, network, listeners, count, ret_fds, err);
}

static void kill_sandbox(struct sandbox *sandbox)
{
	shared_lower(&shared_of(sandbox)->up);
}

const struct driver_keeping shared_keeping = {
	.enter = enter,
	.leave = leave,
	.listen = make_listeners,
	.is_up = is_up,
	.kill = kill_sandbox,
};

int shared_take_listeners(struct shared *shared, int *ret_fds)
{
	if (!shared->listeners)
		return -1;
	for (size_t i = 0; i < shared->listener_count; i++)
		ret_fds[i] = take_fd(&shared->listeners[i]);
	return 0;
}

/* Its starter, and the reapers of the commands that run; the caller's own is counted in by now. */
unsigned shared_helpers(const struct shared *shared)
{
	return 1 + shared->running;
}

const struct shared_sandbox *shared_up(const struct shared *shared)
{
	return &shared->up;
}

const struct shared_view *shared_view_of(const struct sandbox_view *view)
{
	return &view->view;
}

void shared_free(struct shared *shared)
{
	if (!shared)
		return;
	shared_lower(&shared->up);
	close_fd(&shared->network_fd);
	for (size_t i = 0; shared->listeners && i < shared->listener_count; i++)
		close_fd(&shared->listeners[i]);
	free(shared->listeners);
	for (struct sandbox_view *view; (view = shared->views);) {
		shared->views = view->next;
		free_view(view);
	}
	free(shared);
}
