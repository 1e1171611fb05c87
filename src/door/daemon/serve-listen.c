/* The daemon's place: one per user and data directory. A lock file, which holds the daemon's process id, ensures that;
 * the socket of a daemon that died is replaced. A socket that is removed while the daemon runs is made again: a daemon
 * that no client can reach would keep the next one from starting. If that fails, because the directory is gone or has
 * another daemon, the daemon ends. systemd may hand over the listening socket (sd_listen_fds(3)); it is then used and
 * not removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "door/daemon/serve.h"

#define BACKLOG 512
#define LOCK "daemon.lock"
#define LOCK_PATIENCE_MS_AT_START 1000
/* If the whole directory was removed on purpose, it is not made again. */
#define CHANGED_MS 100

/* ---- the lock -------------------------------------------------------------------------------------------------- */

static int refuse_second(int lock_fd, const char *directory, struct cordon_error *err)
{
	char text[24] = "";
	ssize_t length = pread(lock_fd, text, sizeof(text) - 1, 0);
	long pid = length > 0 ? strtol(text, NULL, 10) : 0;
	fail(err, CORDON_E_SESSION_BUSY, 0, directory, "a daemon is running here already");
	if (pid > 1)
		return fail_remedy(err, "use that one, or end it first: kill %ld", pid);
	return fail_remedy(err, "use that one, or end it first");
}

static int take_lock(struct server *server, int patience_ms, struct cordon_error *err)
{
	auto_close int fd = openat(server->directory_fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail(err, CORDON_E_INTERNAL, errno, server->directory, "the daemon's lock cannot be opened");
	if (lock_wait(fd, LOCK_EX, patience_ms) < 0)
		return errno == EWOULDBLOCK ? refuse_second(fd, server->directory, err)
		                            : lock_refused(errno, server->directory, err);
	/* Without it the next one only cannot say whom to end. */
	if (ftruncate(fd, 0) == 0)
		dprintf(fd, "%ld\n", (long)getpid());
	cleanup_close(&server->lock_fd);
	server->lock_fd = take_fd(&fd);
	return 0;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* The directory is where it was, and the lock in it. */
static bool is_at_home(const struct server *server)
{
	struct stat ours, there;
	return fstat(server->directory_fd, &ours) == 0 && stat(server->directory, &there) == 0 &&
	       is_same(&ours, &there);
}

static bool has_lock(const struct server *server)
{
	struct stat ours, there;
	return fstat(server->lock_fd, &ours) == 0 &&
	       fstatat(server->directory_fd, LOCK, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&ours, &there);
}

/* ---- the socket ------------------------------------------------------------------------------------------------ */

static bool has_socket(const struct server *server)
{
	struct stat there;
	return lstat(server->place.address.sun_path, &there) == 0 && is_same(&server->socket, &there);
}

/* The mode is set before the socket is visible: the umask is that of every command that starts meanwhile. */
static int make_socket(struct server *server, struct cordon_error *err)
{
	const struct sockaddr_un *address = &server->place.address;
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The lock is ours: the daemon that left this socket is dead. */
	unlink(address->sun_path);
	if (fd < 0 || fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    lstat(address->sun_path, &server->socket) < 0 || listen(fd, BACKLOG) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, address->sun_path, "cannot listen there");
	cleanup_close(&server->listen_fd);
	server->listen_fd = take_fd(&fd);
	server->is_handed_over = false;
	return 0;
}

/* Whether systemd started this process with one listening socket, as descriptor 3. The variables are for this process
 * only. */
static bool is_socket_handed_over(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	bool handed_over = pid && count && strtol(pid, NULL, 10) == (long)getpid() && !strcmp(count, "1");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return handed_over;
}

static int take_socket(struct server *server, struct cordon_error *err)
{
	enum { HANDED_OVER_FD = 3 };
	struct sockaddr_un bound = { 0 };
	socklen_t size = sizeof(bound) - 1;
	struct stat there;
	if (getsockname(HANDED_OVER_FD, (struct sockaddr *)&bound, &size) < 0 || bound.sun_family != AF_UNIX ||
	    lstat(bound.sun_path, &there) < 0 || lstat(server->place.address.sun_path, &server->socket) < 0 ||
	    !is_same(&there, &server->socket)) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, bound.sun_path,
		     "systemd handed over a socket that clients do not use");
		return fail_remedy(err, "set ListenStream=%s/%s in cordon.socket", server->directory,
		                   strrchr(server->place.address.sun_path, '/') + 1);
	}
	if (fcntl(HANDED_OVER_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(HANDED_OVER_FD, F_SETFL, O_NONBLOCK) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, bound.sun_path,
		            "cannot use the socket that systemd handed over");
	server->listen_fd = HANDED_OVER_FD;
	server->is_handed_over = true;
	return 0;
}

static bool accept_one(struct server *server)
{
	int connection = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (connection < 0)
		return false;
	client_accept(server, connection);
	server_settle(server);
	return true;
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	accept_one(arg);
}

/* Unlinking changes the link count, which is reported even while the socket is in use. If it cannot be watched, it is
 * not noticed. */
static void watch_socket(struct server *server)
{
	event_assign(&server->listening, server->base, server->listen_fd, EV_READ | EV_PERSIST, on_connection, server);
	event_add(&server->listening, NULL);
	if (server->watch_fd >= 0)
		(void)inotify_add_watch(server->watch_fd, server->place.address.sun_path,
		                        IN_ATTRIB | IN_MOVE_SELF | IN_DONT_FOLLOW);
}

/* ---- what becomes of it ---------------------------------------------------------------------------------------- */

static void on_changed(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	char events[4096];
	(void)what;
	while (read(fd, events, sizeof(events)) > 0)
		;
	evtimer_add(&server->look, &(struct timeval){ .tv_usec = CHANGED_MS * 1000 });
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	struct cordon_error err;
	(void)fd, (void)what;
	if (has_socket(server))
		return;
	event_del(&server->listening);
	/* They came while it was there. */
	while (accept_one(server))
		;
	if (!is_at_home(server) || (!has_lock(server) && take_lock(server, 0, &err) < 0) ||
	    make_socket(server, &err) < 0)
		server_end(server);
	else
		watch_socket(server);
}

int listen_open(struct server *server, const char *directory, struct cordon_error *err)
{
	server->directory = directory;
	server->directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (server->directory_fd < 0 || !daemon_place_in(directory, &server->place))
		return fail(err, CORDON_E_INTERNAL, errno, directory, "cordon's data directory cannot be opened");
	/* One that was killed a moment ago may have left children which have not become what they are to be. */
	if (take_lock(server, LOCK_PATIENCE_MS_AT_START, err) < 0)
		return -1;
	return is_socket_handed_over() ? take_socket(server, err) : make_socket(server, err);
}

void listen_begin(struct server *server)
{
	server->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	evtimer_assign(&server->look, server->base, on_look, server);
	event_assign(&server->changed, server->base, server->watch_fd, EV_READ | EV_PERSIST, on_changed, server);
	if (server->watch_fd >= 0)
		event_add(&server->changed, NULL);
	watch_socket(server);
}

void listen_end(struct server *server)
{
	event_del(&server->listening);
	event_del(&server->look);
	if (server->watch_fd >= 0)
		event_del(&server->changed);
	cleanup_close(&server->listen_fd);
	server->listen_fd = -1;
}

void listen_close(struct server *server)
{
	if (has_socket(server) && !server->is_handed_over)
		unlink(server->place.address.sun_path);
	cleanup_close(&server->listen_fd);
	cleanup_close(&server->watch_fd);
	cleanup_close(&server->lock_fd);
	cleanup_close(&server->place.directory_fd);
	cleanup_close(&server->directory_fd);
}
