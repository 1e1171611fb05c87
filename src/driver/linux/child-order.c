/* What order.h has without libc: what arrives is unpacked, and a failure is replied. Compiled like the rest of what runs behind
 * a clone: see child.c. */
#include <sys/socket.h>

#include "base/compat.h"
#include "driver/linux/order.h"
#include "driver/linux/sys.h"

void *pack_open(void *bytes, size_t size)
{
	const struct pack *head = bytes;
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

void reply_failure(const struct launch *launch, int fd)
{
	struct reply reply = { .kind = REPLY_FAILED };
	if (!launch->failed)
		return;
	reply.error = launch->error;
	sys6(SYS_sendto, fd, (long)&reply, sizeof(reply), MSG_NOSIGNAL, 0, 0);
}
