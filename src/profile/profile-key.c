/* The walls of a profile as one run of bytes: equal where the walls are, whatever the command is. */
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

static void put_mounts(struct writer *writer, const struct mount_plan *plan)
{
	put_number(writer, plan->count);
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		const uint64_t numbers[] = { (uint64_t)op->kind, op->flags, op->size, op->mode, op->is_directory, op->device, op->inode };
		put(writer, numbers, sizeof(numbers));
		put_text(writer, op->target);
		put_text(writer, op->source);
	}
}

static void put_walls(struct writer *writer, const struct profile *profile)
{
	const struct limits *limits = &profile->limits;
	/* What the supervisor holds by itself (time, output, disk space) is not in them, nor what was not looked at. */
	const uint64_t numbers[] = { profile->walls, profile->required, profile->seccomp, (uint64_t)profile->network,
	                             profile->spawn, profile->tty, (uint64_t)profile->view, limits->memory_bytes,
	                             limits->cpu_percent, limits->processes, limits->open_files, limits->tmp_bytes };
	put(writer, numbers, sizeof(numbers));
	put_text(writer, profile->driver);
	put_text(writer, profile->cgroup);
	put_mounts(writer, &profile->mounts);
	put_number(writer, profile->landlock.count);
	for (size_t i = 0; i < profile->landlock.count; i++) {
		put_number(writer, profile->landlock.rules[i].access);
		put_text(writer, profile->landlock.rules[i].path);
	}
	put_number(writer, profile->egress.count);
	for (size_t i = 0; i < profile->egress.count; i++) {
		const struct egress_listener *listener = &profile->egress.listeners[i];
		const uint64_t where[] = { listener->use, listener->port, listener->address.length };
		put(writer, where, sizeof(where));
		put(writer, listener->address.bytes, listener->address.length);
	}
}

int profile_walls_key(struct arena *arena, const struct profile *profile, struct profile_key *ret_key)
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
