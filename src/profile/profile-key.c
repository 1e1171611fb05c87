/* The walls of a profile as one run of bytes: equal where two commands of a session can be started in one view of its
 * sandbox. */
#include <string.h>

#include "profile/profile.h"

/* Once to measure, with `bytes` NULL, and once to write. */
struct writer {
	char *bytes;
	size_t length;
};

static void put(struct writer *writer, const void *data, size_t size)
{
	if (writer->bytes && size)
		memcpy(writer->bytes + writer->length, data, size);
	writer->length += size;
}

static void put_number(struct writer *writer, uint64_t number)
{
	put(writer, &number, sizeof(number));
}

/* None is not the same as an empty one. */
static void put_text(struct writer *writer, const char *text)
{
	size_t length = text ? strlen(text) + 1 : 0;
	put_number(writer, length);
	put(writer, text, length);
}

/* Without names that are hidden or protected: these change while walls are up. */
static void put_mounts(struct writer *writer, const struct mount_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		const uint64_t numbers[] = { (uint64_t)op->kind, op->flags,  op->size, op->mode,
			                     op->is_directory,   op->device, op->inode };
		if (op->kind == MOUNT_MASK || op->kind == MOUNT_FREEZE || op->kind == MOUNT_PIN)
			continue;
		put(writer, numbers, sizeof(numbers));
		put_text(writer, op->target);
		put_text(writer, op->source);
		put_text(writer, op->layer);
	}
}

static void put_walls(struct writer *writer, const struct profile *profile)
{
	/* Limits are each command's own, the network changes while the walls are up, and a command that may not start
	 * others gives that up by itself. */
	const uint64_t numbers[] = { profile->walls, profile->seccomp, profile->network == NETWORK_ALL, profile->spawn,
	                             (uint64_t)profile->view };
	put(writer, numbers, sizeof(numbers));
	put_text(writer, profile->driver);
	put_text(writer, profile->layers);
	put_mounts(writer, &profile->mounts);
	for (size_t i = 0; i < profile->landlock.count; i++) {
		put_number(writer, profile->landlock.rules[i].access);
		put_text(writer, profile->landlock.rules[i].path);
	}
}

int profile_session_key(struct arena *arena, const struct profile *profile, struct profile_key *ret_key)
{
	struct writer writer = { 0 };
	put_walls(&writer, profile);
	char *bytes = arena_alloc(arena, writer.length);
	if (!bytes)
		return -1;
	writer = (struct writer){ .bytes = bytes };
	put_walls(&writer, profile);
	*ret_key = (struct profile_key){ bytes, writer.length };
	return 0;
}

bool profile_key_same(const struct profile_key *a, const struct profile_key *b)
{
	return a->length == b->length && !memcmp(a->bytes, b->bytes, a->length);
}
