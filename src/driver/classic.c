/* The new mount API, asked with arguments that no call of it takes: see classic.h. */
#include "driver/classic.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compat.h"

/* EPERM is a filter's answer only from those that look at their arguments before they look at who asks; the others say
 * it to every ordinary user. */
static const struct {
	long number;
	bool looks_first;
} calls[] = {
	{ SYS_open_tree, true }, { SYS_mount_setattr, true }, { SYS_fsconfig, true },
	{ SYS_fsopen, false },   { SYS_fsmount, false },      { SYS_move_mount, false },
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool needed;

static void ask(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (syscall(calls[i].number, -1L, -1L, -1L, -1L, -1L) < 0)
			needed |= errno == ENOSYS || (errno == EPERM && calls[i].looks_first);
}

bool classic_is_needed(void)
{
	pthread_once(&once, ask);
	return needed;
}

/* What is mounted now, as bytes of mountinfo. */
static size_t table_size(void)
{
	char bytes[4096];
	size_t size = 0;
	auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	for (ssize_t length; fd >= 0 && (length = read(fd, bytes, sizeof(bytes))) > 0;)
		size += (size_t)length;
	return size;
}

/* The child's table is longer by what it mounts itself, and by what comes along with every grant. */
int classic_prepare(struct arena *arena, struct launch_root *root)
{
	root->classic = true;
	root->table_size = 4 * table_size() + root->count * 512 + 64 * 1024;
	root->mount_capacity = root->table_size / 64;
	root->table = arena_alloc(arena, root->table_size);
	root->mounts = arena_alloc(arena, root->mount_capacity * sizeof(*root->mounts));
	return root->table && root->mounts ? 0 : -1;
}
