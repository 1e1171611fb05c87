/* The files of the queue: see queue.h. Their contents are validated: they are bounded, owned by the caller,
 * not symbolic links, and the hash of a question's content is checked. */
#include "approval/queue.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "policy/card.h"

#define DIRECTORY "approvals"
#define CARD_SIZE_MAX ((size_t)4 << 20)         /* a text of 64 KiB, escaped twice, and the lists beside it */
#define ANSWER_SIZE_MAX ((size_t)64 << 10)

int queue_refuse(int number, const char *subject, const char *what, struct cordon_error *err)
{
	fail(err, CORDON_E_INTERNAL, number < 0 ? -number : number, subject, "%s", what);
	fail_remedy(err, "check that the data directory can be written to, and is the caller's own");
	return fail_boundary(err, "approval");
}

int queue_open_directory(int parent_fd, const char *name)
{
	struct stat info;
	auto_close int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0)
		return -errno;
	if (info.st_uid != geteuid() || info.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return take_fd(&fd);
}

int queue_open(const char *data_dir, bool make, int *ret_fd, struct cordon_error *err)
{
	uncleared char path[PATH_MAX];
	if ((size_t)snprintf(path, sizeof(path), "%s/" DIRECTORY, data_dir) >= sizeof(path))
		return queue_refuse(ENAMETOOLONG, data_dir, "the path is too long", err);
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return queue_refuse(errno, path, "the directory for approvals cannot be made", err);
	int fd = queue_open_directory(AT_FDCWD, path);
	if (fd == -ENOENT && !make)
		return 0;
	if (fd < 0)
		return queue_refuse(fd, path, "the directory for approvals cannot be used", err);
	*ret_fd = fd;
	return 0;
}

bool queue_is_id(const char *name)
{
	return strlen(name) == ID_SIZE - 1 && !name[strspn(name, "0123456789ABCDEFGHJKMNPQRSTVWXYZ")];
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct strings queue_list(struct arena *arena, int parent_fd, const char *name, bool (*wanted)(const char *name))
{
	struct strings names = { 0 };
	int fd = queue_open_directory(parent_fd, name);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *entry; listing && (entry = readdir(listing));)
		if (wanted(entry->d_name) && strings_add(arena, &names, arena_strdup(arena, entry->d_name)) < 0)
			break;
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), by_text);
	if (listing)
		closedir(listing);
	else
		cleanup_close(&fd);
	return names;
}

int queue_read_question(struct arena *arena, int card_fd, const char *id, struct approval_question *ret_question)
{
	auto_free char *text = NULL;
	char hash[CARD_HASH_SIZE];
	size_t length = 0;
	int result = file_read(card_fd, QUEUE_CARD, CARD_SIZE_MAX, &text, &length);
	if (result < 0)
		return result;
	if (approval_question_read_newer(arena, text, length, ret_question) == 0)
		return strcmp(ret_question->id, id) ? -EBADMSG : -EPROTO;
	if (approval_question_read(arena, text, length, ret_question) < 0 || strcmp(ret_question->id, id))
		return -EBADMSG;
	card_hash(ret_question->content, hash);
	return strcmp(hash, ret_question->hash) ? -EBADMSG : 0;
}

int queue_read_answer(struct arena *arena, int card_fd, struct approval_answer *ret_answer, bool *ret_found)
{
	static const struct approval_answer unreadable = { .outcome = APPROVAL_VOID, .hash = "", .time = "",
	                                                   .reason = "the answer could not be read",
	                                                   .by = { .door = "unknown" } };
	auto_free char *text = NULL;
	size_t length = 0;
	int result = file_read(card_fd, QUEUE_ANSWER, ANSWER_SIZE_MAX, &text, &length);
	if (result == -ENOMEM)
		return -1;
	*ret_found = result != -ENOENT;
	if (*ret_found && (result < 0 || approval_answer_read(arena, text, length, ret_answer) < 0))
		*ret_answer = unreadable;
	return 0;
}
