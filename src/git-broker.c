/* See git-broker.h. Everything is done by descriptors of directories that were opened before the command started; a
 * directory that is the command's `.git` by then is no other one, because it is pinned inside. Of a configuration the
 * library writes only the very file that was there then. It is emptied first: whoever reads meanwhile sees the
 * beginning of what was judged, never a mixture. The lock goes last, so that the content is somewhere at any moment. */
#include "git-broker.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compat.h"
#include "base/text.h"
#include "paths/planted/git-config.h"
#include "walk.h"

#define PLACES_MAX 32
#define TOLD_MAX 8
#define NAME "config"
#define LOCK "config.lock"

struct text {
	char *bytes;                            /* NULL: it was not read */
	size_t length;
};

struct git_broker {
	struct execution *execution;
	struct rename_watch renames;
	struct rename_place places[PLACES_MAX];
	struct place_facts {
		const char *path;               /* of the configuration */
		uint64_t device, inode;         /* of the same, when the command started */
		struct text before;             /* what it had, before the first change */
	} facts[PLACES_MAX];
	size_t count;
	const char *told[TOLD_MAX];             /* of single settings; the execution's */
	size_t told_count;
};

const struct rename_watch *git_broker_renames(const struct git_broker *broker)
{
	return broker ? &broker->renames : NULL;
}

void git_broker_free(struct git_broker *broker)
{
	if (!broker)
		return;
	for (size_t i = 0; i < broker->count; i++) {
		close(broker->places[i].fd);
		free(broker->facts[i].before.bytes);
	}
	free(broker);
}

/* ---- one change ------------------------------------------------------------------------------------------------ */

/* A regular file with one name, opened by what it is; or -1. */
static int open_file(int directory, const char *name, int flags, struct stat *ret_info)
{
	char link[64];
	auto_close int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret_info) < 0 || !S_ISREG(ret_info->st_mode) || ret_info->st_nlink != 1 ||
	    ret_info->st_size > GIT_CONFIG_SIZE_MAX)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return open(link, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Into memory of our own; what is too large is not read. */
static bool read_all(int fd, struct text *ret_text)
{
	char *bytes = malloc(GIT_CONFIG_SIZE_MAX + 1);
	size_t length = 0;
	ssize_t got = bytes ? 1 : -1;
	while (got > 0 && length <= GIT_CONFIG_SIZE_MAX)
		if ((got = pread(fd, bytes + length, GIT_CONFIG_SIZE_MAX + 1 - length, (off_t)length)) > 0)
			length += (size_t)got;
	if (got < 0 || length > GIT_CONFIG_SIZE_MAX) {
		free(bytes);
		return false;
	}
	*ret_text = (struct text){ bytes, length };
	return true;
}

static bool write_all(int fd, const struct text *text)
{
	size_t done = 0;
	if (ftruncate(fd, 0) < 0)
		return false;
	while (done < text->length) {
		ssize_t written = pwrite(fd, text->bytes + done, text->length - done, (off_t)done);
		if (written <= 0)
			return false;
		done += (size_t)written;
	}
	return true;
}

/* Once each. */
static void name_key(struct git_broker *broker, const struct place_facts *facts, const char *key, const char *what)
{
	struct execution *execution = broker->execution;
	const char *note = arena_printf(&execution->arena, "%s %s", key, what);
	for (size_t i = 0; note && i < broker->told_count; i++)
		if (!strcmp(broker->told[i], note))
			return;
	if (!note || broker->told_count == TOLD_MAX)
		return;
	broker->told[broker->told_count++] = note;
	(void)!denials_add(&execution->denials, &execution->arena, CORDON_WALL_PROTECTED, facts->path, note, "");
}

static void name_refusal(struct git_broker *broker, const struct place_facts *facts,
                         const struct git_config_verdict *verdict)
{
	const char *what =
		arena_printf(&broker->execution->arena,
	                     "%s; git may change what is harmless, and this was not changed", verdict->reason);
	if (what)
		name_key(broker, facts, verdict->key, what);
}

/* `lock` is to become `config`. */
static bool change(struct git_broker *broker, struct place_facts *facts, int lock, int config)
{
	struct git_config_verdict verdict = { 0 };
	struct text now = { NULL, 0 }, wanted = { NULL, 0 };
	bool done = read_all(lock, &wanted) && read_all(config, &now);
	if (done && !facts->before.bytes) {
		facts->before = now;
		now.bytes = NULL;
		done = read_all(config, &now);
	}
	if (done) {
		git_config_judge_change(facts->before.bytes, facts->before.length, wanted.bytes, wanted.length,
		                        &verdict);
		done = !verdict.reason;
		if (!done)
			name_refusal(broker, facts, &verdict);
	}
	if (done && !write_all(config, &wanted)) {
		(void)!write_all(config, &now);
		done = false;
	}
	if (done && *verdict.removed)
		name_key(broker, facts, verdict.removed,
		         "was taken away with its remote: a later command can add another remote of that name");
	free(now.bytes);
	free(wanted.bytes);
	return done;
}

static bool take(void *arg, size_t place)
{
	struct git_broker *broker = arg;
	struct place_facts *facts = &broker->facts[place];
	int directory = broker->places[place].fd;
	struct stat lock_info, info, named;
	auto_close int lock = open_file(directory, LOCK, O_RDONLY, &lock_info);
	auto_close int config = lock < 0 ? -1 : open_file(directory, NAME, O_RDWR, &info);
	if (config < 0 || (uint64_t)info.st_dev != facts->device || info.st_ino != facts->inode ||
	    !change(broker, facts, lock, config))
		return false;
	if (fstatat(directory, LOCK, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == lock_info.st_dev &&
	    named.st_ino == lock_info.st_ino)
		unlinkat(directory, LOCK, 0);
	return true;
}

/* ---- the beginning --------------------------------------------------------------------------------------------- */

static void add_place(struct git_broker *broker, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	struct stat directory, info;
	const char *slash = strrchr(path, '/');
	const char *parent = arena_strndup(&broker->execution->arena, path, (size_t)(slash - path));
	auto_close int fd = parent ? compat_openat2(AT_FDCWD, parent, &how) : -1;
	if (fd < 0 || broker->count == PLACES_MAX || fstat(fd, &directory) < 0 ||
	    fstatat(fd, NAME, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
		return;
	broker->facts[broker->count] =
		(struct place_facts){ .path = path, .device = info.st_dev, .inode = info.st_ino };
	broker->places[broker->count++] = (struct rename_place){ take_fd(&fd), directory.st_dev, directory.st_ino };
}

static bool is_config(const struct mount_op *op)
{
	const char *slash = op->kind == MOUNT_FREEZE ? strrchr(op->target, '/') : NULL;
	return slash && !strcmp(slash + 1, NAME) && !path_within(op->target, "/proc") && strstr(op->target, ".git/");
}

int git_broker_begin(struct execution *execution, struct git_broker **ret_broker, struct cordon_error *err)
{
	const struct profile *profile = &execution->verdict.profile;
	const uint32_t needed = WALL_BIT(PROTECTED) | WALL_BIT(PRIVILEGES);
	struct git_broker *broker = NULL;
	*ret_broker = NULL;
	if (!execution->verdict.session.driver->tells_renames || (profile->walls & needed) != needed ||
	    execution->facts.probe)
		return 0;
	for (size_t i = 0; i < profile->mounts.count; i++) {
		if (!is_config(&profile->mounts.ops[i]))
			continue;
		if (!broker && !(broker = calloc(1, sizeof(*broker))))
			return fail_oom(err);
		broker->execution = execution;
		add_place(broker, profile->mounts.ops[i].target);
	}
	if (broker)
		broker->renames = (struct rename_watch){ broker->places, broker->count, take, broker };
	*ret_broker = broker;
	return 0;
}
