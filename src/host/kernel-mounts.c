/* Where the kernel's own filesystems are mounted: see kernel-mounts.h. The table of mounts takes a microsecond for
 * each to print, so what was found in it is kept for as long as it says that nothing changed. */
#include "host/kernel-mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/after-fork.h"
#include "base/cleanup.h"

#define TABLE_CHUNK 32768
#define TABLE "/proc/thread-self/mountinfo"
#define NAMESPACE "/proc/thread-self/ns/mnt"

static const char *const types[] = {
	"cgroup",   "cgroup2",  "proc",   "sysfs",       "debugfs",   "tracefs", "securityfs", "bpf",
	"configfs", "efivarfs", "pstore", "binfmt_misc", "selinuxfs", "smackfs", "devtmpfs",
};

/* For one process in one namespace: another has its own, and who shares a descriptor misses what the other was told. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd;                 /* of the table; -1: there is none */
	pid_t pid;
	uint64_t namespace;
	uint64_t version;       /* counts how often it was read */
	int error;              /* why there are no points; or 0 */
	char *points;           /* of each a letter for its type, from 'a' on, and its path; ended by an empty one */
} known = { .fd = -1 };

static void begin_anew(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	known.fd = -1;
	known.points = NULL;
}
AFTER_FORK(begin_anew);

/* Spaces and the like are written as a backslash and three octal digits. */
static void add_point(FILE *points, size_t type, const char *text, size_t length)
{
	putc('a' + (int)type, points);
	for (size_t i = 0; i < length; i++) {
		unsigned code;
		if (text[i] == '\\' && sscanf(text + i + 1, "%3o", &code) == 1) {
			putc((int)code, points);
			i += 3;
		} else {
			putc(text[i], points);
		}
	}
	putc('\0', points);
}

/* ID PARENT DEVICE ROOT POINT OPTIONS [FIELD…] - TYPE SOURCE OPTIONS */
static void add_line(FILE *points, const char *line)
{
	const char *end = strstr(line, " - "), *point = line;
	size_t type = 0, length = end ? strcspn(end + 3, " ") : 0;
	while (type < ARRAY_SIZE(types) &&
	       (!end || strlen(types[type]) != length || memcmp(types[type], end + 3, length)))
		type++;
	if (type == ARRAY_SIZE(types))
		return;
	for (int field = 0; field < 4 && point; field++)
		point = (point = strchr(point, ' ')) ? point + 1 : NULL;
	if (point && point < end)
		add_point(points, type, point, strcspn(point, " "));
}

static char *read_points(FILE *table)
{
	char *points = NULL, *line = NULL;
	size_t size, room = 0;
	FILE *list = open_memstream(&points, &size);
	while (list && getline(&line, &room, table) > 0)
		add_line(list, line);
	free(line);
	if (!list || fclose(list) != 0 || ferror(table))
		return NULL;
	return points;
}

static void drop(void)
{
	if (known.fd >= 0)
		close(take_fd(&known.fd));
	free(known.points);
	known.points = NULL;
}

void kernel_mounts_forget(void)
{
	pthread_mutex_lock(&lock);
	drop();
	pthread_mutex_unlock(&lock);
}

/* Of this thread. The root's mount is in one namespace only; its number is not given to another one as long as the
 * table is open, which keeps the namespace. Before 5.8 the kernel does not tell it. */
static uint64_t namespace_now(void)
{
	struct statx root;
	struct stat info;
	/* With its inode: the root may become another directory of the same mount. */
	if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID | STATX_INO, &root) == 0 &&
	    root.stx_mask & STATX_MNT_ID)
		return root.stx_mnt_id ^ root.stx_ino << 32;
	return stat(NAMESPACE, &info) == 0 ? info.st_ino : 0;
}

static void look(uint64_t namespace)
{
	drop();
	known.fd = open(TABLE, O_RDONLY | O_CLOEXEC);
	/* A stream of its own: the descriptor is kept for what it says later. */
	int copy = known.fd < 0 ? -1 : fcntl(known.fd, F_DUPFD_CLOEXEC, 3);
	FILE *table = copy < 0 ? NULL : fdopen(copy, "re");
	if (!table && copy >= 0)
		close(copy);
	known.pid = getpid();
	known.namespace = namespace;
	known.version++;
	/* As much at a time as there is: what is printed twice is what did not fit. */
	auto_free char *chunk = table ? malloc(TABLE_CHUNK) : NULL;
	if (chunk)
		setvbuf(table, chunk, _IOFBF, TABLE_CHUNK);
	known.points = table ? read_points(table) : NULL;
	known.error = known.points ? 0 : errno;
	if (table)
		fclose(table);
}

static bool is_unchanged(void)
{
	struct pollfd table = { .fd = known.fd, .events = POLLPRI };
	return known.points && known.pid == getpid() && poll(&table, 1, 0) == 0;
}

static bool is_current(uint64_t namespace)
{
	return namespace && known.namespace == namespace && is_unchanged();
}

static void know(void)
{
	uint64_t namespace = namespace_now();
	if (!is_current(namespace))
		look(namespace);
}

static uint64_t version_now(bool same_namespace)
{
	pthread_mutex_lock(&lock);
	if (!same_namespace || !is_unchanged())
		know();
	uint64_t version = known.version;
	pthread_mutex_unlock(&lock);
	return version;
}

uint64_t kernel_mounts_version(void)
{
	return version_now(false);
}

uint64_t kernel_mounts_version_again(void)
{
	return version_now(true);
}

/* The path is not "/", nor ends in a slash. */
int kernel_mounts_beneath(const char *path, const char **ret_type)
{
	pthread_mutex_lock(&lock);
	know();
	const char *found = NULL;
	int error = known.points ? 0 : known.error ? known.error : EIO;
	size_t length = strlen(path);
	for (const char *point = known.points; point && *point && !found; point += strlen(point) + 1)
		if (!strncmp(point + 1, path, length) && (point[1 + length] == '/' || point[1 + length] == '\0'))
			found = types[*point - 'a'];
	pthread_mutex_unlock(&lock);
	if (!error)
		*ret_type = found;
	return -error;
}
