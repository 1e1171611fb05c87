/* Reading: see read.h. One pass over the files, from a place that is found first: the first day that may hold what
 * was asked for, or the place from which on so many rows are left. To follow is to look again every tenth of a
 * second, in a directory that may be replaced and with files that come and go. */
#include "audit/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/filter.h"
#include "audit/ledger-files.h"
#include "audit/lines.h"
#include "audit/ocsf.h"
#include "base/error.h"

#define FOLLOW_PAUSE_MS 100

struct place {
	size_t day;
	uint64_t offset;
};

/* The last places that were taken, as many as wanted. */
struct ring {
	struct place *places;
	size_t count, capacity, most;
	uint64_t seen;
};

struct reading {
	const char *data_dir;
	struct filter filter;
	bool ocsf, follow, stopped;
	bool in_time;                   /* of the last row that had one: a damaged line is as old as its neighbour */
	cordon_row_fn fn;
	void *arg;
	struct ring ring;               /* with `most` set, places are kept in it and no rows handed on */
	int directory;
	struct days days;
	struct place at;
};

static int fail_reading(const struct reading *reading, const char *name, struct cordon_error *err)
{
	struct ledger_files files = { .data_dir = (char *)(uintptr_t)reading->data_dir };
	return ledger_refuse(&files, errno, name, "the ledger cannot be read", err);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static int ring_keep(struct ring *ring, size_t day, uint64_t offset)
{
	if (ring->count == ring->capacity && ring->capacity < ring->most) {
		size_t capacity = ring->capacity ? 2 * ring->capacity : 64;
		capacity = capacity < ring->most ? capacity : ring->most;
		struct place *grown = reallocarray(ring->places, capacity, sizeof(*grown));
		if (!grown)
			return -1;
		ring->places = grown;
		ring->capacity = capacity;
	}
	ring->places[ring->seen++ % ring->capacity] = (struct place){ day, offset };
	ring->count += ring->count < ring->capacity;
	return 0;
}

static int hand_on(struct reading *reading, const char *row, size_t length, struct cordon_error *err)
{
	if (!reading->ocsf) {
		reading->stopped = reading->fn(reading->arg, row, length);
		return 0;
	}
	auto_free char *event = ocsf_from_row(row, length);
	if (!event)
		return fail_oom(err);
	reading->stopped = reading->fn(reading->arg, event, strlen(event));
	return 0;
}

static int take_damaged(struct reading *reading, const struct line *line, struct cordon_error *err)
{
	char row[256];
	int length = snprintf(row, sizeof(row),
	                      "{\"row\":\"damaged\",\"file\":\"%s\",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
	                      ",\"reason\":\"%s\"}", reading->days.names[reading->at.day], line->offset, line->length,
	                      !line->text ? "longer than any row" : line->ended ? "not a row" : "torn");
	return hand_on(reading, row, (size_t)length, err);
}

static int take_line(struct reading *reading, const struct line *line, struct cordon_error *err)
{
	const struct filter *filter = &reading->filter;
	if (line->text && !filter_may_take(filter, line->text, line->length))
		return 0;
	json_t *row = line_parse(line);
	bool good = row, taken = good ? filter_takes(filter, row) : filter_takes_damaged(filter) && reading->in_time;
	if (good)
		reading->in_time = filter_in_time(filter, row);
	json_decref(row);
	if (!taken)
		return 0;
	if (reading->ring.most)
		return ring_keep(&reading->ring, reading->at.day, line->offset) < 0 ? fail_oom(err) : 0;
	return good ? hand_on(reading, line->text, line->length, err) : take_damaged(reading, line, err);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* From where `lines` is to the end of the file. */
static int take_lines(struct reading *reading, struct lines *lines, bool whole, struct cordon_error *err)
{
	struct line line;
	int got = 0;
	while (!reading->stopped && (got = lines_next(lines, whole, &line)) > 0)
		if (take_line(reading, &line, err) < 0)
			return -1;
	reading->at.offset = lines->offset;
	return got < 0 ? fail_reading(reading, reading->days.names[reading->at.day], err) : 0;
}

/* A line at the end that has none is half written, or torn; with the lock it can be told. */
static void await_writer(const struct reading *reading)
{
	auto_close int head = ledger_open_readable(reading->directory, LEDGER_HEAD);
	if (head >= 0)
		ledger_await_writer(head);
}

/* The day's file, from `at` on. The newest one's last line may be still to come. */
static int take_day(struct reading *reading, bool newest, struct cordon_error *err)
{
	struct lines lines;
	const char *name = reading->days.names[reading->at.day];
	auto_close int fd = ledger_open_readable(reading->directory, name);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail_reading(reading, name, err);
	if (lines_open(&lines, fd, reading->at.offset) < 0)
		return fail_oom(err);
	int status = take_lines(reading, &lines, newest, err);
	if (status == 0 && newest && !reading->follow && !reading->stopped) {
		await_writer(reading);
		status = take_lines(reading, &lines, false, err);
	}
	lines_close(&lines);
	return status;
}

static int take_days(struct reading *reading, struct cordon_error *err)
{
	while (reading->at.day < reading->days.count && !reading->stopped) {
		bool newest = reading->at.day + 1 == reading->days.count;
		if (take_day(reading, newest, err) < 0)
			return -1;
		if (newest)
			return 0;
		reading->at = (struct place){ .day = reading->at.day + 1 };
	}
	return 0;
}

/* ---- Where to begin ---------------------------------------------------------------------------------------------- */

/* Rows are never in a file that is older than they are, so that earlier days can be passed over; but for one, since
 * a row is dated a moment before it is written. */
static size_t first_day(const struct reading *reading)
{
	size_t first = 0;
	while (*reading->filter.since && first + 1 < reading->days.count &&
	       strncmp(reading->days.names[first + 1], reading->filter.since, UTC_DATE_LENGTH) < 0)
		first++;
	return first;
}

/* Goes back over `*wanted` lines from the end of a file; sets the offset and what is still wanted. */
static int go_back(int fd, size_t *wanted, uint64_t *ret_offset)
{
	char block[16384];
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -1;
	uint64_t end = (uint64_t)st.st_size;
	bool last = true;
	while (end) {
		size_t size = end < sizeof(block) ? (size_t)end : sizeof(block);
		if (pread(fd, block, size, (off_t)(end - size)) != (ssize_t)size)
			return -1;
		for (size_t i = size; i-- > 0; last = false) {
			/* The newline at the very end ends the last line, the others begin one. */
			if (block[i] != '\n' || last)
				continue;
			if (!--*wanted) {
				*ret_offset = end - size + i + 1;
				return 0;
			}
		}
		end -= size;
	}
	*wanted -= st.st_size > 0;
	*ret_offset = 0;
	return 0;
}

static int find_last_lines(struct reading *reading, size_t wanted, struct cordon_error *err)
{
	struct place at = { .day = reading->days.count };
	while (wanted && at.day > 0) {
		const char *name = reading->days.names[--at.day];
		auto_close int fd = ledger_open_readable(reading->directory, name);
		if (fd < 0 || go_back(fd, &wanted, &at.offset) < 0)
			return fail_reading(reading, name, err);
	}
	reading->at = at;
	return 0;
}

/* The place from which on so many rows are left that were asked for. */
static int find_last_rows(struct reading *reading, size_t wanted, struct cordon_error *err)
{
	struct ring *ring = &reading->ring;
	bool follow = reading->follow;
	ring->most = wanted;
	reading->follow = false;
	reading->at = (struct place){ .day = first_day(reading) };
	int status = take_days(reading, err);
	reading->follow = follow;
	reading->at = ring->count ? ring->places[(ring->seen - ring->count) % ring->capacity]
	                          : (struct place){ .day = reading->days.count };
	free(ring->places);
	*ring = (struct ring){ 0 };
	return status;
}

static int find_beginning(struct reading *reading, size_t last, struct cordon_error *err)
{
	if (!reading->days.count)
		return 0;
	if (last && filter_is_open(&reading->filter))
		return find_last_lines(reading, last, err);
	if (last)
		return find_last_rows(reading, last, err);
	reading->at.day = first_day(reading);
	return 0;
}

/* ---- Following --------------------------------------------------------------------------------------------------- */

static void forget_days(struct reading *reading)
{
	free(reading->days.names);
	reading->days = (struct days){ 0 };
	cleanup_close(&reading->directory);
	reading->directory = -1;
}

static int open_days(struct reading *reading, struct cordon_error *err)
{
	reading->directory = ledger_open_directory(reading->data_dir);
	if (reading->directory < 0)
		return errno == ENOENT ? 0 : fail_reading(reading, "", err);
	return days_list(reading->directory, &reading->days) < 0 ? fail_reading(reading, "", err) : 0;
}

static bool examine(const struct reading *reading, const char *name, struct stat *ret_st)
{
	auto_close int fd = reading->directory < 0 ? -1 : ledger_open_readable(reading->directory, name);
	return fd >= 0 && !fstat(fd, ret_st);
}

/* What is new since the last look. `name` and `seen` tell where that was: the file of this name, if it is still that
 * one. */
static int look_again(struct reading *reading, char name[DAY_NAME_SIZE], struct stat *seen, struct cordon_error *err)
{
	struct stat st = { 0 };
	uint64_t offset = reading->at.offset;
	forget_days(reading);
	if (open_days(reading, err) < 0)
		return -1;
	/* The first that is not before it: itself, or if it is gone whatever came after. */
	size_t day = 0;
	while (day < reading->days.count && strcmp(reading->days.names[day], name) < 0)
		day++;
	reading->at = (struct place){ .day = day };
	if (day == reading->days.count)
		return 0;
	bool same = !strcmp(reading->days.names[day], name) && examine(reading, name, &st) &&
	            st.st_ino == seen->st_ino && st.st_dev == seen->st_dev && (uint64_t)st.st_size >= offset;
	reading->at.offset = same ? offset : 0;
	if (take_days(reading, err) < 0)
		return -1;
	memcpy(name, reading->days.names[reading->at.day], DAY_NAME_SIZE);
	if (!examine(reading, name, seen))
		memset(seen, 0, sizeof(*seen));
	return 0;
}

static int follow(struct reading *reading, struct cordon_error *err)
{
	const struct timespec pause = { .tv_nsec = FOLLOW_PAUSE_MS * 1000000L };
	char name[DAY_NAME_SIZE] = "";
	struct stat seen = { 0 };
	if (reading->at.day < reading->days.count) {
		memcpy(name, reading->days.names[reading->at.day], DAY_NAME_SIZE);
		examine(reading, name, &seen);
	}
	while (!reading->stopped) {
		reading->stopped = reading->fn(reading->arg, "", 0);
		if (reading->stopped)
			break;
		nanosleep(&pause, NULL);
		if (look_again(reading, name, &seen, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- Cursors ----------------------------------------------------------------------------------------------------- */

static int refuse_cursor(const char *cursor, struct cordon_error *err)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, cursor, "this is no place between two rows of the ledger");
	return fail_remedy(err, "give `next` of an earlier answer, or nothing");
}

/* A day that is gone since leads to the one after it. */
static int find_cursor(struct reading *reading, const char *cursor, struct cordon_error *err)
{
	char name[DAY_NAME_SIZE], before = '\n';
	const char *colon = strrchr(cursor, ':');
	size_t length = colon ? (size_t)(colon - cursor) : 0;
	uint64_t offset;
	int used = 0;
	if (!*cursor)
		return 0;
	if (!length || length >= sizeof(name) || sscanf(colon + 1, "%" SCNu64 "%n", &offset, &used) != 1 ||
	    colon[1 + used] || offset > INT64_MAX)
		return refuse_cursor(cursor, err);
	snprintf(name, sizeof(name), "%.*s", (int)length, cursor);
	while (reading->at.day < reading->days.count && strcmp(reading->days.names[reading->at.day], name) < 0)
		reading->at.day++;
	if (reading->at.day == reading->days.count || strcmp(reading->days.names[reading->at.day], name) != 0 ||
	    !offset)
		return 0;
	auto_close int fd = ledger_open_readable(reading->directory, name);
	if (fd < 0 || pread(fd, &before, 1, (off_t)offset - 1) != 1 || before != '\n')
		return refuse_cursor(cursor, err);
	reading->at.offset = offset;
	return 0;
}

static void write_cursor(const struct reading *reading, char ret_next[LEDGER_CURSOR_SIZE])
{
	*ret_next = '\0';
	if (reading->at.day < reading->days.count)
		snprintf(ret_next, LEDGER_CURSOR_SIZE, "%s:%" PRIu64, reading->days.names[reading->at.day],
		         reading->at.offset);
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

int ledger_end(const char *data_dir, char ret_next[LEDGER_CURSOR_SIZE], struct cordon_error *err)
{
	struct reading reading = { .data_dir = data_dir, .directory = -1 };
	struct stat st;
	char block[4096];
	int status = open_days(&reading, err);
	if (status == 0 && reading.days.count) {
		reading.at.day = reading.days.count - 1;
		auto_close int fd = ledger_open_readable(reading.directory, reading.days.names[reading.at.day]);
		uint64_t end = fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
		/* A line that is being written is still to come. */
		while (end && !reading.at.offset) {
			size_t size = end < sizeof(block) ? (size_t)end : sizeof(block);
			ssize_t got = pread(fd, block, size, (off_t)(end - size));
			const char *newline = got > 0 ? memrchr(block, '\n', (size_t)got) : NULL;
			end -= size;
			if (newline)
				reading.at.offset = end + (uint64_t)(newline + 1 - block);
		}
	}
	if (status == 0)
		write_cursor(&reading, ret_next);
	forget_days(&reading);
	return status;
}

int ledger_read_from(const char *data_dir, const struct cordon_audit_filter *filter, const char *after,
                     cordon_row_fn fn, void *arg, char ret_next[LEDGER_CURSOR_SIZE], struct cordon_error *err)
{
	struct reading reading = {
		.data_dir = data_dir, .fn = fn, .arg = arg, .follow = filter->follow || after, .directory = -1,
		.in_time = true,
		.ocsf = filter->format && !strcmp(filter->format, "ocsf"),
	};
	if (filter->format && !reading.ocsf && strcmp(filter->format, "jsonl")) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, filter->format, "there is no such format");
		return fail_remedy(err, "jsonl or ocsf");
	}
	int status = filter_make(filter, &reading.filter, err);
	if (status == 0)
		status = open_days(&reading, err);
	if (status == 0)
		status = after ? find_cursor(&reading, after, err) : find_beginning(&reading, filter->last, err);
	if (status == 0)
		status = take_days(&reading, err);
	if (status == 0 && filter->follow)
		status = follow(&reading, err);
	if (status == 0 && ret_next)
		write_cursor(&reading, ret_next);
	forget_days(&reading);
	filter_free(&reading.filter);
	return status;
}

int ledger_read(const char *data_dir, const struct cordon_audit_filter *filter, cordon_row_fn fn, void *arg,
                struct cordon_error *err)
{
	return ledger_read_from(data_dir, filter, NULL, fn, arg, NULL, err);
}
