/* The queue of questions: see approvals.h.
 *
 * A question is created under a temporary name (.new-…), locked and filled, and then renamed: a process that finds it
 * finds it complete and locked. An answer is written beside the questions (.answer-…) and then linked into one. Both
 * are locked by their creator. If a sweeper removes one before its creator has the lock, the creator starts again. */
#include "approval/approvals.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/remove.h"
#include "approval/queue.h"

#define SETTLED_MAX 64
#define ATTEMPTS 20                             /* each lost to a sweeper */

/* ---- who we are -------------------------------------------------------------------------------------------------- */

/* The controlling terminal's name, as ps has it. "" where there is none. */
static void name_terminal(int pid, char *name, size_t size)
{
	char path[32], text[512];
	int number = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	const char *after = strrchr(text, ')');
	name[0] = '\0';
	if (!after || sscanf(after + 1, " %*c %*d %*d %*d %d", &number) != 1 || !number)
		return;
	unsigned device_major = (unsigned)number >> 8 & 0xfff;
	unsigned device_minor = ((unsigned)number & 0xff) | ((unsigned)number >> 12 & 0xfff00);
	if (device_major >= 136 && device_major < 144)
		snprintf(name, size, "pts/%u", device_minor + (device_major - 136) * 256);
	else if (device_major == 4)
		snprintf(name, size, "tty%u", device_minor);
	else
		snprintf(name, size, "%u:%u", device_major, device_minor);
}

int approval_by_process(struct arena *arena, const char *door, int pid, struct approval_by *ret_by)
{
	char terminal[32];
	int process = pid ? pid : (int)getpid();
	name_terminal(process, terminal, sizeof(terminal));
	struct approval_by by = { .door = door, .uid = getuid(), .pid = (uint64_t)process };
	if (*terminal && !(by.terminal = arena_strdup(arena, terminal)))
		return -1;
	*ret_by = by;
	return 0;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* 0, or a negative errno: -ENOENT where a sweeper was faster. */
static int try_post(int queue_fd, const char *id, const char *text, int *ret_fd)
{
	char unique[ID_SIZE], name[sizeof(QUEUE_NEW_PREFIX) + ID_SIZE];
	id_make(unique);
	snprintf(name, sizeof(name), QUEUE_NEW_PREFIX "%s", unique);
	if (mkdirat(queue_fd, name, 0700) < 0)
		return -errno;
	auto_close int fd = openat(queue_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -ENOENT : -errno;
	int result = file_create(fd, QUEUE_CARD, text, strlen(text), NULL);
	if (result == 0 && renameat(queue_fd, name, queue_fd, id) < 0)
		result = -errno;
	if (result < 0) {
		remove_tree(queue_fd, name);
		return result;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

int approvals_post(const char *data_dir, const struct approval_question *question, struct approval_wait *ret_wait,
                   struct cordon_error *err)
{
	struct approval_wait wait = { .queue_fd = -1, .fd = -1, .notify_fd = -1 };
	auto_free char *text = approval_question_write(question);
	if (!text)
		return fail_oom(err);
	if (queue_open(data_dir, true, &wait.queue_fd, err) < 0)
		return -1;
	int result = -ENOENT;
	for (int attempt = 0; attempt < ATTEMPTS && result == -ENOENT; attempt++)
		result = try_post(wait.queue_fd, question->id, text, &wait.fd);
	if (result < 0) {
		approvals_release(&wait);
		return queue_refuse(result, question->id, "the question cannot be put where it could be answered", err);
	}
	memcpy(wait.id, question->id, sizeof(wait.id));
	wait.notify_fd = file_watch(wait.fd, IN_CREATE);
	*ret_wait = wait;
	return 0;
}

void approvals_release(struct approval_wait *wait)
{
	int *const owned[] = { &wait->notify_fd, &wait->fd, &wait->queue_fd };
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++) {
		cleanup_close(owned[i]);
		*owned[i] = -1;
	}
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* 0, or a negative errno: -ENOENT where a sweeper was faster, or the question is gone. */
static int try_link(int queue_fd, int card_fd, const char *text)
{
	char id[ID_SIZE], name[sizeof(QUEUE_ANSWER_PREFIX) + ID_SIZE];
	auto_close int fd = -1;
	id_make(id);
	snprintf(name, sizeof(name), QUEUE_ANSWER_PREFIX "%s", id);
	int result = file_create(queue_fd, name, text, strlen(text), &fd);
	if (result < 0)
		return result;
	/* Locked already: by a sweeper, that is about to take it away. */
	if ((flock(fd, LOCK_EX | LOCK_NB) < 0 && errno != EWOULDBLOCK) ||
	    linkat(queue_fd, name, card_fd, QUEUE_ANSWER, 0) < 0)
		result = -errno;
	unlinkat(queue_fd, name, 0);
	return result;
}

int queue_link_answer(int queue_fd, int card_fd, const struct approval_answer *answer)
{
	auto_free char *text = approval_answer_write(answer);
	int result = text ? -ENOENT : -ENOMEM;
	for (int attempt = 0; attempt < ATTEMPTS && result == -ENOENT; attempt++)
		result = try_link(queue_fd, card_fd, text);
	return result;
}

int approvals_take(struct arena *arena, const struct approval_wait *wait, const struct approval_answer *ours,
                   struct approval_answer *ret_answer, bool *ret_found, struct cordon_error *err)
{
	int linked = ours ? queue_link_answer(wait->queue_fd, wait->fd, ours) : 0;
	if (linked < 0 && linked != -EEXIST)
		return queue_refuse(linked, wait->id, "the answer cannot be kept", err);
	if (queue_read_answer(arena, wait->fd, ret_answer, ret_found) < 0)
		return fail_oom(err);
	return 0;
}

/* ---- what is settled --------------------------------------------------------------------------------------------- */

static void forget_oldest(int queue_fd)
{
	struct arena arena = { 0 };
	struct strings names = queue_list(&arena, queue_fd, QUEUE_SETTLED, queue_is_id);
	auto_close int fd = names.count > SETTLED_MAX ? queue_open_directory(queue_fd, QUEUE_SETTLED) : -1;
	for (size_t i = 0; fd >= 0 && i + SETTLED_MAX < names.count; i++)
		remove_tree(fd, names.items[i]);
	arena_free(&arena);
}

void approvals_settle(struct approval_wait *wait)
{
	char name[sizeof(QUEUE_SETTLED) + 1 + ID_SIZE];
	snprintf(name, sizeof(name), QUEUE_SETTLED "/%s", wait->id);
	unlinkat(wait->fd, QUEUE_CARD, 0);
	if ((mkdirat(wait->queue_fd, QUEUE_SETTLED, 0700) < 0 && errno != EEXIST) ||
	    renameat(wait->queue_fd, wait->id, wait->queue_fd, name) < 0)
		remove_tree(wait->queue_fd, wait->id);
	forget_oldest(wait->queue_fd);
	approvals_release(wait);
}
