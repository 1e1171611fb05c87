/* Moulds and places: see warm.h. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/linux/kernel-mounts.h"
#include "driver/linux/linger.h"
#include "warm.h"

bool warm_is_fresh(const struct execution *execution)
{
	return execution->request->fresh || execution->session.config->walls == WALLS_PARKED;
}

/* Listeners belong to one command, and what is to be fresh shares nothing. */
uint64_t warm_shared(const struct execution *execution)
{
	const struct profile *profile = &execution->profile.profile;
	uint64_t shared = 0;
	if (warm_is_fresh(execution) || profile->egress.count)
		return 0;
	if (profile->walls & WALL_BIT(NETWORK))
		shared |= CLONE_NEWNET;
	if (profile->walls & WALL_BIT(HOSTNAME))
		shared |= CLONE_NEWUTS;
	return shared;
}

/* What renewing and sending need of it, in its order: the sources of what is mounted with mapped owners; and what is looked at
 * again before a place is used. Of most operations that is nothing, and there may be thousands of moulds. */
static struct launch_root *copy_root(struct arena *arena, const struct launch *launch)
{
	const struct launch_root *root = launch->root;
	struct launch_root *copy = arena_alloc(arena, sizeof(*copy));
	auto_free struct mount_op *ops = malloc((root->count + 1) * sizeof(*ops));
	if (!copy || !ops)
		return NULL;
	*copy = *root;
	copy->count = 0;
	for (size_t i = 0; i < root->count; i++) {
		struct mount_op *op = &ops[copy->count];
		bool covers = slot_covers_has(root, i);
		if (!covers && !(launch->become && driver_maps_owners(&root->ops[i])))
			continue;
		*op = root->ops[i];
		op->target = covers ? arena_strdup(arena, op->target) : NULL;
		if ((covers && !op->target) || (op->source && !(op->source = arena_strdup(arena, op->source))))
			return NULL;
		copy->count++;
	}
	struct mount_op *kept = arena_alloc(arena, copy->count * sizeof(*kept));
	copy->ops = kept ? memcpy(kept, ops, copy->count * sizeof(*kept)) : NULL;
	copy->trees = NULL;
	copy->skeleton_tree = -1;
	if (root->skeleton && !(copy->skeleton = arena_strdup(arena, root->skeleton)))
		return NULL;
	return kept ? copy : NULL;
}

/* By itself, and not in the arena: it is most of all that a mould holds. */
static int copy_key(const struct execution *execution, struct profile_key *ret_key)
{
	struct arena arena = { 0 };
	struct profile_key key;
	char *bytes = NULL;
	if (profile_walls_key(&arena, &execution->profile.profile, &key) == 0 && (bytes = malloc(key.length))) {
		memcpy(bytes, key.bytes, key.length);
		ret_key->bytes = bytes;
		ret_key->length = key.length;
	}
	arena_free(&arena);
	return bytes ? 0 : -1;
}

static int fill(struct warm_mould *mould, const struct execution *execution)
{
	struct arena *arena = &mould->arena;
	const struct launch *launch = &execution->run.launch;
	mould->driver = execution->session.driver;
	mould->launch = (struct launch){ .become = launch->become, .root = copy_root(arena, launch) };
	mould->bounds = cgroup_asked(&execution->run.group);
	mould->bounds.at_birth = 0;
	mould->held = execution->run.group.held;
	const char *cgroup = execution->run.group.ops ? execution->profile.profile.cgroup : CGROUP_NONE;
	mould->search.directory = cgroup ? arena_strdup(arena, cgroup) : NULL;
	if (!mould->launch.root || (cgroup && !mould->search.directory) || copy_key(execution, &mould->key) < 0)
		return -1;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		const char *text = execution->run.isolation[wall];
		if (text && !(mould->isolation[wall] = arena_strdup(arena, text)))
			return -1;
	}
	return 0;
}

int warm_mould_new(const struct execution *execution, uint64_t shared, struct warm_mould **ret_mould,
                   struct cordon_error *err)
{
	struct warm_mould *mould = calloc(1, sizeof(*mould));
	if (!mould)
		return fail_oom(err);
	mould->plan.fd = -1;
	mould->wanted = warm_is_fresh(execution) ? WARM_MORE_PLACES : 1;
	if (fill(mould, execution) < 0 || slot_plan_make(&execution->run.launch, shared, &mould->plan, err) < 0) {
		warm_mould_free(mould);
		return fail_oom(err);
	}
	*ret_mould = mould;
	return 0;
}

void warm_mould_free(struct warm_mould *mould)
{
	if (mould->plan.fd >= 0)
		close(mould->plan.fd);
	arena_free(&mould->arena);
	free((char *)(uintptr_t)mould->key.bytes);
	free(mould);
}

int warm_place_new(const struct warm_house *house, const struct warm_mould *mould, struct warm_place **ret_place,
                   struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct driver_held held = { 0 };
	struct launch_root root = *mould->launch.root;
	struct launch launch = mould->launch;
	struct warm_place *place = calloc(1, sizeof(*place));
	if (!place)
		return fail_oom(err);
	place->slot = (struct slot){ .socket_fd = -1, .control_fd = -1, .pidfd = -1, .root_fd = -1 };
	place->mounts = kernel_mounts_version();
	launch.root = &root;
	cgroup_make(&mould->search, &mould->bounds, &place->group);
	cgroup_enter(&place->group, &launch);
	int made = place->group.held == mould->held ? mould->driver->renew(&arena, &launch, &held, err)
	                                            : fail(err, CORDON_E_INTERNAL, 0, "cgroup", "no group holds the limits");
	if (made == 0)
		made = slot_begin(house->keeper, &house->commons, &mould->plan, &launch, &place->slot, err);
	driver_release(&held);
	arena_free(&arena);
	if (made == 0)
		made = slot_await_ready(&place->slot, house->keeper, err);
	if (made == 0 && !(place->covers = slot_covers_new(&place->slot, mould->launch.root)))
		made = fail(err, CORDON_E_INTERNAL, 0, "slot", "not everything is covered in the place that was made ahead");
	if (made < 0) {
		warm_place_free(place);
		return -1;
	}
	cgroup_entered(&place->group);
	*ret_place = place;
	return 0;
}

/* Closing its sockets is what ends it; the group goes when it is gone. */
void warm_place_free(struct warm_place *place)
{
	int pidfd = take_fd(&place->slot.pidfd);
	slot_end(&place->slot);
	if (pidfd >= 0)
		linger_add(pidfd, &place->group);
	cgroup_remove(&place->group);
	free(place->covers);
	free(place);
}
