/* Scope-bound release of what a function owns. */
#pragma once
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

/* A descriptor with one owner: closed when the scope ends, moved out by take_fd() only. */
#define auto_close __attribute__((cleanup(cleanup_close)))
#define auto_free __attribute__((cleanup(cleanup_free)))

static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(take_fd(fd));
}

/* A large buffer that is not cleared first: only what is written to it costs anything. */
#define uncleared __attribute__((uninitialized))

#define must_check __attribute__((warn_unused_result))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
