/* The command's input: from the caller's descriptor into the pipe or the terminal, no faster than it is read. */
#include "driver/linux/supervise-parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#define CHUNK (64 * 1024)

void input_begin(struct supervision *supervision)
{
	int from = supervision->options.stdin_fd;
	if (from < 0) {
		if (!supervision->options.tty)
			close_fd(&supervision->stdin_fd);
		return;
	}
	supervision->stdin_open = true;
	struct stat info;
	bool is_file = fstat(from, &info) == 0 && S_ISREG(info.st_mode) && !supervision->options.tty;
	supervision->stdin_offset = is_file ? lseek(from, 0, SEEK_CUR) : -1;
	supervision->stdin_pollable = supervise_watch(supervision, from, SOURCE_STDIN, EPOLLIN | EPOLLONESHOT) == 0;
	/* A regular file is always ready; what paces it is the room in the pipe. */
	supervise_watch(supervision, supervision->stdin_fd, SOURCE_STDIN_ROOM,
	                supervision->stdin_pollable ? EPOLLONESHOT : EPOLLOUT | EPOLLONESHOT);
}

static void rewatch(struct supervision *supervision, int fd, enum source source, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLONESHOT, .data.u32 = source };
	epoll_ctl(supervision->epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

static void watch_caller(struct supervision *supervision)
{
	pthread_mutex_lock(&supervision->stdin_lock);
	rewatch(supervision, supervision->options.stdin_fd, SOURCE_STDIN, supervision->stdin_held ? 0 : EPOLLIN);
	pthread_mutex_unlock(&supervision->stdin_lock);
}

void input_end(struct supervision *supervision)
{
	if (supervision->stdin_pollable)
		epoll_ctl(supervision->epoll_fd, EPOLL_CTL_DEL, supervision->options.stdin_fd, NULL);
	supervision->stdin_open = false;
	if (supervision->options.tty)
		(void)!write(supervision->stdin_fd, "\4", 1);
	else
		close_fd(&supervision->stdin_fd);
}

/* The caller's process must not get a SIGPIPE because the command stopped reading. */
static ssize_t write_quietly(int fd, const char *bytes, size_t length)
{
	sigset_t pipe_signal, before, pending;
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	ssize_t written = write(fd, bytes, length);
	int saved = errno;
	if (written < 0 && saved == EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe_signal, NULL, &(struct timespec){ 0 });
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return written;
}

/* Writes what is pending; true once nothing is. */
static bool flush_input(struct supervision *supervision)
{
	while (supervision->pending_length) {
		ssize_t length = write_quietly(supervision->stdin_fd, supervision->pending + supervision->pending_start,
		                               supervision->pending_length);
		if (length < 0 && errno == EAGAIN) {
			rewatch(supervision, supervision->stdin_fd, SOURCE_STDIN_ROOM, EPOLLOUT);
			return false;
		}
		if (length < 0) { /* the command does not read any more: EPIPE */
			supervision->pending_length = 0;
			input_end(supervision);
			return false;
		}
		supervision->pending_start += (size_t)length;
		supervision->pending_length -= (size_t)length;
	}
	return true;
}

/* A regular file keeps its offset meanwhile: how much of it the command reads is known only afterwards. */
static ssize_t read_caller(struct supervision *supervision)
{
	int fd = supervision->options.stdin_fd;
	off_t at = supervision->stdin_offset + (off_t)supervision->stdin_bytes;
	ssize_t length = supervision->stdin_offset < 0 ? read(fd, supervision->pending, CHUNK)
	                                               : pread(fd, supervision->pending, CHUNK, at);
	if (length > 0)
		supervision->stdin_bytes += (size_t)length;
	return length;
}

void input_pump(struct supervision *supervision, bool readable)
{
	if (!supervision->stdin_open)
		return;
	if (!supervision->pending && !(supervision->pending = malloc(CHUNK))) {
		supervision->stdin_error = ENOMEM;
		input_end(supervision);
		return;
	}
	if (!flush_input(supervision))
		return;
	while (readable || !supervision->stdin_pollable) {
		ssize_t length = read_caller(supervision);
		if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
			/* What is not open for reading, as nohup gives it, is none. */
			supervision->stdin_error = length < 0 && errno != EBADF ? errno : 0;
			input_end(supervision);
			return;
		}
		supervision->pending_start = 0;
		supervision->pending_length = length > 0 ? (size_t)length : 0;
		if (!flush_input(supervision))
			return;
		readable = false;
	}
	watch_caller(supervision);
}

void supervise_hold_input(struct supervision *supervision, bool hold)
{
	if (!isatty(supervision->options.stdin_fd))
		return;
	pthread_mutex_lock(&supervision->stdin_lock);
	supervision->stdin_held = hold;
	pthread_mutex_unlock(&supervision->stdin_lock);
	/* Where it is not watched any more, this changes nothing. */
	watch_caller(supervision);
}

void input_settle(struct supervision *supervision)
{
	int fd = supervision->options.stdin_fd, unread = 0;
	off_t start = supervision->stdin_offset;
	if (supervision->unread_fd < 0 || ioctl(supervision->unread_fd, FIONREAD, &unread) < 0)
		return;
	uint64_t left = supervision->pending_length + (size_t)unread;
	supervision->stdin_bytes -= left < supervision->stdin_bytes ? left : supervision->stdin_bytes;
	close_fd(&supervision->unread_fd);
	/* Outside, it would have been the command that moved it. */
	if (start >= 0 && supervision->stdin_bytes && lseek(fd, 0, SEEK_CUR) == start)
		lseek(fd, start + (off_t)supervision->stdin_bytes, SEEK_SET);
}
