/* The table behind sockets.c, epoll.c and eventfd.c. */
#pragma once
#include <stdatomic.h>

#include "base/windows/sockets.h"

struct interests;

enum entry_kind { ENTRY_FREE, ENTRY_SOCKET, ENTRY_EPOLL, ENTRY_EVENT };

struct entry {
	enum entry_kind kind;
	SOCKET socket;                  /* it never waits; who wants to, waits beside it */
	bool waits, was_reset;          /* the latter: and has said so */
	unsigned send_ms;               /* how long it waits to send; 0: without end */
	DWORD peer;                     /* see socket_has_peer() */
	/* By edge: what was told, and was not denied by EAGAIN since. */
	uint32_t told;
	int watched_by;                 /* the descriptor of an epoll; 0: none */
	struct interests *interests;    /* of an epoll */
	atomic_bool is_set;             /* of an eventfd */
};

/* NULL and EBADF. */
struct entry *entry_find(int fd);
/* A new descriptor, or -1 and EMFILE. */
int entry_add(enum entry_kind kind, struct entry **ret_entry);
void entry_free(int fd);
/* Of winsock, as one of errno; and -1. */
int socket_fail(void);
/* epoll.c: it is closed. */
void epoll_forget(int epoll_fd, int fd);
void epoll_free(struct interests *interests);
short epoll_look(int fd, short events);
