/* A row is one writev() with O_APPEND, under the lock of the head, so that lines are always whole. The page cache
 * outlives every process, so a row is kept from the moment the call returns.
 *
 * The head is written after the row: a writer that is killed in between leaves the head behind the rows, never ahead
 * of them. A short write is undone by truncating to the old size; if that fails too, the line is torn, and the next
 * writer ends and records it (ledger-settle.c).
 *
 * Rows are never written to a day before the head's, so that the files in the order of their names form one chain even
 * if the clock is set back; the time in the row is the clock's.
 *
 * With sync_disk the head must not reach the disk before the row it counts, so it is written in a second turn, after
 * fdatasync(), which many writers share in this way.
 *
 * A row goes where ledger-room.c has reserved space, so that the write cannot be short. Rows of running commands use
 * their reserve if there is no other space.
 *
 * Files stay open between rows. One fstatat() each, under the lock, shows whether they are still the files of their
 * names, and how long the day's file is. The bytes of the head show whether another process has written since. */
#include "audit/ledger.h"

#include <fcntl.h>
#include <sodium/utils.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <time.h>

#include "audit/ledger-state.h"
#include "base/error.h"

#define LOCK_PATIENCE_MS 10000          /* a stopped process that holds the lock must not block all others */
#define SIGN_EVERY 64                   /* rows: a signature costs as much as four of them */

int ledger_open(const char *data_dir, bool sync_disk, struct ledger **ret_ledger, struct cordon_error *err)
{
	if (!data_dir || data_dir[0] != '/')
		return fail(err, CORDON_E_AUDIT_UNAVAILABLE, 0, data_dir, "the data directory must be absolute");
	struct ledger *ledger = calloc(1, sizeof(*ledger));
	if (!ledger || !(ledger->files.data_dir = strdup(data_dir))) {
		free(ledger);
		return fail_oom(err);
	}
	pthread_mutex_init(&ledger->mutex, NULL);
	ledger->files.sync_disk = sync_disk;
	ledger->files.data_fd = ledger->head.fd = ledger->day.fd = ledger->reserve.fd = -1;
	*ret_ledger = ledger;
	return 0;
}

void ledger_unref(struct ledger *ledger)
{
	if (!ledger)
		return;
	close_fd(&ledger->head.fd);
	close_fd(&ledger->day.fd);
	close_fd(&ledger->reserve.fd);
	close_fd(&ledger->files.data_fd);
	free(ledger->slots.numbers);
	pthread_mutex_destroy(&ledger->mutex);
	free(ledger->files.data_dir);
	sodium_memzero(&ledger->key, sizeof(ledger->key));
	free(ledger);
}

void ledger_set_sync(struct ledger *ledger, bool sync_disk)
{
	pthread_mutex_lock(&ledger->mutex);
	ledger->files.sync_disk = sync_disk;
	pthread_mutex_unlock(&ledger->mutex);
}

/* ---- Opening and locking ----------------------------------------------------------------------------------------- */

int ledger_open_named(struct ledger *ledger, const char *name, int flags, struct opened *opened, struct stat *ret_st,
                      struct cordon_error *err)
{
	close_fd(&opened->fd);
	if (ledger_files_open(&ledger->files, name, O_RDWR | flags, &opened->fd, ret_st, err) < 0)
		return -1;
	opened->device = ret_st->st_dev;
	opened->inode = ret_st->st_ino;
	return 0;
}

bool ledger_still_named(struct ledger *ledger, const char *name, const struct opened *opened, struct stat *ret_st)
{
	return opened->fd >= 0 && !ledger_files_stat(&ledger->files, name, ret_st) && ret_st->st_ino == opened->inode &&
	       ret_st->st_dev == opened->device;
}

static int lock_head(struct ledger *ledger, struct cordon_error *err)
{
	struct timespec pause = { .tv_nsec = 20000 };
	for (int64_t waited_ns = 0; flock(ledger->head.fd, LOCK_EX | LOCK_NB) < 0;) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return ledger_refuse(&ledger->files, errno, LEDGER_HEAD, "the ledger cannot be locked", err);
		if (waited_ns > LOCK_PATIENCE_MS * INT64_C(1000000))
			return ledger_refuse(&ledger->files, EAGAIN, LEDGER_HEAD,
			                     "the ledger is locked by another process", err);
		nanosleep(&pause, NULL);
		waited_ns += pause.tv_nsec;
		if (pause.tv_nsec < 500000)
			pause.tv_nsec *= 2;
	}
	return 0;
}

/* Whether `ledger->head` is locked and still the file of that name; the others are to try again. */
static int take_head(struct ledger *ledger, int flags, bool *ret_taken, struct cordon_error *err)
{
	struct stat st;
	if (ledger->owner != getpid()) {
		close_fd(&ledger->head.fd);
		ledger->owner = getpid();
	}
	if (ledger->head.fd < 0) {
		ledger_forget_slots(ledger);
		if (ledger_open_named(ledger, LEDGER_HEAD, flags, &ledger->head, &st, err) < 0)
			return -1;
	}
	if (lock_head(ledger, err) < 0)
		return -1;
	*ret_taken = ledger_still_named(ledger, LEDGER_HEAD, &ledger->head, &st);
	if (!*ret_taken)
		close_fd(&ledger->head.fd);
	return 0;
}

static void release_head(struct ledger *ledger)
{
	flock(ledger->head.fd, LOCK_UN);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* 0, or -1 and errno; *ret_torn: a part of it was written, and could not be taken back. */
static int write_parts(struct ledger *ledger, const struct iovec *parts, int count, size_t length, bool *ret_part,
                       bool *ret_torn)
{
	ssize_t written;
	do
		written = writev(ledger->day.fd, parts, count);
	while (written < 0 && errno == EINTR);
	if (written == (ssize_t)length)
		return 0;
	if (written < 0)
		return -1;
	*ret_part = true;
	*ret_torn = ftruncate(ledger->day.fd, (off_t)ledger->tip.offset) < 0;
	/* With it went all that was allocated behind the end. */
	ledger->allocated = 0;
	(void)!ledger_secure(ledger, ledger->tip.offset, ledger_reserved(ledger));
	errno = ENOSPC;
	return -1;
}

/* All parts in one write at the end of the file; or nothing. */
static int put(struct ledger *ledger, const struct iovec *parts, int count, struct cordon_error *err)
{
	struct tip *tip = &ledger->tip;
	struct ledger_room *room = ledger->room;
	size_t length = 0;
	bool part = false, torn = false;
	for (int i = 0; i < count; i++)
		length += parts[i].iov_len;
	size_t end = tip->offset + length;
	if (!ledger_files_fit(end < SEAL_HEAD_SIZE ? SEAL_HEAD_SIZE : end))
		return ledger_refuse(&ledger->files, EFBIG, tip->file, "the row does not fit", err);
	bool has_room = room && room->left >= length;
	bool spends = ledger_secure(ledger, end, ledger_reserved(ledger)) < 0;
	if (spends && !has_room)
		return ledger_refuse(&ledger->files, errno, tip->file,
		                     "there is no space for the row and for those that running commands will cause",
		                     err);
	int status = write_parts(ledger, parts, count, length, &part, &torn);
	if (status < 0 && ledger_is_full(errno) && !torn && has_room && ledger_release_space(ledger, length)) {
		spends = true;
		status = write_parts(ledger, parts, count, length, &part, &torn);
	}
	if (status < 0)
		return ledger_refuse(&ledger->files, errno, tip->file,
		                     torn ? "the row was written in part and cannot be taken back" :
		                     part ? "the row was written in part and taken back" :
		                     "the row cannot be written", err);
	tip->offset += length;
	if (spends)
		room->left -= length;
	return 0;
}

int ledger_put_row(struct ledger *ledger, const char *row, size_t length, bool in_line, struct cordon_error *err)
{
	char seal[SEAL_LENGTH + 1];
	unsigned char hash[SEAL_HASH_SIZE];
	seal_row(&ledger->key, ledger->tip.hash, row, length, seal, hash);
	seal[SEAL_LENGTH] = '\n';
	struct iovec parts[] = {
		{ (char[]){ '\n' }, in_line }, { (char *)(uintptr_t)row, length - 1 }, { seal, sizeof(seal) },
	};
	if (put(ledger, parts, ARRAY_SIZE(parts), err) < 0)
		return -1;
	ledger->tip.rows++;
	memcpy(ledger->tip.hash, hash, sizeof(hash));
	if (!ledger->files.sync_disk)
		ledger_store_head(ledger, &ledger->tip);
	return 0;
}

void ledger_store_signed(struct ledger *ledger, const struct tip *tip)
{
	char text[SEAL_HEAD_SIZE];
	seal_sign(&ledger->key, tip, time(NULL), text);
	(void)!ledger_files_alternate(&ledger->files, LEDGER_SIGNED, text, sizeof(text), NULL);
}

void ledger_store_head(struct ledger *ledger, const struct tip *tip)
{
	seal_head(&ledger->key, tip, time(NULL), ledger->stored);
	ledger->stored_tip = *tip;
	ledger->known = pwrite(ledger->head.fd, ledger->stored, sizeof(ledger->stored), 0) == sizeof(ledger->stored);
	if (tip->rows && tip->rows % SIGN_EVERY == 0)
		ledger_store_signed(ledger, tip);
}

/* Locks the head and settles. */
static int acquire(struct ledger *ledger, struct cordon_error *err)
{
	for (int attempt = 0; attempt < 16; attempt++) {
		bool taken;
		if (take_head(ledger, O_CREAT, &taken, err) < 0)
			return -1;
		if (!taken)
			continue;
		if (ledger_settle(ledger, err) == 0)
			return 0;
		release_head(ledger);
		return -1;
	}
	return ledger_refuse(&ledger->files, EAGAIN, LEDGER_HEAD, "the ledger's file is replaced again and again", err);
}

/* The row that ends at `tip` is on the disk: the head may say so, unless it says more already. */
static void advance_head(struct ledger *ledger, const struct tip *tip)
{
	char head[SEAL_HEAD_SIZE], when[UTC_SIZE];
	struct tip stored;
	bool taken;
	if (take_head(ledger, 0, &taken, NULL) < 0 || !taken)
		return;
	if (pread(ledger->head.fd, head, sizeof(head), 0) != sizeof(head) ||
	    !seal_head_read(&ledger->key, head, &stored, when) || tip_before(&stored, tip))
		ledger_store_head(ledger, tip);
	release_head(ledger);
}

/* `reserve`: so many bytes more are reserved before the row is written, or it is not. */
static int append(struct ledger *ledger, const char *row, size_t length, size_t reserve, struct ledger_room *room,
                  struct cordon_error *err)
{
	ledger->room = reserve ? NULL : room;
	if (acquire(ledger, err) < 0)
		return -1;
	int status = reserve ? ledger_take_room(ledger, reserve, room, err) : 0;
	if (status == 0 && row)
		status = ledger_put_row(ledger, row, length, false, err);
	struct tip tip = ledger->tip;
	release_head(ledger);
	/* Outside the lock, so that many writers share one trip to the disk. */
	if (status == 0 && row && ledger->files.sync_disk) {
		if (fdatasync(ledger->day.fd) < 0)
			status = ledger_refuse(&ledger->files, errno, ledger->day_name,
			                       "the row did not reach the disk", err);
		else
			advance_head(ledger, &tip);
	}
	if (status < 0 && reserve)
		ledger_give_room(ledger, room);
	return status;
}

static int append_line(struct ledger *ledger, const char *line, size_t length, size_t reserve, struct ledger_room *room,
                       struct cordon_error *err)
{
	if (length >= LEDGER_LINE_MAX || length < 3 || line[0] != '{' || line[length - 1] != '}' ||
	    memchr(line, '\n', length))
		return ledger_refuse(&ledger->files, 0, "", "a row must be a JSON object on one line, under 1 MiB",
		                     err);
	pthread_mutex_lock(&ledger->mutex);
	int status = append(ledger, line, length, reserve, room, err);
	pthread_mutex_unlock(&ledger->mutex);
	return status;
}

int ledger_append(struct ledger *ledger, const char *line, size_t length, struct cordon_error *err)
{
	return append_line(ledger, line, length, 0, NULL, err);
}

int ledger_append_reserving(struct ledger *ledger, const char *line, size_t length, size_t bytes,
                            struct ledger_room *ret_room, struct cordon_error *err)
{
	struct ledger_room room = { 0 };
	if (append_line(ledger, line, length, bytes, &room, err) < 0)
		return -1;
	*ret_room = room;
	return 0;
}

int ledger_append_in(struct ledger *ledger, struct ledger_room *room, const char *line, size_t length,
                     struct cordon_error *err)
{
	return append_line(ledger, line, length, 0, room, err);
}

void ledger_release(struct ledger *ledger, struct ledger_room *room)
{
	if (!room->slots)
		return;
	pthread_mutex_lock(&ledger->mutex);
	ledger_give_room(ledger, room);
	pthread_mutex_unlock(&ledger->mutex);
}

int ledger_check(struct ledger *ledger, struct cordon_error *err)
{
	pthread_mutex_lock(&ledger->mutex);
	int status = append(ledger, NULL, 0, 0, NULL, err);
	pthread_mutex_unlock(&ledger->mutex);
	return status;
}

static int sign_head(struct ledger *ledger, struct cordon_error *err)
{
	char head[SEAL_HEAD_SIZE], when[UTC_SIZE];
	struct tip tip;
	bool taken;
	if (take_head(ledger, 0, &taken, err) < 0)
		return -1;
	if (!taken)
		return ledger_refuse(&ledger->files, EAGAIN, LEDGER_HEAD, "the ledger's head was replaced", err);
	int found = ledger_key_load(&ledger->files, &ledger->key, err);
	if (found > 0) {
		ledger->keyed = true;
		if (pread(ledger->head.fd, head, sizeof(head), 0) == sizeof(head) &&
		    seal_head_read(&ledger->key, head, &tip, when))
			ledger_store_signed(ledger, &tip);
		else
			found = ledger_refuse(&ledger->files, 0, LEDGER_HEAD, "the ledger's head does not hold", err);
	} else if (!found) {
		found = ledger_refuse(&ledger->files, ENOENT, LEDGER_KEY, "there is no key", err);
	}
	release_head(ledger);
	return found < 0 ? -1 : 0;
}

int ledger_sign(struct ledger *ledger, struct cordon_error *err)
{
	pthread_mutex_lock(&ledger->mutex);
	int status = sign_head(ledger, err);
	pthread_mutex_unlock(&ledger->mutex);
	return status;
}
