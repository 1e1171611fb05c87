/* Tasks on disk: in `mcp/tasks` of the data directory, a file for each, named after its session and its id. So a task
 * is found by a server that is started again for the session, and what has expired is removed by whichever server makes
 * the next one. */
#include "door/mcp/mcp-task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define TASKS_MAX 256                   /* of a session */
#define TASK_SIZE_MAX (64u << 20)
#define HASH_SIZE 33
#define NAME_SIZE (HASH_SIZE + MCP_TASK_ID + 8)

/* The directory, open; -1: it cannot be had. With `make`, it is made. */
static int open_directory(struct mcp_server *server, bool make)
{
	struct cordon_error ignored;
	const char *data;
	char path[4096];
	if (cordon_data_dir(server->cordon, &data, &ignored) < 0)
		return -1;
	static const char *const parts[] = { "/mcp", "/mcp/tasks" };
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if ((size_t)snprintf(path, sizeof(path), "%s%s", data, parts[i]) >= sizeof(path) ||
		    (make && mkdir(path, 0700) < 0 && errno != EEXIST))
			return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A session's id may have any length and any characters. */
static void hash_session(const char *session, char ret_hash[HASH_SIZE])
{
	unsigned char hash[16];
	crypto_generichash(hash, sizeof(hash), (const unsigned char *)session, strlen(session), NULL, 0);
	sodium_bin2hex(ret_hash, HASH_SIZE, hash, sizeof(hash));
}

/* False: this is no id of a task. */
static bool name_of(const char *session, const char *task, char ret_name[NAME_SIZE])
{
	char hash[HASH_SIZE];
	if (strlen(task) != MCP_TASK_ID - 1 || strspn(task, "0123456789abcdef") != MCP_TASK_ID - 1)
		return false;
	hash_session(session, hash);
	snprintf(ret_name, NAME_SIZE, "%s-%s", hash, task);
	return true;
}

/* Removes what has expired, and with `all` everything of the session; returns how many of the session's are left. */
static size_t sweep(int directory, const char *session, bool all)
{
	char hash[HASH_SIZE];
	size_t count = 0;
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	if (!list)
		cleanup_close(&fd);
	hash_session(session, hash);
	for (struct dirent *entry; list && (entry = readdir(list));) {
		struct stat info;
		if (*entry->d_name == '.' || fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bool is_ours = !strncmp(entry->d_name, hash, HASH_SIZE - 1);
		if ((all && is_ours) || time(NULL) - info.st_mtime > MCP_TASK_TTL_MS / 1000)
			unlinkat(directory, entry->d_name, 0);
		else
			count += is_ours;
	}
	if (list)
		closedir(list);
	return count;
}

static bool replace(int directory, const char *name, const char *text)
{
	char made[NAME_SIZE + 8];
	auto_close int fd = -1;
	snprintf(made, sizeof(made), "%s.new", name);
	unlinkat(directory, made, 0);
	if (file_create(directory, made, text, strlen(text), &fd) < 0)
		return false;
	if (fdatasync(fd) == 0 && renameat(directory, made, directory, name) == 0)
		return fsync(directory) == 0;
	unlinkat(directory, made, 0);
	return false;
}

bool mcp_task_write(struct mcp_server *server, const char *session, const char *task, const char *text)
{
	char name[NAME_SIZE];
	auto_close int directory = open_directory(server, true);
	if (directory < 0 || !name_of(session, task, name) || strlen(text) > TASK_SIZE_MAX)
		return false;
	bool is_new = faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (is_new && sweep(directory, session, false) >= TASKS_MAX)
		return false;
	return replace(directory, name, text);
}

char *mcp_task_read(struct mcp_server *server, const char *session, const char *task)
{
	char name[NAME_SIZE], *text = NULL;
	size_t length;
	auto_close int directory = open_directory(server, false);
	if (directory < 0 || !name_of(session, task, name) ||
	    file_read(directory, name, TASK_SIZE_MAX, &text, &length) < 0)
		return NULL;
	return text;
}

void mcp_task_remove_all(struct mcp_server *server, const char *session)
{
	auto_close int directory = open_directory(server, false);
	auto_close int parent = directory < 0 ? -1 : openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return;
	sweep(directory, session, true);
	/* Unless others have some. */
	unlinkat(parent, "tasks", AT_REMOVEDIR);
}
