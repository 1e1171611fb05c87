/* The queue from outside: answering, listing, and clearing up after those who died. See approvals.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/remove.h"
#include "base/utc.h"
#include "approval/queue.h"

/* ---- answering from outside -------------------------------------------------------------------------------------- */

static int fail_unknown(const char *id, struct cordon_error *err)
{
	fail(err, CORDON_E_NOT_FOUND, 0, id, "no question of this id waits for an answer");
	fail_remedy(err, "see cordon approvals list");
	return fail_boundary(err, "approval");
}

/* Why an answer comes too late. */
static int fail_settled(const char *id, const struct approval_answer *answer, struct cordon_error *err)
{
	static const char *const done[] = {
		[APPROVAL_ONCE] = "approved once", [APPROVAL_SESSION] = "approved for the session",
		[APPROVAL_DENIED] = "denied",
	};
	if (answer->outcome == APPROVAL_TIMEOUT)
		fail(err, CORDON_E_APPROVAL_TIMEOUT, 0, id,
		     "the answer comes too late: the command was refused at %s, since "
		     "nobody had answered",
		     answer->time);
	else if (answer->outcome <= APPROVAL_DENIED)
		fail(err, CORDON_E_INVALID_REQUEST, 0, id,
		     "this was answered already: %s at %s by user %ju, process %ju%s%s", done[answer->outcome],
		     answer->time, (uintmax_t)answer->by.uid, (uintmax_t)answer->by.pid,
		     answer->by.terminal ? " on " : "", answer->by.terminal ? answer->by.terminal : "");
	else if (answer->outcome == APPROVAL_CANCELLED && !strcmp(answer->reason, APPROVAL_SESSION_ENDED))
		fail(err, CORDON_E_SESSION_ENDED, 0, id, "%s", answer->reason);
	else
		fail(err, CORDON_E_INVALID_REQUEST, 0, id, "the command that asked is gone");
	fail_remedy(err, "let the command be run again; it will ask again where it has to");
	return fail_boundary(err, "approval");
}

static int explain(struct arena *arena, int card_fd, const char *id, struct cordon_error *err)
{
	struct approval_answer answer;
	bool found = false;
	if (queue_read_answer(arena, card_fd, &answer, &found) < 0)
		return fail_oom(err);
	return found ? fail_settled(id, &answer, err) : fail_unknown(id, err);
}

static int explain_settled(struct arena *arena, int queue_fd, const char *id, struct cordon_error *err)
{
	char name[sizeof(QUEUE_SETTLED) + 1 + ID_SIZE];
	snprintf(name, sizeof(name), QUEUE_SETTLED "/%s", id);
	auto_close int fd = queue_open_directory(queue_fd, name);
	return fd < 0 ? fail_unknown(id, err) : explain(arena, fd, id, err);
}

static int check_answer(const struct approval_question *question, const char *shown,
                        const struct approval_answer *answer, struct cordon_error *err)
{
	if (shown && strcmp(shown, question->hash)) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, question->id,
		     "what asks now is not what was shown: its hash is %s", question->hash);
		fail_remedy(err, "look at it again (cordon approvals list) and answer what you see");
		return fail_boundary(err, "approval");
	}
	if (answer->outcome == APPROVAL_SESSION && !*question->session) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, question->id,
		     "the command has no session: it can be approved once only");
		return fail_boundary(err, "approval");
	}
	return 0;
}

int approvals_answer(struct arena *arena, const char *data_dir, const char *id, const char *shown,
                     const struct approval_answer *answer, struct cordon_error *err)
{
	struct approval_question question;
	auto_close int queue_fd = -1;
	if (!queue_is_id(id)) {
		fail(err, CORDON_E_NOT_FOUND, 0, id, "this is no id of a question");
		fail_remedy(err, "see cordon approvals list");
		return fail_boundary(err, "approval");
	}
	if (queue_open(data_dir, false, &queue_fd, err) < 0)
		return -1;
	auto_close int fd = queue_fd < 0 ? -ENOENT : queue_open_directory(queue_fd, id);
	if (fd < 0)
		return queue_fd < 0 ? fail_unknown(id, err) : explain_settled(arena, queue_fd, id, err);
	int result = queue_read_question(arena, fd, id, &question);
	if (result == -ENOENT)
		return explain(arena, fd, id, err);
	if (result == -EPROTO && answer->outcome != APPROVAL_DENIED) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, id, "the question was asked by a newer version of cordon");
		fail_remedy(err, "answer with that version, or deny it");
		return fail_boundary(err, "approval");
	}
	if (result < 0 && result != -EPROTO) {
		fail(err, CORDON_E_CAPABILITY_DENIED, -result, id, "the question was changed since it was asked");
		fail_remedy(err, "let the command be run again");
		return fail_boundary(err, "approval");
	}
	if (check_answer(&question, shown, answer, err) < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, id, "the command that asked is gone");
		return fail_boundary(err, "approval");
	}
	struct approval_answer bound = *answer;
	bound.hash = question.hash;
	result = queue_link_answer(queue_fd, fd, &bound);
	if (result == -EEXIST)
		return explain(arena, fd, id, err);
	return result < 0 ? queue_refuse(result, id, "the answer cannot be kept", err) : 0;
}

/* Also one that only a newer version understands. */
static bool is_shown(int result)
{
	return result == 0 || result == -EPROTO;
}

/* ---- looking through the queue ----------------------------------------------------------------------------------- */

int approvals_each(const char *data_dir, approvals_each_fn each, void *arg, struct cordon_error *err)
{
	struct arena arena = { 0 };
	auto_close int queue_fd = -1;
	if (queue_open(data_dir, false, &queue_fd, err) < 0)
		return -1;
	if (queue_fd < 0)
		return 0;
	struct strings names = queue_list(&arena, queue_fd, ".", queue_is_id);
	for (size_t i = 0; i < names.count; i++) {
		struct approval_question question;
		struct stat info;
		auto_close int fd = queue_open_directory(queue_fd, names.items[i]);
		if (fd >= 0 && fstatat(fd, QUEUE_ANSWER, &info, AT_SYMLINK_NOFOLLOW) < 0 &&
		    is_shown(queue_read_question(&arena, fd, names.items[i], &question)) &&
		    flock(fd, LOCK_EX | LOCK_NB) < 0)
			each(arg, &question);
	}
	arena_free(&arena);
	return 0;
}

struct withdrawing {
	struct arena *arena;
	const char *data_dir, *session;
	struct approval_answer answer;
};

static void withdraw(void *arg, const struct approval_question *question)
{
	const struct withdrawing *all = arg;
	/* The question has been answered already, or the process that asked has ended. */
	if (!strcmp(question->session, all->session))
		(void)!approvals_answer(all->arena, all->data_dir, question->id, NULL, &all->answer, NULL);
}

void approvals_withdraw(struct arena *arena, const char *data_dir, const char *session, const struct approval_by *by)
{
	char now[UTC_SIZE];
	utc_now(now);
	struct withdrawing all = { arena, data_dir, session,
		{ .outcome = APPROVAL_CANCELLED, .reason = APPROVAL_SESSION_ENDED, .time = now, .by = *by } };
	(void)!approvals_each(data_dir, withdraw, &all, NULL);
}

static bool is_temporary(const char *name)
{
	return !strncmp(name, QUEUE_NEW_PREFIX, sizeof(QUEUE_NEW_PREFIX) - 1) ||
	       !strncmp(name, QUEUE_ANSWER_PREFIX, sizeof(QUEUE_ANSWER_PREFIX) - 1);
}

static bool is_swept(const char *name)
{
	return queue_is_id(name) || is_temporary(name);
}

/* Takes the lock of what its maker left; -1 where the maker lives, or another sweeper has it. */
static int lock_abandoned(int queue_fd, const char *name)
{
	struct stat held, named;
	auto_close int fd = openat(queue_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &held) < 0 ||
	    fstatat(queue_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || held.st_ino != named.st_ino ||
	    held.st_dev != named.st_dev || held.st_uid != geteuid())
		return -1;
	return take_fd(&fd);
}

static void settle_stale(int queue_fd, const char *name, approvals_stale_fn settle, void *arg)
{
	struct arena arena = { 0 };
	struct approval_question question;
	struct approval_wait wait = { .queue_fd = -1, .fd = lock_abandoned(queue_fd, name), .notify_fd = -1 };
	if (wait.fd < 0)
		return;
	memcpy(wait.id, name, sizeof(wait.id));
	wait.queue_fd = fcntl(queue_fd, F_DUPFD_CLOEXEC, 3);
	int result = wait.queue_fd < 0 ? -EMFILE : queue_read_question(&arena, wait.fd, name, &question);
	bool passing = result == -ENOMEM || result == -EMFILE || result == -EIO;
	/* No question: its asker died just before it was done. */
	if (result == -ENOENT || (!passing && settle(arg, &arena, &wait, result < 0 ? NULL : &question)))
		approvals_settle(&wait);
	approvals_release(&wait);
	arena_free(&arena);
}

void approvals_each_stale(const char *data_dir, approvals_stale_fn settle, void *arg)
{
	struct arena arena = { 0 };
	auto_close int queue_fd = -1;
	if (queue_open(data_dir, false, &queue_fd, NULL) < 0 || queue_fd < 0)
		return;
	struct strings names = queue_list(&arena, queue_fd, ".", is_swept);
	for (size_t i = 0; i < names.count; i++) {
		if (queue_is_id(names.items[i])) {
			settle_stale(queue_fd, names.items[i], settle, arg);
			continue;
		}
		auto_close int fd = lock_abandoned(queue_fd, names.items[i]);
		if (fd >= 0)
			remove_tree(queue_fd, names.items[i]);
	}
	arena_free(&arena);
}
