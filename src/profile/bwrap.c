/* bubblewrap arguments from a profile: each mount_op is one option or two. What bubblewrap makes itself (/dev)
 * is left to it. */
#include "profile/bwrap.h"

#include <string.h>

#include "base/text.h"

static int option(struct arena *arena, struct bwrap_plan *plan, const char *name, const char *first, const char *second)
{
	if (strings_add(arena, &plan->arguments, name) < 0 ||
	    (first && strings_add(arena, &plan->arguments, first) < 0))
		return -1;
	return second ? strings_add(arena, &plan->arguments, second) : 0;
}

static int render_text(struct arena *arena, const struct mount_op *op, int first_fd, struct bwrap_plan *plan)
{
	if (plan->text_count == sizeof(plan->texts) / sizeof(plan->texts[0]))
		return -1;
	int fd = first_fd + (int)plan->text_count;
	plan->texts[plan->text_count++] = (struct bwrap_text){ op->source, fd };
	return option(arena, plan, "--ro-bind-data", arena_printf(arena, "%d", fd), op->target);
}

static int render_scratch(struct arena *arena, const struct mount_op *op, struct bwrap_plan *plan)
{
	if (option(arena, plan, "--perms",
	           op->mode == 01777 ? "1777" :
	           op->mode == 0700  ? "0700" :
	                               "0755",
	           NULL) < 0 ||
	    (op->size &&
	     option(arena, plan, "--size", arena_printf(arena, "%llu", (unsigned long long)op->size), NULL) < 0))
		return -1;
	return option(arena, plan, "--tmpfs", op->target, NULL);
}

static int render_mask(struct arena *arena, const struct mount_op *op, struct bwrap_plan *plan)
{
	if (!op->is_directory)
		return option(arena, plan, "--ro-bind", "/dev/null", op->target);
	return option(arena, plan, "--perms", "0000", NULL) < 0 || option(arena, plan, "--tmpfs", op->target, NULL) < 0
	               ? -1 : option(arena, plan, "--remount-ro", op->target, NULL);
}

/* bubblewrap takes the source by its path and follows links: in a workspace that another command can change meanwhile,
 * that would show whatever a link leads to. There the names are left to the check at the end. */
static int render_freeze(struct arena *arena, const struct mount_op *op, struct bwrap_plan *plan)
{
	return path_within(op->target, "/proc") ? option(arena, plan, "--ro-bind-try", op->target, op->target) : 0;
}

static int render_op(struct arena *arena, const struct mount_op *op, int first_text_fd, struct bwrap_plan *plan)
{
	bool read_only = op->flags & MOUNT_READ_ONLY;
	switch (op->kind) {
	case MOUNT_DIRECTORY:
		if (op->mode && option(arena, plan, "--perms", "0700", NULL) < 0)
			return -1;
		return option(arena, plan, "--dir", op->target, NULL);
	case MOUNT_FILE: return 0;
	case MOUNT_LINK: return option(arena, plan, "--symlink", op->source, op->target);
	case MOUNT_TEXT:
	case MOUNT_REPLACE: return render_text(arena, op, first_text_fd, plan);
	case MOUNT_BIND:
		if (op->flags & MOUNT_DEVICE)
			return option(arena, plan, "--dev-bind", op->source, op->target);
		return option(arena, plan, read_only ? "--ro-bind" : "--bind", op->source, op->target);
	case MOUNT_LAYER:
		return option(arena, plan, "--ro-bind-try", op->source, op->target); /* most versions know no overlay */
	case MOUNT_SCRATCH: return render_scratch(arena, op, plan);
	case MOUNT_PROC: return option(arena, plan, "--proc", op->target, NULL);
	case MOUNT_PTS: return 0;
	case MOUNT_MASK: return render_mask(arena, op, plan);
	case MOUNT_FREEZE: return render_freeze(arena, op, plan);
	case MOUNT_PIN: return 0;
	case MOUNT_LOCK: return option(arena, plan, "--remount-ro", op->target, NULL);
	case MOUNT_KIND_MAX: break;
	}
	return -1;
}

/* bubblewrap makes /dev itself, and in it the directory that our shared memory is mounted on. */
static bool is_its_own(const struct mount_op *op)
{
	if (path_within(op->target, "/dev/shm"))
		return op->kind == MOUNT_DIRECTORY && !strcmp(op->target, "/dev/shm");
	if (op->kind == MOUNT_BIND && (op->flags & MOUNT_DEVICE) && op->source[0] == '/') {
		static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };
		for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
			if (!strcmp(op->target + 5, nodes[i]))
				return true;
		return false;
	}
	return path_within(op->target, "/dev");
}

int bwrap_render(struct arena *arena, const struct profile *profile, uint32_t uid, uint32_t gid, int seccomp_fd,
                 int first_text_fd, struct bwrap_plan *ret_plan)
{
	struct bwrap_plan plan = { 0 };
	if (option(arena, &plan, "--unshare-user", NULL, NULL) < 0 ||
	    option(arena, &plan, "--unshare-pid", NULL, NULL) < 0 ||
	    option(arena, &plan, "--unshare-ipc", NULL, NULL) < 0 ||
	    option(arena, &plan, "--unshare-uts", NULL, NULL) < 0 ||
	    option(arena, &plan, "--unshare-cgroup-try", NULL, NULL) < 0 ||
	    (!profile->tty && option(arena, &plan, "--new-session", NULL, NULL) < 0) ||
	    option(arena, &plan, "--die-with-parent", NULL, NULL) < 0 ||
	    option(arena, &plan, "--cap-drop", "ALL", NULL) < 0 ||
	    option(arena, &plan, "--hostname", "cordon", NULL) < 0 ||
	    option(arena, &plan, "--uid", arena_printf(arena, "%u", uid), NULL) < 0 ||
	    option(arena, &plan, "--gid", arena_printf(arena, "%u", gid), NULL) < 0 ||
	    (profile->network != NETWORK_ALL && option(arena, &plan, "--unshare-net", NULL, NULL) < 0))
		return -1;
	bool made_dev = false, locked = false;
	for (size_t i = 0; i < profile->mounts.count; i++) {
		const struct mount_op *op = &profile->mounts.ops[i];
		if (!made_dev && !strcmp(op->target, "/dev")) {
			made_dev = true;
			if (option(arena, &plan, "--dev", "/dev", NULL) < 0)
				return -1;
		}
		/* bubblewrap makes mount points as it goes, so the root can only be locked last. */
		if (op->kind == MOUNT_LOCK && !op->target[1])
			locked = true;
		else if (!is_its_own(op) && render_op(arena, op, first_text_fd, &plan) < 0)
			return -1;
	}
	if (locked && option(arena, &plan, "--remount-ro", "/", NULL) < 0)
		return -1;
	if (option(arena, &plan, "--chdir", profile->cwd, NULL) < 0 ||
	    (seccomp_fd >= 0 && option(arena, &plan, "--seccomp", arena_printf(arena, "%d", seccomp_fd), NULL) < 0))
		return -1;
	*ret_plan = plan;
	return 0;
}
