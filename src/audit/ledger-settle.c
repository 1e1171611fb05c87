/* Before a row is written, under the lock: is all as the head says? What is not is noted in a row of its own:
 *
 *     begin    there was nothing: the first row, which names the public key
 *     repair   a torn line: a writer was killed within the call. The line is ended, and `prev` is the hash of its bytes
 *     repair   with `lost`: the head, or rows that the head counts, are gone. The ledger goes on, since refusing would
 *              help nobody, but it is never whole again: verify reports that row
 *     begin    with `lost`: the key is gone as well, and a new one was made
 *
 * Rows that the head does not count yet are counted in: each has a seal of its own. */
#include <fcntl.h>
#include <inttypes.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/ledger-state.h"
#include "audit/lines.h"
#include "base/error.h"
#include "base/id.h"
#include "base/utc.h"

/* What must be said before the next row. */
struct note {
	bool begin;
	const char *loss;               /* what is gone, and the last that was known of it */
	struct tip lost;
	char torn_file[DAY_NAME_SIZE];
	uint64_t torn_at, torn_bytes;
	bool in_line;                   /* the file does not end in a newline */
};

static void lose(struct note *note, const char *what, const struct tip *lost)
{
	note->loss = what;
	note->lost = *lost;
}

/* ---- The head ---------------------------------------------------------------------------------------------------- */

/* The end of the newest file there is: all that can be said when the head is gone. */
static int find_end(struct ledger *ledger, struct tip *ret_tip, bool *ret_any, struct cordon_error *err)
{
	struct days days = { 0 };
	struct tip tip = { 0 };
	struct stat st;
	auto_close int directory = ledger_open_directory(ledger->files.data_dir);
	if (directory < 0 || days_list(directory, &days) < 0)
		return ledger_refuse(&ledger->files, errno, "", "the ledger cannot be read", err);
	const char *newest = days.count ? days.names[days.count - 1] : ledger->today;
	memcpy(tip.file, newest, DAY_NAME_SIZE);
	tip.offset = ledger_files_stat(&ledger->files, newest, &st) < 0 ? 0 : (uint64_t)st.st_size;
	*ret_any = days.count > 0;
	free(days.names);
	*ret_tip = tip;
	return 0;
}

/* The head is invalid or missing: a new ledger, or the rest of an old one. The head is not repaired before the row
 * that reports it is written. */
static int begin_again(struct ledger *ledger, const char head[SEAL_HEAD_SIZE], ssize_t length, bool keyed,
                       struct note *note, struct cordon_error *err)
{
	struct tip found, said = { 0 };
	char when[UTC_SIZE];
	bool any = false;
	if (find_end(ledger, &found, &any, err) < 0)
		return -1;
	bool legible = length == SEAL_HEAD_SIZE && seal_head_read(NULL, head, &said, when);
	if (ledger->tip.rows)
		said = ledger->tip;
	if (keyed)
		lose(note, legible ? "the head does not hold" : "the head is gone", &said);
	else if (any)
		lose(note, "the key is gone", &said);
	else if (said.rows)
		lose(note, "the ledger is gone", &said);
	ledger->known = false;
	ledger->tip = found;
	if (keyed)
		return 0;
	note->begin = true;
	return ledger_key_make(&ledger->files, ledger->head.fd, &found, time(NULL), &ledger->key, err);
}

/* Afterwards `tip` is where the ledger ended when the head was written. */
static int read_head(struct ledger *ledger, struct note *note, struct cordon_error *err)
{
	char head[SEAL_HEAD_SIZE], when[UTC_SIZE];
	struct tip tip;
	ssize_t length = pread(ledger->head.fd, head, sizeof(head), 0);
	if (length < 0)
		return ledger_refuse(&ledger->files, errno, LEDGER_HEAD, "the ledger's head cannot be read", err);
	bool whole = length == sizeof(head), known = ledger->known;
	if (known && whole && !memcmp(head, ledger->stored, sizeof(head)))
		return 0;
	if (!ledger->keyed || !whole || !seal_head_read(&ledger->key, head, &tip, when)) {
		int found = ledger_key_load(&ledger->files, &ledger->key, err);
		if (found < 0)
			return -1;
		ledger->keyed = true;
		known = false;
		if (!found || !whole || !seal_head_read(&ledger->key, head, &tip, when))
			return begin_again(ledger, head, length, found, note, err);
	}
	/* Someone put an older head in the place of the one that was read or written here, under the same key. */
	if (known && tip_before(&tip, &ledger->stored_tip))
		lose(note, "the head was set back", &ledger->stored_tip);
	memcpy(ledger->stored, head, sizeof(head));
	ledger->stored_tip = ledger->tip = tip;
	ledger->known = true;
	return 0;
}

/* ---- The rows ---------------------------------------------------------------------------------------------------- */

static int scan(struct ledger *ledger, int fd, struct note *note, struct cordon_error *err)
{
	struct lines lines;
	struct line line;
	struct tip *tip = &ledger->tip;
	int got;
	if (lines_open(&lines, fd, tip->offset) < 0)
		return fail_oom(err);
	while ((got = lines_next(&lines, false, &line)) > 0) {
		if (line.text)
			seal_hash(line.text, line.length, tip->hash);
		else
			memcpy(tip->hash, line.hash, sizeof(line.hash));
		tip->rows++;
		tip->offset = line.offset + line.length + line.ended;
		if (!line.ended) {
			memcpy(note->torn_file, tip->file, DAY_NAME_SIZE);
			note->torn_at = line.offset;
			note->torn_bytes = line.length;
			note->in_line = true;
		}
	}
	lines_close(&lines);
	if (got < 0)
		return ledger_refuse(&ledger->files, errno, tip->file, "the ledger's last rows cannot be read", err);
	return 0;
}

/* The file of `tip` as it is now: opened for writing if it is the one to be written, else only looked at. */
static int look_at_day(struct ledger *ledger, bool current, struct stat *ret_st, struct cordon_error *err)
{
	const char *name = ledger->tip.file;
	if (!strcmp(ledger->day_name, name) && ledger_still_named(ledger, name, &ledger->day, ret_st))
		return 0;
	if (!current) {
		if (ledger_files_stat(&ledger->files, name, ret_st) < 0)
			ret_st->st_size = 0;
		return 0;
	}
	if (ledger_open_named(ledger, name, O_APPEND | O_CREAT, &ledger->day, ret_st, err) < 0)
		return -1;
	memcpy(ledger->day_name, name, DAY_NAME_SIZE);
	ledger->allocated = 0;
	return 0;
}

/* Goes on from `tip` to the end of its file. */
static int catch_up(struct ledger *ledger, bool current, struct note *note, struct cordon_error *err)
{
	struct stat st = { 0 };
	struct tip *tip = &ledger->tip;
	char last = '\n';
	if (look_at_day(ledger, current, &st, err) < 0)
		return -1;
	uint64_t size = (uint64_t)st.st_size;
	if (size > tip->offset) {
		auto_close int other = -1;
		if (!current && ledger_files_open(&ledger->files, tip->file, O_RDONLY, &other, &st, err) < 0)
			return -1;
		if (scan(ledger, current ? ledger->day.fd : other, note, err) < 0)
			return -1;
	}
	if (size < tip->offset) {
		if (!note->loss)
			lose(note, "rows are gone", tip);
		tip->offset = size;
		ledger->allocated = 0;
	}
	if (note->loss && current && size && pread(ledger->day.fd, &last, 1, (off_t)size - 1) != 1)
		return ledger_refuse(&ledger->files, errno, tip->file, "the ledger's last row cannot be read", err);
	note->in_line |= last != '\n';
	return 0;
}

/* The new day's file with space for all that is reserved; without, -1, and nothing has changed. */
static int open_page(struct ledger *ledger, struct cordon_error *err)
{
	const struct tip before = ledger->tip;
	struct stat st;
	memcpy(ledger->tip.file, ledger->today, DAY_NAME_SIZE);
	ledger->tip.offset = 0;
	int status = look_at_day(ledger, true, &st, err);
	if (status == 0 && ledger_secure(ledger, (uint64_t)st.st_size, ledger_reserved(ledger)) < 0) {
		status = ledger_refuse(&ledger->files, errno, ledger->today,
		                       "there is no space for a new day's rows", err);
		if (st.st_size == 0)
			ledger_files_remove(&ledger->files, ledger->today);
		*ledger->day_name = '\0';
	}
	if (status < 0)
		ledger->tip = before;
	return status;
}

/* A new day: the head names it before the first row is written, so that rows which the head does not count are in its
 * file only. On a full file system, rows continue in the file of the day before, where space is reserved. */
static int turn_page(struct ledger *ledger, struct note *note, struct cordon_error *err)
{
	const struct tip before = ledger->tip;
	struct cordon_error refused;
	if (open_page(ledger, &refused) < 0) {
		if (ledger_is_full(refused.os_errno))
			return catch_up(ledger, true, note, err);
		if (err)
			*err = refused;
		return -1;
	}
	ledger_store_signed(ledger, &before);
	note->in_line = false;
	if (!note->loss)
		ledger_store_head(ledger, &ledger->tip);
	ledger_trim(ledger, before.file);
	return catch_up(ledger, true, note, err);
}

/* ---- Telling of it ----------------------------------------------------------------------------------------------- */

static int put_note(struct ledger *ledger, const struct note *note, struct cordon_error *err)
{
	char id[ID_SIZE], when[UTC_SIZE], hash[2 * SEAL_HASH_SIZE + 1], public[SEAL_PUBLIC_HEX], text[1024];
	int length = 0;
	utc_now(when);
	id_make(id);
#define ADD(...) length += snprintf(text + length, sizeof(text) - (size_t)length, __VA_ARGS__)
	ADD("{\"row\":\"%s\",\"id\":\"%s\",\"time\":\"%s\",\"version\":1", note->begin ? "begin" : "repair", id, when);
	if (note->begin) {
		seal_public_hex(&ledger->key, public);
		ADD(",\"key\":\"%s\"", public);
	}
	if (note->loss || note->torn_bytes)
		ADD(",\"reason\":\"%s\"", note->loss ? note->loss : "torn line");
	if (note->loss)
		ADD(",\"lost\":{\"rows\":%" PRIu64 ",\"file\":\"%s\",\"offset\":%" PRIu64 ",\"hash\":\"%s\"}",
		    note->lost.rows, note->lost.file, note->lost.offset,
		    sodium_bin2hex(hash, sizeof(hash), note->lost.hash, sizeof(note->lost.hash)));
	if (note->torn_bytes)
		ADD(",\"torn_file\":\"%s\",\"torn_at\":%" PRIu64 ",\"torn_bytes\":%" PRIu64, note->torn_file,
		    note->torn_at, note->torn_bytes);
	ADD("}");
#undef ADD
	if (ledger_put_row(ledger, text, (size_t)length, note->in_line, err) < 0)
		return -1;
	/* At once, whatever comes after: what was noted must not be found again. */
	if (ledger->files.sync_disk && !fdatasync(ledger->day.fd))
		ledger_store_head(ledger, &ledger->tip);
	return 0;
}

static int name_today(struct ledger *ledger, struct cordon_error *err)
{
	char midnight[UTC_SIZE];
	int64_t day = time(NULL) / 86400;
	if (*ledger->today && ledger->today_number == day)
		return 0;
	utc_text(day * 86400, 0, midnight);
	snprintf(ledger->today, sizeof(ledger->today), "%.*s.jsonl", UTC_DATE_LENGTH, midnight);
	if (!day_name_valid(ledger->today) || midnight[UTC_DATE_LENGTH] != 'T') {
		*ledger->today = '\0';
		return ledger_refuse(&ledger->files, EOVERFLOW, "", "the system's date cannot be written", err);
	}
	ledger->today_number = day;
	return 0;
}

static int settle(struct ledger *ledger, struct cordon_error *err)
{
	struct note note = { 0 };
	if (name_today(ledger, err) < 0 || read_head(ledger, &note, err) < 0)
		return -1;
	bool current = strcmp(ledger->tip.file, ledger->today) >= 0;
	if (catch_up(ledger, current, &note, err) < 0 || (!current && turn_page(ledger, &note, err) < 0))
		return -1;
	/* Nothing, or nothing but half of a first row. */
	if (!note.loss && ledger->tip.rows == (note.torn_bytes > 0))
		note.begin = true;
	return note.begin || note.loss || note.torn_bytes ? put_note(ledger, &note, err) : 0;
}

int ledger_settle(struct ledger *ledger, struct cordon_error *err)
{
	int status = settle(ledger, err);
	/* Whatever was found but not noted is to be found again. */
	if (status < 0)
		ledger->known = false;
	return status;
}
