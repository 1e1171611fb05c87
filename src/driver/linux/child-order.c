/* The parts of order.h without libc: an order is read, and replied to. Compiled like the rest of what runs behind a
 * clone: see child.c. */
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "driver/linux/order.h"
#include "driver/linux/sys.h"

/* The next `count` texts of those between *at and end, as pointers ended by NULL; false where there are not so many. */
static bool take_texts(const char **pointers, uint64_t count, const char **at, const char *end)
{
	for (uint64_t i = 0; i < count; i++) {
		pointers[i] = *at;
		while (*at < end && **at)
			(*at)++;
		if (*at == end)
			return false;
		(*at)++;
	}
	pointers[count] = NULL;
	return true;
}

static bool take_order(struct order *order, uint64_t size, struct launch *launch)
{
	if (size < sizeof(*order) || order->size != size || order->rlimit_count > ORDER_RLIMITS_MAX)
		return false;
	uint64_t count = (uint64_t)order->candidates + order->arguments + order->variables + 3;
	if (count > (size - sizeof(*order)) / sizeof(char *))
		return false;
	const char **pointers = (const char **)(void *)(order + 1), *cwd[2];
	const char *at = (const char *)(pointers + count), *end = (const char *)order + size;
	if (!take_texts(cwd, 1, &at, end))
		return false;
	launch->cwd = cwd[0];
	launch->candidates = pointers;
	launch->argv = launch->candidates + order->candidates + 1;
	launch->environment = launch->argv + order->arguments + 1;
	return take_texts(pointers, order->candidates, &at, end) &&
	       take_texts(pointers + order->candidates + 1, order->arguments, &at, end) &&
	       take_texts(pointers + order->candidates + 1 + order->arguments + 1, order->variables, &at, end);
}

bool order_read(int fd, struct launch *launch)
{
	struct stat info;
	if (sys_2(SYS_fstat, fd, &info) < 0 || info.st_size <= 0 || (uint64_t)info.st_size > ORDER_MAX)
		return false;
	long memory = sys6(SYS_mmap, 0, info.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	struct order *order = (struct order *)memory;
	if (memory < 0 && memory > -4096)
		return false;
	if (!take_order(order, (uint64_t)info.st_size, launch))
		return false;
	launch->seal.rlimits = order->rlimits;
	launch->seal.rlimit_count = order->rlimit_count;
	launch->program_device = order->program_device;
	launch->program_inode = order->program_inode;
	launch->umask = order->umask;
	launch->rows = order->rows;
	launch->columns = order->columns;
	launch->program_judged = order->program_judged;
	launch->check_program = order->check_program;
	launch->own_session = order->own_session;
	launch->close_descriptors = order->close_descriptors;
	launch->tty = order->tty;
	launch->narrow = order->narrow;
	launch->tells_renames = order->tells_renames;
	return true;
}

long reply_with(int socket_fd, const int *fds, size_t count)
{
	const int32_t kind = REPLY_READY;
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(REPLY_FDS_MAX * sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(count * sizeof(int)),
		                  .cmsg_level = SOL_SOCKET,
		                  .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)&kind, offsetof(struct reply, error) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	for (size_t i = 0; i < count; i++)
		((int *)(void *)CMSG_DATA(&control.header))[i] = fds[i];
	return launch_hand_out(socket_fd, &header);
}

void reply_failure(const struct launch *launch, int fd)
{
	struct reply reply = { .kind = REPLY_FAILED };
	if (!launch->failed)
		return;
	reply.error = launch->error;
	sys6(SYS_sendto, fd, (long)&reply, sizeof(reply), MSG_NOSIGNAL, 0, 0);
}
