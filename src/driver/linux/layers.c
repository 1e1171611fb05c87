/* Taking a slot: see layers.h. */
#include "driver/linux/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/layer-slot.h"
#include "base/lock.h"

#define FIRST_PATIENCE_MS 5     /* a process that another thread is starting may have a copy of a lock for a moment */

/* The lowest free slot; its lock, or -1. */
static int take_slot(int directory, unsigned *ret_slot)
{
	for (unsigned slot = 0; slot < LAYER_SLOTS; slot++) {
		char name[32];
		snprintf(name, sizeof(name), LAYER_LOCK, slot);
		auto_close int fd = openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return -1;
		if (lock_wait(fd, LOCK_EX, slot ? 0 : FIRST_PATIENCE_MS) < 0)
			continue;
		*ret_slot = slot;
		return take_fd(&fd);
	}
	return -1;
}

static bool make_one(int directory, const char *path)
{
	return mkdirat(directory, path, 0755) == 0 || errno == EEXIST;
}

/* DIRECTORY/SLOT/NAME with its parts; NULL where it cannot be. */
static const char *make_layer(struct arena *arena, const char *directory, int fd, unsigned slot, const char *name)
{
	static const char *const parts[] = { "upper", "work" };
	const char *layer = arena_printf(arena, LAYER_SLOT "/%s", slot, name);
	bool made = layer && make_one(fd, layer);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && made; i++) {
		const char *part = arena_printf(arena, "%s/%s", layer, parts[i]);
		made = part && make_one(fd, part);
	}
	return made ? arena_printf(arena, "%s/%s", directory, layer) : NULL;
}

int layers_prepare(struct arena *arena, const struct profile *profile, struct launch_root *root,
                   struct launch_layer **ret_layers)
{
	size_t count = 0;
	root->layers = *ret_layers = NULL;
	root->layers_lock = -1;
	for (size_t i = 0; i < root->count; i++)
		count += root->ops[i].kind == MOUNT_LAYER;
	struct launch_layer *layers = count ? arena_alloc(arena, root->count * sizeof(*layers)) : NULL;
	if (!count)
		return 0;
	if (!layers)
		return -1;
	unsigned slot = 0;
	auto_close int directory =
		profile->layers ? open(profile->layers, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	auto_close int lock = directory < 0 ? -1 : take_slot(directory, &slot);
	char name[16];
	snprintf(name, sizeof(name), LAYER_SLOT, slot);
	bool on_disk = lock >= 0 && make_one(directory, name);
	for (size_t i = 0; i < root->count; i++) {
		layers[i] = (struct launch_layer){ NULL, -1, -1 };
		if (on_disk && root->ops[i].kind == MOUNT_LAYER)
			layers[i].directory = make_layer(arena, profile->layers, directory, slot, root->ops[i].layer);
	}
	root->layers = *ret_layers = layers;
	root->layers_lock = take_fd(&lock);
	return 0;
}
