/* The session of a server's calls, which lasts as long as the server. A server that is killed cannot end it: so while
 * it lives it holds a lock on a file of the session's name in `mcp/` of the data directory, and a server that makes its
 * session first ends those whose lock nobody holds. The lock on the directory keeps these two apart. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "door/mcp/mcp-task.h"

#define PREFIX "mcp-"

/* With its lock; -1: it cannot be had. */
static int open_directory(struct mcp_server *server)
{
	struct cordon_error ignored;
	const char *data;
	char path[4096];
	if (cordon_data_dir(server->cordon, &data, &ignored) < 0 ||
	    (size_t)snprintf(path, sizeof(path), "%s/mcp", data) >= sizeof(path) ||
	    (mkdir(path, 0700) < 0 && errno != EEXIST))
		return -1;
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 || flock(fd, LOCK_EX) < 0 ? -1 : take_fd(&fd);
}

static void end_and_remove(struct mcp_server *server, const char *session)
{
	struct cordon_error ignored;
	mcp_task_remove_all(server, session);
	if (cordon_session_end(server->cordon, session, false, &ignored) == 0 &&
	    cordon_session_remove(server->cordon, session, &ignored) < 0)
		return; /* `cordon session list` shows it as ended */
}

static void end_abandoned(struct mcp_server *server, int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	if (!list)
		cleanup_close(&fd);
	for (struct dirent *entry; list && (entry = readdir(list));) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			continue;
		auto_close int lock = openat(directory, entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
			continue;
		end_and_remove(server, entry->d_name);
		unlinkat(directory, entry->d_name, 0);
	}
	if (list)
		closedir(list);
}

/* With the server's lock. Without a lock of the session's own, it is ended by this server or by nobody. */
static int make_session(struct mcp_server *server, struct cordon_error *err)
{
	auto_free char *text = NULL;
	snprintf(server->session, sizeof(server->session), PREFIX "%s%s%08x%08x", server->client,
	         *server->client ? "-" : "", randombytes_random(), randombytes_random());
	if (cordon_session_new(server->cordon, server->session, server->options->settings, &text, err) < 0)
		return -1;
	server->has_session = true;
	auto_close int directory = open_directory(server);
	if (directory < 0)
		return 0;
	end_abandoned(server, directory);
	server->session_fd = openat(directory, server->session, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (server->session_fd >= 0 && flock(server->session_fd, LOCK_EX | LOCK_NB) < 0)
		close_fd(&server->session_fd);
	return 0;
}

int mcp_session(struct mcp_server *server, const char **ret_id, struct cordon_error *err)
{
	const char *named = server->options->session;
	pthread_mutex_lock(&server->lock);
	int result = named || server->has_session ? 0 : make_session(server, err);
	pthread_mutex_unlock(&server->lock);
	if (result == 0)
		*ret_id = named ? named : server->session;
	return result;
}

void mcp_session_end(struct mcp_server *server)
{
	if (!server->has_session)
		return;
	end_and_remove(server, server->session);
	auto_close int directory = open_directory(server);
	if (directory >= 0 && server->session_fd >= 0)
		unlinkat(directory, server->session, 0);
	close_fd(&server->session_fd);
}
