/* Pipes for splicing. A direction of a tunnel has one only while there is something in it, so that a thousand that are
 * silent cost nothing, and one that is emptied serves the next while it is still warm. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct pipe {
	struct pipe *next;
	int read_fd, write_fd;
	bool is_large;
	size_t fill;
};

struct pipes {
	struct pipe *idle;
	size_t idle_count, large_count;
};

/* NULL where descriptors or memory are short. */
struct pipe *pipes_take(struct pipes *pipes);
/* What is still in it is lost. */
void pipes_give(struct pipes *pipes, struct pipe *pipe);
