/* Pipes for splicing. A direction of a tunnel has one only while there is something in it, so that a thousand that are
 * silent cost nothing, and one that is emptied serves the next while it is still warm. Much is moved through a large
 * one, of which there are few; what is likely to stay for a while is put into a small one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pipe {
	struct pipe *next;
	int read_fd, write_fd;
	bool is_large;
	size_t fill;
};

#define PIPE_SMALL_SIZE ((size_t)1 << 16)
#define PIPE_LARGE_SIZE ((size_t)1 << 20)

struct pipes {
	struct {
		struct pipe *first;
		size_t count;
	} idle[2];              /* small ones, large ones */
	size_t large_count;     /* of all there are */
};

/* For so many bytes at a time; it may take fewer. NULL where descriptors or memory are short, or there is no splicing
 * (pipes-none.c): then bytes are copied. */
struct pipe *pipes_take(struct pipes *pipes, size_t length);
/* What is still in it is lost. */
void pipes_give(struct pipes *pipes, struct pipe *pipe);

/* One of these is a pipe's end: how much was moved, 0 at the end of what `from` has, or -errno. */
ssize_t pipes_splice(int from, int to, size_t length);
/* How much a socket takes before it is full: more would stay in the pipe, and occupy it. */
size_t pipes_room(int socket_fd);
