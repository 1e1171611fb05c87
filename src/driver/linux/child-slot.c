/* The slot's half of slot.h: what arrives is unpacked, and what is to be done told on. Without libc, like all that runs
 * behind a clone: see child.c. In the caller's memory none of this is used. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/compat.h"
#include "driver/linux/slot.h"
#include "driver/linux/sys.h"

void *slot_unpack(void *bytes, size_t size)
{
	const struct slot_pack *head = bytes;
	char *base = bytes;
	if (size < sizeof(*head) || head->size != size || head->fixup_at > size ||
	    head->fixup_count > (size - head->fixup_at) / sizeof(uint32_t))
		return NULL;
	const uint32_t *fixups = (const uint32_t *)(const void *)(base + head->fixup_at);
	for (uint32_t i = 0; i < head->fixup_count; i++) {
		if (fixups[i] > head->fixup_at - sizeof(uintptr_t))
			return NULL;
		uintptr_t *pointer = (uintptr_t *)(void *)(base + fixups[i]);
		if (*pointer >= head->fixup_at)
			return NULL;
		*pointer += (uintptr_t)base;
	}
	return base + sizeof(*head);
}

void slot_tell_failure(const struct launch *launch, int fd)
{
	struct slot_reply reply = { .kind = SLOT_FAILED };
	if (!launch->failed)
		return;
	reply.error = launch->error;
	sys6(SYS_sendto, fd, (long)&reply, sizeof(reply), MSG_NOSIGNAL, 0, 0);
}

/* Then the lowest that are free are 0, 1 and 2. */
int slot_keep(struct launch *launch)
{
	long result = launch->slot_fd == SLOT_FD ? sys_3(SYS_fcntl, SLOT_FD, F_SETFD, FD_CLOEXEC)
	                                         : sys_3(SYS_dup3, launch->slot_fd, SLOT_FD, O_CLOEXEC);
	if (result >= 0)
		result = launch_close_all(0, SLOT_FD - 1, 0);
	if (result >= 0)
		result = launch_close_all(SLOT_FD + 1, ~0U, 0);
	return result < 0 ? launch_unavailable(launch, result, "descriptors", "close_range",
	                                       "cannot close inherited descriptors") : 0;
}

static char orders_bytes[SLOT_ORDERS_MAX] __attribute__((aligned(16)));

int slot_await(struct launch *launch)
{
	static union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(3 * sizeof(int))];
	} rights;
	static struct iovec part = { orders_bytes, sizeof(orders_bytes) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights,
	                         .msg_controllen = sizeof(rights) };
	long length = sys_3(SYS_recvmsg, SLOT_FD, &header, 0);
	if (length <= 0)
		sys_exit(1);
	const int *fds = (const int *)(const void *)CMSG_DATA(&rights.header);
	bool sound = header.msg_controllen >= sizeof(struct cmsghdr) && rights.header.cmsg_len == CMSG_LEN(3 * sizeof(int)) &&
	             fds[0] == 0 && fds[1] == 1 && fds[2] == 2 && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
	const struct slot_orders *orders = sound ? slot_unpack(orders_bytes, (size_t)length) : NULL;
	if (!orders)
		return launch_fail(launch, CORDON_E_INTERNAL, 0, "run", "orders", "the orders for the command are damaged", "");
	launch->cwd = orders->cwd;
	launch->candidates = orders->candidates;
	launch->argv = orders->argv;
	launch->environment = orders->environment;
	launch->program_judged = orders->program_judged;
	launch->program_device = orders->program_device;
	launch->program_inode = orders->program_inode;
	sys_1(SYS_umask, orders->umask);
	return 0;
}
