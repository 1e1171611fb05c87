/* Whether what was mounted in a slot (slot.h) is still where it was put, by the time a command is to use it.
 *
 * In a tree that is granted, names are not the slot's own: whoever else can change them may remove, replace or move one
 * that is mounted on. The kernel then takes the mount away, or moves it along, in the slot as well; and what has the name
 * from then on is not covered. An editor that saves `.env` does this. */
#pragma once
#include "driver/linux/slot.h"

struct slot_covers {
	size_t count;
	struct slot_cover {
		const char *path;
		uint64_t mount;         /* its number, or that there is nothing */
	} items[];
};

/* Is this operation's target a name in a tree that is mounted before it? */
bool slot_covers_has(const struct launch_root *root, size_t op);
/* Of a ready slot, with its root: the mounts of those operations that have a target, to be free()d. NULL where one is not
 * there, as when the slot's user could not get to what others can; or no memory. */
struct slot_covers *slot_covers_new(const struct slot *slot, const struct launch_root *root);
bool slot_covers_hold(const struct slot *slot, const struct slot_covers *covers);
