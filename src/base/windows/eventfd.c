/* See sys/eventfd.h. What is written may be written by a signal's handler, which is a thread of its own here. */
#include "base/windows/descriptors.h"

#include <errno.h>
#include <sys/eventfd.h>

int eventfd(unsigned value, int flags)
{
	struct entry *entry;
	int fd = entry_add(ENTRY_EVENT, &entry);
	(void)flags;
	if (fd >= 0)
		atomic_store(&entry->is_set, value != 0);
	return fd;
}

/* NULL and errno. */
static struct entry *find(int fd)
{
	struct entry *entry = entry_find(fd);
	if (entry && entry->kind == ENTRY_EVENT)
		return entry;
	errno = entry ? EINVAL : EBADF;
	return NULL;
}

int eventfd_write(int fd, eventfd_t value)
{
	struct entry *entry = find(fd);
	if (entry && value)
		atomic_store(&entry->is_set, true);
	return entry ? 0 : -1;
}

int eventfd_read(int fd, eventfd_t *ret_value)
{
	struct entry *entry = find(fd);
	if (!entry)
		return -1;
	if (!atomic_exchange(&entry->is_set, false)) {
		errno = EAGAIN;
		return -1;
	}
	*ret_value = 1;
	return 0;
}
