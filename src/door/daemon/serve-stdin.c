/* A command's input, on its way from a client: the library reads a pipe, and the loop writes to it no faster than that
 * is read. A client sends no more than was asked for, so what waits here is bounded. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cordon-internal.h"
#include "door/daemon/serve.h"

int stdin_open(struct served *run, struct cordon_error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "no pipe for the command's input");
	run->input.read_fd = ends[0];
	run->input.write_fd = ends[1];
	cordon_request_stdin(run->request, ends[0]);
	return 0;
}

static void close_write_end(struct served *run)
{
	if (run->input.is_watched)
		event_del(&run->input.writable);
	run->input.is_watched = false;
	cleanup_close(&run->input.write_fd);
	run->input.write_fd = -1;
}

static void on_writable(evutil_socket_t fd, short what, void *arg);

/* What it did not take waits. */
static void watch(struct served *run)
{
	bool wanted = run->input.waiting && evbuffer_get_length(run->input.waiting);
	if (wanted && !run->input.is_watched) {
		event_assign(&run->input.writable, run->server->base, run->input.write_fd, EV_WRITE | EV_PERSIST,
		             on_writable, run);
		event_add(&run->input.writable, NULL);
	} else if (!wanted && run->input.is_watched) {
		event_del(&run->input.writable);
	}
	run->input.is_watched = wanted;
}

static void pump(struct served *run)
{
	size_t before = run->input.waiting ? evbuffer_get_length(run->input.waiting) : 0;
	if (run->input.write_fd < 0)
		return;
	/* It has no reader any more, or continuing makes no sense: the command sees the end of file. */
	if (before && evbuffer_write(run->input.waiting, run->input.write_fd) < 0 && errno != EAGAIN && errno != EINTR)
		return close_write_end(run);
	size_t left = before ? evbuffer_get_length(run->input.waiting) : 0;
	if (before > left)
		run->kind->room(run, before - left);
	if (!left && run->input.has_ended)
		return close_write_end(run);
	watch(run);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	pump(arg);
}

void stdin_put(struct served *run, const char *data, size_t length)
{
	if (!run->input.waiting)
		run->input.waiting = evbuffer_new();
	if (!run->input.waiting || (length && evbuffer_add(run->input.waiting, data, length) < 0))
		return close_write_end(run);
	if (atomic_load(&run->started))
		pump(run);
}

void stdin_end(struct served *run)
{
	run->input.has_ended = true;
	if (atomic_load(&run->started))
		pump(run);
}

void stdin_close(struct served *run)
{
	close_write_end(run);
	cleanup_close(&run->input.read_fd);
	run->input.read_fd = -1;
	if (run->input.waiting)
		evbuffer_free(run->input.waiting);
	run->input.waiting = NULL;
}
