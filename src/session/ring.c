/* Rings: see ring.h.
 *
 * The file is a head and `size` bytes. The writer stores the position it is going to reach (`begun`), writes, and then
 * stores the position again (`done`). A reader takes what is before `done`, then reads `begun` once more: bytes
 * further back than `size` from there may have been overwritten while they were read, and are discarded. */
#include "session/ring.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#define MAGIC UINT64_C(0x31676e69726e6463)
#define ATTEMPTS 16                             /* each lost to a writer that went all around meanwhile */

/* A place, and its complement: half of an older one and half of a newer are not taken for one. */
struct mark {
	uint64_t place, complement;
};

struct head {
	uint64_t magic, size;
	struct mark begun, done;
};

static struct mark mark(uint64_t place)
{
	return (struct mark){ place, ~place };
}

/* 0, or a negative errno. */
static int write_at(int fd, const void *bytes, size_t length, uint64_t at)
{
	for (size_t done = 0; done < length;) {
		ssize_t put = pwrite(fd, (const char *)bytes + done, length - done, (off_t)(at + done));
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		done += (size_t)put;
	}
	return 0;
}

/* What was never written reads as nothing. */
static int read_at(int fd, void *bytes, size_t length, uint64_t at)
{
	for (size_t done = 0; done < length;) {
		ssize_t got = pread(fd, (char *)bytes + done, length - done, (off_t)(at + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EBADMSG;
		done += (size_t)got;
	}
	return 0;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

int ring_make(int directory_fd, const char *name, uint64_t size, struct ring *ret_ring, struct cordon_error *err)
{
	struct head head = { .magic = MAGIC, .size = size < RING_SIZE_MAX ? size : RING_SIZE_MAX,
	                     .begun = mark(0), .done = mark(0) };
	auto_close int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int result = fd < 0 ? -errno : write_at(fd, &head, sizeof(head), 0);
	if (result < 0)
		return fail(err, CORDON_E_INTERNAL, -result, name, "there is no room for what the job writes");
	*ret_ring = (struct ring){ .fd = take_fd(&fd), .size = head.size };
	return 0;
}

static int write_around(const struct ring *ring, const char *bytes, size_t length, uint64_t place)
{
	uint64_t at = place % ring->size, room = ring->size - at;
	size_t first = length < room ? length : (size_t)room;
	int result = write_at(ring->fd, bytes, first, sizeof(struct head) + at);
	return result < 0 ? result : write_at(ring->fd, bytes + first, length - first, sizeof(struct head));
}

void ring_add(struct ring *ring, const void *bytes, size_t length)
{
	const uint64_t end = ring->written + length;
	const struct mark reached = mark(end);
	size_t kept = length < ring->size ? length : (size_t)ring->size;
	if (ring->error || !length)
		return;
	int result = write_at(ring->fd, &reached, sizeof(reached), offsetof(struct head, begun));
	if (result == 0)
		result = write_around(ring, (const char *)bytes + (length - kept), kept, end - kept);
	if (result == 0)
		result = write_at(ring->fd, &reached, sizeof(reached), offsetof(struct head, done));
	ring->error = -result;
	ring->written = result == 0 ? end : ring->written;
}

void ring_close(struct ring *ring)
{
	cleanup_close(&ring->fd);
	ring->fd = -1;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

int ring_open(int directory_fd, const char *name, int *ret_fd)
{
	struct stat info;
	auto_close int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0)
		return -errno;
	if (!S_ISREG(info.st_mode) || info.st_uid != geteuid())
		return -EPERM;
	*ret_fd = take_fd(&fd);
	return 0;
}

static bool is_whole(const struct mark *mark)
{
	return mark->complement == ~mark->place;
}

static int read_head(int fd, struct head *ret_head)
{
	bool whole = false;
	for (int attempt = 0; attempt < ATTEMPTS && !whole; attempt++) {
		int result = read_at(fd, ret_head, sizeof(*ret_head), 0);
		if (result < 0)
			return result;
		whole = is_whole(&ret_head->begun) && is_whole(&ret_head->done);
	}
	bool sound = whole && ret_head->magic == MAGIC && ret_head->size && ret_head->size <= RING_SIZE_MAX &&
	             ret_head->done.place <= ret_head->begun.place;
	/* It is read before the bytes that it refers to, and the second time after them. */
	atomic_thread_fence(memory_order_seq_cst);
	return sound ? 0 : -EBADMSG;
}

static int read_around(int fd, const struct head *head, char *buffer, size_t length, uint64_t place)
{
	uint64_t at = place % head->size, room = head->size - at;
	size_t first = length < room ? length : (size_t)room;
	int result = read_at(fd, buffer, first, sizeof(*head) + at);
	if (result == 0)
		result = read_at(fd, buffer + first, length - first, sizeof(*head));
	atomic_thread_fence(memory_order_seq_cst);
	return result;
}

static uint64_t oldest(const struct head *head)
{
	return head->begun.place > head->size ? head->begun.place - head->size : 0;
}

int ring_read(int fd, uint64_t from, void *buffer, size_t size, struct ring_part *ret_part)
{
	struct head head = { 0 };
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int result = read_head(fd, &head);
		if (result < 0)
			return result;
		struct ring_part part = { .from = from > oldest(&head) ? from : oldest(&head), .end = head.done.place };
		if (part.from > part.end)
			part.from = part.end;
		part.length = part.end - part.from < size ? (size_t)(part.end - part.from) : size;
		/* The writer never changes the size; everything else may have changed. */
		uint64_t ring_size = head.size;
		result = read_around(fd, &head, buffer, part.length, part.from);
		if (result == 0)
			result = read_head(fd, &head);
		if (result < 0 || head.size != ring_size)
			return result < 0 ? result : -EBADMSG;
		uint64_t lost = part.length && oldest(&head) > part.from ? oldest(&head) - part.from : 0;
		if (lost && lost >= part.length)
			continue;
		part.from += lost;
		part.length -= (size_t)lost;
		if (lost)
			memmove(buffer, (char *)buffer + lost, part.length);
		*ret_part = part;
		return 0;
	}
	*ret_part = (struct ring_part){ .from = head.done.place, .end = head.done.place };
	return 0;
}
