/* See slot-covers.h. */
#include "driver/linux/slot-covers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "driver/linux/child-root.h"

#define GONE (UINT64_C(1) << 63)
#define UNKNOWN (GONE | 1)

static bool is_mount(const struct mount_op *op)
{
	static const bool mounts[MOUNT_KIND_MAX] = {
		[MOUNT_BIND] = true, [MOUNT_SCRATCH] = true, [MOUNT_MASK] = true, [MOUNT_REPLACE] = true, [MOUNT_FREEZE] = true,
		[MOUNT_PIN] = true,
	};
	return mounts[op->kind];
}

bool slot_covers_has(const struct launch_root *root, size_t op)
{
	const char *target = root->ops[op].target;
	for (size_t i = 0; i < op && is_mount(&root->ops[op]); i++)
		if (root->ops[i].kind == MOUNT_BIND && path_within(target, root->ops[i].target) && strcmp(target, root->ops[i].target))
			return true;
	return false;
}

/* No link is followed: others can make some. What is there and has nothing mounted on it is not covered, were it only since
 * a moment ago. */
static uint64_t mount_at(int root, const char *path)
{
	struct statx info;
	long fd = root_open_target(root, path);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EACCES ? GONE : UNKNOWN;
	bool told = statx((int)fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &info) == 0 &&
	            (info.stx_mask & STATX_MNT_ID) && (info.stx_attributes & STATX_ATTR_MOUNT_ROOT);
	close((int)fd);
	return told ? info.stx_mnt_id : UNKNOWN;
}

struct slot_covers *slot_covers_new(const struct slot *slot, const struct launch_root *root)
{
	size_t count = 0, length = 0;
	for (size_t i = 0; i < root->count; i++)
		if (root->ops[i].target) {
			count++;
			length += strlen(root->ops[i].target) + 1;
		}
	struct slot_covers *covers = malloc(sizeof(*covers) + count * sizeof(covers->items[0]) + length);
	if (!covers)
		return NULL;
	covers->count = count;
	struct slot_cover *item = covers->items;
	char *text = (char *)(covers->items + count);
	bool known = true;
	for (size_t i = 0; i < root->count; i++)
		if (root->ops[i].target) {
			*item = (struct slot_cover){ text, mount_at(slot->root_fd, root->ops[i].target) };
			known &= item++->mount != UNKNOWN;
			text = stpcpy(text, root->ops[i].target) + 1;
		}
	if (known)
		return covers;
	free(covers);
	return NULL;
}

bool slot_covers_hold(const struct slot *slot, const struct slot_covers *covers)
{
	for (size_t i = 0; i < covers->count; i++) {
		uint64_t mount = mount_at(slot->root_fd, covers->items[i].path);
		if (mount == UNKNOWN || mount != covers->items[i].mount)
			return false;
	}
	return true;
}
