/* See sys/epoll.h. select() tells what is ready now, half-closed sockets included, which WSAPoll() tells of without
 * end, and connections that could not be made, which WSAPoll() of Windows before 2020 does not tell of. */
#include "base/windows/descriptors.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"

#define LOOK_MS 10                      /* descriptors that select() does not take */

/* As fd_set is laid out, of any size. */
struct socket_set {
	u_int count;
	SOCKET sockets[];
};

struct interests {
	struct interest {
		int fd;
		struct epoll_event event;
	} *items;
	size_t count, size;
	/* Of select(), with room for `size` each: what can be read, what can be written, what failed to connect. */
	struct socket_set *sets[3];
};

static int fail_with(int number)
{
	errno = number;
	return -1;
}

static struct interests *of(int epoll_fd)
{
	struct entry *entry = entry_find(epoll_fd);
	if (entry && entry->kind != ENTRY_EPOLL)
		errno = EINVAL;
	return entry && entry->kind == ENTRY_EPOLL ? entry->interests : NULL;
}

int epoll_create1(int flags)
{
	struct entry *entry;
	struct interests *interests = calloc(1, sizeof(*interests));
	(void)flags;
	if (!interests)
		return fail_with(ENOMEM);
	int fd = entry_add(ENTRY_EPOLL, &entry);
	if (fd < 0)
		free(interests);
	else
		entry->interests = interests;
	return fd;
}

void epoll_free(struct interests *interests)
{
	for (size_t i = 0; i < interests->count; i++) {
		struct entry *entry = socket_is(interests->items[i].fd) ? entry_find(interests->items[i].fd) : NULL;
		if (entry)
			entry->watched_by = 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(interests->sets); i++)
		free(interests->sets[i]);
	free(interests->items);
	free(interests);
}

/* ---- what is watched ----------------------------------------------------------------------------------------------- */

static struct interest *find(const struct interests *interests, int fd)
{
	for (size_t i = 0; i < interests->count; i++)
		if (interests->items[i].fd == fd)
			return &interests->items[i];
	return NULL;
}

static int reserve(struct interests *interests)
{
	size_t size = interests->size ? 2 * interests->size : 16;
	if (interests->count < interests->size)
		return 0;
	struct interest *items = reallocarray(interests->items, size, sizeof(*items));
	if (!items)
		return fail_with(ENOMEM);
	interests->items = items;
	for (size_t i = 0; i < ARRAY_SIZE(interests->sets); i++) {
		struct socket_set *set =
			realloc(interests->sets[i], sizeof(*set) + size * sizeof(set->sockets[0]));
		if (!set)
			return fail_with(ENOMEM);
		interests->sets[i] = set;
	}
	interests->size = size;
	return 0;
}

void epoll_forget(int epoll_fd, int fd)
{
	struct interests *interests = of(epoll_fd);
	struct interest *interest = interests ? find(interests, fd) : NULL;
	if (interest)
		*interest = interests->items[--interests->count];
}

int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	struct interests *interests = of(epoll_fd);
	struct entry *entry = socket_is(fd) ? entry_find(fd) : NULL;
	if (!interests)
		return -1;
	struct interest *interest = find(interests, fd);
	if (!interest != (operation == EPOLL_CTL_ADD))
		return fail_with(interest ? EEXIST : ENOENT);
	if (operation == EPOLL_CTL_DEL) {
		if (entry)
			entry->watched_by = 0;
		epoll_forget(epoll_fd, fd);
		return 0;
	}
	if (operation == EPOLL_CTL_ADD && reserve(interests) < 0)
		return -1;
	if (operation == EPOLL_CTL_ADD)
		interest = &interests->items[interests->count++];
	*interest = (struct interest){ fd, *event };
	if (entry) {
		entry->watched_by = epoll_fd;
		entry->told = 0;
	}
	return 0;
}

/* ---- waiting -------------------------------------------------------------------------------------------------------- */

static uint32_t wanted(const struct interest *interest, const struct entry *entry)
{
	return interest->event.events & (EPOLLIN | EPOLLOUT) & (interest->event.events & EPOLLET ? ~entry->told : ~0u);
}

static void put(struct socket_set *set, SOCKET socket)
{
	set->sockets[set->count++] = socket;
}

/* True where there is something that select() does not take. */
static bool fill_sets(const struct interests *interests)
{
	bool others = false;
	for (size_t i = 0; i < ARRAY_SIZE(interests->sets) && interests->size; i++)
		interests->sets[i]->count = 0;
	for (size_t i = 0; i < interests->count; i++) {
		const struct interest *interest = &interests->items[i];
		const struct entry *entry = socket_is(interest->fd) ? entry_find(interest->fd) : NULL;
		others |= !entry;
		if (entry && wanted(interest, entry) & EPOLLIN)
			put(interests->sets[0], entry->socket);
		if (entry && wanted(interest, entry) & EPOLLOUT) {
			put(interests->sets[1], entry->socket);
			put(interests->sets[2], entry->socket);
		}
	}
	return others;
}

static bool has(const struct socket_set *set, SOCKET socket)
{
	for (u_int i = 0; i < set->count; i++)
		if (set->sockets[i] == socket)
			return true;
	return false;
}

/* 0: it did not happen. */
static uint32_t happened(const struct interests *interests, const struct interest *interest)
{
	struct entry *entry = socket_is(interest->fd) ? entry_find(interest->fd) : NULL;
	if (!entry) {
		struct pollfd look = { .fd = interest->fd, .events = POLLIN };
		return poll(&look, 1, 0) > 0 ? interest->event.events & EPOLLIN : 0;
	}
	uint32_t events = (has(interests->sets[0], entry->socket) ? EPOLLIN : 0) |
	                  (has(interests->sets[1], entry->socket) ? EPOLLOUT : 0) |
	                  (has(interests->sets[2], entry->socket) ? EPOLLOUT | EPOLLERR : 0);
	entry->told |= events & (EPOLLIN | EPOLLOUT);
	return events;
}

static int take(const struct interests *interests, struct epoll_event *ret_events, int max)
{
	int count = 0;
	for (size_t i = 0; i < interests->count && count < max; i++) {
		uint32_t events = happened(interests, &interests->items[i]);
		if (events)
			ret_events[count++] = (struct epoll_event){ events, interests->items[i].event.data };
	}
	return count;
}

/* False: it cannot be done. */
static bool wait_once(const struct interests *interests, int ms)
{
	struct socket_set *const *sets = interests->sets;
	struct timeval wait = { ms / 1000, ms % 1000 * 1000 };
	if (!interests->size || !(sets[0]->count || sets[1]->count)) {
		Sleep(ms < 0 ? INFINITE : (DWORD)ms);
		return true;
	}
	return select(0, (fd_set *)(void *)sets[0], (fd_set *)(void *)sets[1], (fd_set *)(void *)sets[2],
	              ms < 0 ? NULL : &wait) >= 0;
}

int epoll_wait(int epoll_fd, struct epoll_event *ret_events, int max, int timeout_ms)
{
	const struct interests *interests = of(epoll_fd);
	ULONGLONG begun = GetTickCount64();
	if (!interests)
		return -1;
	for (;;) {
		ULONGLONG past = GetTickCount64() - begun;
		int left = timeout_ms < 0 ? -1 : past < (ULONGLONG)timeout_ms ? timeout_ms - (int)past : 0;
		bool others = fill_sets(interests);
		if (!wait_once(interests, others && (left < 0 || left > LOOK_MS) ? LOOK_MS : left))
			return socket_fail();
		int count = take(interests, ret_events, max);
		if (count || left == 0)
			return count;
	}
}

/* Something that is watched has happened, and is told when it is asked for. */
short epoll_look(int fd, short events)
{
	const struct interests *interests = of(fd);
	for (size_t i = 0; interests && events & POLLIN && i < interests->count; i++) {
		struct pollfd look = { .fd = interests->items[i].fd,
			               .events = (short)(interests->items[i].event.events & (POLLIN | POLLOUT)) };
		if (poll(&look, 1, 0) > 0)
			return POLLIN;
	}
	return 0;
}
