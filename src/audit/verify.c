/* Verification: see verify.h. Lines are taken as bytes; only rows of the ledger's own kinds (begin, repair) are
 * parsed.
 *
 * A line must end in a valid seal, and name the hash of the line before it. A line that does not is remembered until
 * the next one is read: if that is a sealed repair row which names exactly this line and its hash, the line was torn
 * by a killed writer, which is no problem; anything else is one. After a problem the chain is continued from the bytes
 * as they are, so that one change is reported once.
 *
 * The head must be found on the way: a hash at a position in a file. Rows after it were written by a process that was
 * killed before it wrote the head, or that is writing now; they have seals, so only a holder of the key can have added
 * them. */
#include <jansson.h>

#include "audit/verify.h"

#include <inttypes.h>
#include <sodium/utils.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "audit/ledger-files.h"
#include "audit/lines.h"
#include "base/error.h"
#include "base/json.h"

#define LISTED_MAX 100                  /* problems; more are only counted */
#define NOTE_MAX 1024                   /* the ledger's own rows are short */

struct anchor {                         /* one of the two heads */
	struct tip tip;
	char time[UTC_SIZE];
	bool holds, met, placed;
};

struct verification {
	struct json *json;
	int directory;
	struct seal_key key;
	char public[SEAL_PUBLIC_HEX];
	bool keyed;                     /* the key is there */
	bool foreign;                   /* but is not the one that the ledger began with */
	struct anchor head, signed_head;
	struct tip tip;                 /* behind the last line that was read */
	uint64_t line, repairs, problems, after_head;
	bool begun;
	struct {                        /* a line that does not hold; the next one may tell why */
		bool held, ended, fits;         /* by its end, and into a row */
		const char *what, *reason;
		struct tip at;
		uint64_t line, length;
	} suspect;
	bool forgive;                   /* the line before was reported: that this one does not follow it is no news */
};

/* What a begin or repair row says. */
struct own_row {
	bool begin, repair, lost;
	char reason[80], key[SEAL_PUBLIC_HEX], torn_file[DAY_NAME_SIZE];
	uint64_t torn_at, torn_bytes, lost_rows;
};

/* ---- Problems ---------------------------------------------------------------------------------------------------- */

/* `file` may be "", `line` 0. */
static void report(struct verification *v, const char *what, const char *file, uint64_t line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
static void report(struct verification *v, const char *what, const char *file, uint64_t line, const char *format, ...)
{
	char reason[320];
	va_list args;
	if (v->problems++ >= LISTED_MAX)
		return;
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	json_object_begin(v->json);
	json_key_string(v->json, "what", what);
	json_key_string(v->json, "file", file);
	json_key_uint(v->json, "line", line);
	json_key_string(v->json, "reason", reason);
	json_object_end(v->json);
}

static void report_suspect(struct verification *v)
{
	if (v->suspect.held)
		report(v, v->suspect.what, v->suspect.at.file, v->suspect.line, "%s", v->suspect.reason);
	v->forgive |= v->suspect.held;
	v->begun |= v->suspect.held;
	v->suspect.held = false;
}

/* ---- The key and the heads --------------------------------------------------------------------------------------- */

/* Whether there is a file of so many bytes. */
static bool read_small(int fd, char bytes[SEAL_HEAD_SIZE])
{
	return fd >= 0 && pread(fd, bytes, SEAL_HEAD_SIZE, 0) == (ssize_t)SEAL_HEAD_SIZE;
}

static void read_key(struct verification *v)
{
	unsigned char seed[32];
	char hex[SEAL_PUBLIC_HEX], public[SEAL_PUBLIC_HEX];
	auto_close int fd = ledger_open_readable(v->directory, LEDGER_KEY);
	auto_close int public_fd = ledger_open_readable(v->directory, LEDGER_PUBLIC);
	bool has_public = public_fd >= 0 && ledger_read_hex(public_fd, public);
	if (fd >= 0 && ledger_read_hex(fd, hex)) {
		sodium_hex2bin(seed, sizeof(seed), hex, sizeof(hex) - 1, NULL, NULL, NULL);
		seal_key_from_seed(seed, &v->key);
		seal_public_hex(&v->key, v->public);
		v->keyed = true;
		sodium_memzero(seed, sizeof(seed));
		sodium_memzero(hex, sizeof(hex));
	} else {
		report(v, "key_missing", LEDGER_KEY, 0, "the key is %s: seals cannot be checked",
		       fd >= 0 ? "not one" : "missing or cannot be read");
		if (has_public)
			memcpy(v->public, public, sizeof(public));
	}
	if (!has_public)
		report(v, "public_key_missing", LEDGER_PUBLIC, 0, "the public key is missing or not one");
	else if (strcmp(public, v->public))
		report(v, "public_key_changed", LEDGER_PUBLIC, 0, "the public key does not belong to the key");
}

static void read_heads(struct verification *v)
{
	char bytes[SEAL_HEAD_SIZE];
	auto_close int head = ledger_open_readable(v->directory, LEDGER_HEAD);
	/* A write takes a few microseconds; without the lock, a read may see half of it. */
	if (head >= 0)
		ledger_await_writer(head);
	if (!read_small(head, bytes))
		report(v, "head_missing", LEDGER_HEAD, 0, "the head is %s: rows may be missing at the end",
		       head < 0 ? "missing or cannot be read" : "cut short");
	else if (v->keyed && !(v->head.holds = seal_head_read(&v->key, bytes, &v->head.tip, v->head.time)))
		report(v, "head_changed", LEDGER_HEAD, 0,
		       "the head is not as it was sealed: rows may be missing at the end");
	auto_close int signed_fd = ledger_open_readable(v->directory, LEDGER_SIGNED);
	if (!read_small(signed_fd, bytes))
		report(v, "signature_missing", LEDGER_SIGNED, 0, "the signed head is %s",
		       signed_fd < 0 ? "missing or cannot be read" : "cut short");
	else if (*v->public &&
	         !(v->signed_head.holds = seal_signed_read(v->public, bytes, &v->signed_head.tip, v->signed_head.time)))
		report(v, "signature_changed", LEDGER_SIGNED, 0, "the signed head was not signed with this key");
}

/* Is the line that was read last the one that the head names? Its hash also covers all lines before it. */
static void meet(const struct verification *v, struct anchor *anchor, bool ended)
{
	if (!anchor->holds || memcmp(anchor->tip.hash, v->tip.hash, SEAL_HASH_SIZE))
		return;
	/* The end of a day may be named as the beginning of the next. */
	anchor->placed = !anchor->tip.offset ||
	                 (!strcmp(anchor->tip.file, v->tip.file) && anchor->tip.offset == v->tip.offset);
	anchor->met = ended || anchor->placed;
}

static void meet_heads(struct verification *v, bool ended)
{
	meet(v, &v->head, ended);
	meet(v, &v->signed_head, ended);
}

static void judge_head(struct verification *v, const struct anchor *anchor, const char *name, const char *which)
{
	if (anchor->holds && !anchor->met)
		report(v, "rows_missing", name, 0,
		       "the %shead names row %" PRIu64
		       " in %s, which is not there: rows were removed or replaced (%" PRIu64 " are there)",
		       which, anchor->tip.rows, anchor->tip.file, v->tip.rows);
	/* Where lines were added or removed, the places of others are no news. */
	else if (anchor->holds && !anchor->placed && !v->problems)
		report(v, "row_out_of_place", name, 0, "the row that the %shead names should end at byte %" PRIu64
		       " of %s: files were renamed or joined", which, anchor->tip.offset, anchor->tip.file);
}

/* ---- Rows of the ledger's own ------------------------------------------------------------------------------------ */

static void copy_text(const json_t *object, const char *key, char *text, size_t size)
{
	const char *value = json_string_value(json_object_get(object, key));
	snprintf(text, size, "%s", value ? value : "");
}

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));
	return value > 0 ? (uint64_t)value : 0;
}

static struct own_row read_own(const struct line *line)
{
	static const char begin[] = "{\"row\":\"begin\",", repair[] = "{\"row\":\"repair\",";
	struct own_row own = { 0 };
	if (!line->text || line->length > NOTE_MAX)
		return own;
	own.begin = line->length > sizeof(begin) && !memcmp(line->text, begin, sizeof(begin) - 1);
	own.repair = line->length > sizeof(repair) && !memcmp(line->text, repair, sizeof(repair) - 1);
	json_t *row = own.begin || own.repair ? json_loadb(line->text, line->length, 0, NULL) : NULL;
	const json_t *lost = json_object_get(row, "lost");
	own.lost = lost;
	own.lost_rows = number_of(lost, "rows");
	copy_text(row, "reason", own.reason, sizeof(own.reason));
	copy_text(row, "key", own.key, sizeof(own.key));
	copy_text(row, "torn_file", own.torn_file, sizeof(own.torn_file));
	own.torn_at = number_of(row, "torn_at");
	own.torn_bytes = number_of(row, "torn_bytes");
	json_decref(row);
	return own;
}

/* Does this row, which holds, account for the line before it, which does not? */
static bool accounts_for_suspect(const struct verification *v, const struct own_row *own)
{
	return v->suspect.held && v->suspect.fits && own->torn_bytes && own->torn_bytes == v->suspect.length &&
	       own->torn_at == v->suspect.at.offset && !strcmp(own->torn_file, v->suspect.at.file);
}

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

static void hold_suspect(struct verification *v, const struct line *line, const char *what, const char *reason)
{
	report_suspect(v);
	v->suspect.held = true;
	v->suspect.ended = line->ended;
	v->suspect.fits = line->text;
	v->suspect.what = what;
	v->suspect.reason = reason;
	v->suspect.at = v->tip;
	v->suspect.line = v->line;
	v->suspect.length = line->length;
}

/* The report on the beginning, and on what was found missing while writing. */
static void check_own(struct verification *v, const struct own_row *own)
{
	bool first = !v->begun;
	v->begun = true;
	if (first && !own->begin)
		report(v, "beginning_missing", v->tip.file, v->line,
		       "the ledger does not begin here: rows before this one are gone");
	if (own->lost)
		report(v, "rows_missing", v->tip.file, v->line,
		       "when this row was written, %s; %" PRIu64 " rows were known before", own->reason,
		       own->lost_rows);
	else if (own->begin && !first)
		report(v, "row_out_of_place", v->tip.file, v->line, "the ledger begins a second time");
	v->repairs += own->torn_bytes > 0;
}

static void check_sealed(struct verification *v, const struct line *line, const unsigned char prev[SEAL_HASH_SIZE],
                         const unsigned char hash[SEAL_HASH_SIZE])
{
	struct own_row own = read_own(line);
	bool follows = !memcmp(prev, v->tip.hash, SEAL_HASH_SIZE);
	if (follows && accounts_for_suspect(v, &own))
		v->suspect.held = false;
	report_suspect(v);
	if (!follows && !own.lost && !v->forgive && (v->begun || own.begin))
		report(v, "row_out_of_place", v->tip.file, v->line, "%s",
		       !memcmp(hash, v->tip.hash, SEAL_HASH_SIZE) ? "this row is there twice" :
		       "this row does not follow the one before it: rows were removed, added or moved");
	v->forgive = false;
	check_own(v, &own);
}

static void check_line(struct verification *v, const struct line *line)
{
	unsigned char prev[SEAL_HASH_SIZE], hash[SEAL_HASH_SIZE];
	v->line++;
	if (line->text)
		seal_hash(line->text, line->length, hash);
	else
		memcpy(hash, line->hash, sizeof(hash));
	if (!line->text)
		hold_suspect(v, line, "row_too_long", "this line is longer than any row");
	else if (!seal_prev(line->text, line->length, prev))
		hold_suspect(v, line, "row_foreign", "this line is no row of the ledger, or is damaged");
	else if (v->keyed && !v->foreign && !seal_holds(&v->key, line->text, line->length))
		hold_suspect(v, line, "row_changed", "this row is not as it was sealed: it was changed or added");
	else
		check_sealed(v, line, prev, hash);
	if (!line->ended && !v->suspect.held)
		hold_suspect(v, line, "row_torn", "this line has no end");
	memcpy(v->tip.hash, hash, sizeof(hash));
	v->tip.offset = line->offset + line->length + line->ended;
	v->tip.rows++;
	v->after_head += v->head.met;
	meet_heads(v, line->ended);
}

/* With a key that is not the ledger's no seal holds: said once, and not of every row. */
static void check_key(struct verification *v, const struct line *line)
{
	struct own_row own = read_own(line);
	v->foreign = v->keyed && !v->head.holds && own.begin && strcmp(own.key, v->public);
	if (v->foreign)
		report(v, "key_changed", LEDGER_KEY, 0,
		       "the key is not the one that the ledger began with: seals cannot be checked");
}

static int check_day(struct verification *v, const char *name, struct cordon_error *err)
{
	struct lines lines;
	struct line line;
	int got;
	memcpy(v->tip.file, name, DAY_NAME_SIZE);
	v->tip.offset = v->line = 0;
	auto_close int fd = ledger_open_readable(v->directory, name);
	if (fd < 0) {
		report(v, "file_unreadable", name, 0, "the file cannot be read: %s", strerror(errno));
		v->forgive = v->begun = true;
		return 0;
	}
	if (lines_open(&lines, fd, 0) < 0)
		return fail_oom(err);
	while ((got = lines_next(&lines, false, &line)) > 0) {
		if (!v->begun && !v->tip.rows)
			check_key(v, &line);
		check_line(v, &line);
	}
	if (got < 0)
		report(v, "file_unreadable", name, v->line, "the file cannot be read: %s", strerror(errno));
	lines_close(&lines);
	return 0;
}

static void write_anchor(struct json *json, const char *key, const struct anchor *anchor)
{
	char hash[2 * SEAL_HASH_SIZE + 1];
	json_key(json, key);
	if (!anchor->holds) {
		json_nil(json);
		return;
	}
	json_object_begin(json);
	json_key_uint(json, "rows", anchor->tip.rows);
	json_key_string(json, "file", anchor->tip.file);
	json_key_uint(json, "offset", anchor->tip.offset);
	json_key_string(json, "hash", sodium_bin2hex(hash, sizeof(hash), anchor->tip.hash, SEAL_HASH_SIZE));
	json_key_string(json, "time", anchor->time);
	json_object_end(json);
}

/* A new day's file is named by the head before anything is in it. That may have been since the head was read. */
static bool head_names_file(const struct verification *v, const char *file)
{
	char bytes[SEAL_HEAD_SIZE], time[UTC_SIZE];
	struct tip now;
	if (!v->head.holds || strcmp(file, v->head.tip.file) <= 0)
		return true;
	auto_close int head = ledger_open_readable(v->directory, LEDGER_HEAD);
	if (head >= 0)
		ledger_await_writer(head);
	return read_small(head, bytes) && seal_head_read(&v->key, bytes, &now, time) && !strcmp(file, now.file);
}

/* Half a row at the very end is what a killed writer leaves; the next row notes it. The head tells if there was
 * more. */
static bool ends_torn(const struct verification *v)
{
	return v->suspect.held && !v->suspect.ended && v->suspect.fits && head_names_file(v, v->suspect.at.file);
}

static int check_days(struct verification *v, const struct days *days, struct cordon_error *err)
{
	meet_heads(v, true);
	for (size_t i = 0; i < days->count; i++)
		if (check_day(v, days->names[i], err) < 0)
			return -1;
	bool torn = ends_torn(v);
	if (torn)
		v->suspect.held = false;
	report_suspect(v);
	judge_head(v, &v->head, LEDGER_HEAD, "");
	judge_head(v, &v->signed_head, LEDGER_SIGNED, "signed ");
	json_array_end(v->json);
	json_key_bool(v->json, "intact", !v->problems);
	json_key_uint(v->json, "problem_count", v->problems);
	json_key_uint(v->json, "rows", v->tip.rows);
	json_key_uint(v->json, "files", days->count);
	json_key_uint(v->json, "repairs", v->repairs);
	json_key_bool(v->json, "torn_end", torn);
	json_key_uint(v->json, "rows_after_head", v->after_head);
	json_key_string(v->json, "key", v->public);
	write_anchor(v->json, "head", &v->head);
	write_anchor(v->json, "signed", &v->signed_head);
	return 0;
}

int verify_ledger(const char *data_dir, struct json *json, bool *ret_intact, struct cordon_error *err)
{
	struct days days = { 0 };
	struct verification v = { .json = json };
	auto_close int directory = ledger_open_directory(data_dir);
	v.directory = directory;
	json_object_begin(json);
	json_key(json, "problems");
	json_array_begin(json);
	/* The heads first: what comes after them while this reads is behind them. */
	if (directory < 0) {
		report(&v, "ledger_missing", "", 0, "there is no ledger, or it cannot be opened: %s", strerror(errno));
	} else {
		read_key(&v);
		read_heads(&v);
	}
	if (directory >= 0 && days_list(directory, &days) < 0)
		return fail(err, CORDON_E_AUDIT_UNAVAILABLE, errno, data_dir, "the ledger's directory cannot be read");
	int status = check_days(&v, &days, err);
	free(days.names);
	sodium_memzero(&v.key, sizeof(v.key));
	if (status < 0)
		return -1;
	json_object_end(json);
	*ret_intact = !v.problems;
	return 0;
}
