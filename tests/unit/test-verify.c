/* Every way in which the chain can be broken is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium/utils.h>

#include "base/cleanup.h"
#include "ledger-clock.h"
#include "ledger-ground.h"
#include "system-has.h"

/* ---- The ledger that is tampered with: three days, five rows each and a torn one --------------------------------- */

#define DAYS 3
#define ROWS 5

struct world {
	struct ground *ground;
	char files[DAYS][160];
};

static void append_torn(const char *path)
{
	FILE *file = fopen(path, "ab");
	assert_non_null(file);
	fputs("{\"row\":\"intent\",\"id\":\"to", file);
	fclose(file);
}

static struct world world_make(void)
{
	struct world world = { .ground = ground_make() };
	char row[128];
	for (int day = 0; day < DAYS; day++, clock_offset += 86400) {
		ground_day(world.ground);
		strcpy(world.files[day], world.ground->file);
		for (int i = 0; i < ROWS; i++) {
			snprintf(row, sizeof(row), "{\"row\":\"test\",\"day\":%d,\"number\":%d,\"note\":\"plain\"}",
			         day, i);
			ground_append(world.ground->ledger, row);
			if (day == 1 && i == 2)
				append_torn(world.ground->file);
		}
	}
	return world;
}

static void world_remove(struct world *world)
{
	clock_offset = 0;
	ground_remove(world->ground);
}

/* A file as lines, and back. */
struct text {
	char *lines[64];
	int count;
};

static struct text take_lines(const char *path)
{
	struct text text = { .count = 0 };
	char *all = ground_slurp(path), *save = NULL;
	for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		text.lines[text.count++] = strdup(line);
	free(all);
	return text;
}

static void put_lines(const char *path, struct text *text)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	for (int i = 0; i < text->count; i++) {
		fprintf(file, "%s\n", text->lines[i]);
		free(text->lines[i]);
	}
	fclose(file);
}

static void path_of(const struct world *world, const char *name, char path[160])
{
	snprintf(path, 160, "%s/%s", world->ground->directory, name);
}

/* ---- What is done to it ------------------------------------------------------------------------------------------ */

#define LINES(world, day, code)                                       \
	do {                                                          \
		struct text text = take_lines((world)->files[day]);   \
		code;                                                 \
		put_lines((world)->files[day], &text);                \
	} while (0)

static void flip(char *digit)
{
	*digit = *digit == '0' ? '1' : '0';
}

static void change_byte(struct world *w) { LINES(w, 0, *strstr(text.lines[3], "plain") = 'P'); }
static void change_first(struct world *w) { LINES(w, 0, *strstr(text.lines[0], "\"time\":\"2") = '#'); }
static void change_last(struct world *w) { LINES(w, 2, *strstr(text.lines[text.count - 1], "plain") = 'P'); }
static void change_prev(struct world *w) { LINES(w, 2, flip(strstr(text.lines[1], "prev\":\"") + 9)); }
static void change_mac(struct world *w) { LINES(w, 2, flip(strstr(text.lines[1], "mac\":\"") + 9)); }
static void change_torn(struct world *w) { LINES(w, 1, flip(text.lines[3] + 10)); }

static void change_case(struct world *w)
{
	LINES(w, 2, for (char *c = strstr(text.lines[1], "prev\":\"") + 7; *c != '"'; c++)
		if (*c >= 'a') {
			*c -= 32;
			break;
		});
}

static void remove_at(struct text *text, int at)
{
	free(text->lines[at]);
	memmove(text->lines + at, text->lines + at + 1, (size_t)(--text->count - at) * sizeof(char *));
}

static void insert_at(struct text *text, int at, const char *line)
{
	char *copy = strdup(line);
	memmove(text->lines + at + 1, text->lines + at, (size_t)(text->count++ - at) * sizeof(char *));
	text->lines[at] = copy;
}

static void remove_row(struct world *w) { LINES(w, 0, remove_at(&text, 2)); }
static void remove_first(struct world *w) { LINES(w, 0, remove_at(&text, 0)); }
static void remove_first_of_day(struct world *w) { LINES(w, 1, remove_at(&text, 0)); }
static void remove_last_of_day(struct world *w) { LINES(w, 1, remove_at(&text, text.count - 1)); }
static void remove_torn(struct world *w) { LINES(w, 1, remove_at(&text, 3)); }
static void remove_repair(struct world *w) { LINES(w, 1, remove_at(&text, 4)); }
static void remove_last(struct world *w) { LINES(w, 2, remove_at(&text, text.count - 1)); }
static void duplicate_row(struct world *w) { LINES(w, 0, insert_at(&text, 3, text.lines[3])); }
static void duplicate_last(struct world *w) { LINES(w, 2, insert_at(&text, text.count, text.lines[text.count - 1])); }
static void repeat_elsewhere(struct world *w) { LINES(w, 2, insert_at(&text, 3, text.lines[1])); }
static void insert_plain(struct world *w) { LINES(w, 0, insert_at(&text, 2, "{\"row\":\"test\"}")); }
static void insert_empty(struct world *w) { LINES(w, 0, insert_at(&text, 2, " ")); }
static void insert_at_end(struct world *w) { LINES(w, 2, insert_at(&text, text.count, "{\"row\":\"test\"}")); }

static void swap_rows(struct world *w)
{
	LINES(w, 0, char *line = text.lines[2]; text.lines[2] = text.lines[3]; text.lines[3] = line);
}

static void insert_too_long(struct world *w)
{
	char *line = malloc(3 * LEDGER_LINE_MAX + 1);
	memset(line, 'x', 3 * LEDGER_LINE_MAX);
	line[3 * LEDGER_LINE_MAX] = '\0';
	LINES(w, 0, insert_at(&text, 2, line));
	free(line);
}

/* What someone without the key can do at most: a chain that is right, with macs that are not. */
static void mend_chain(struct world *w, int from_day, int from_line)
{
	unsigned char hash[SEAL_HASH_SIZE];
	char hex[2 * SEAL_HASH_SIZE + 1];
	for (int day = from_day; day < DAYS; day++)
		LINES(w, day, for (int i = day == from_day ? from_line : 0; i < text.count; i++) {
			char *prev = strstr(text.lines[i], "\"prev\":\"");
			if (prev && (day > from_day || i > from_line))
				memcpy(prev + 8, hex, 2 * SEAL_HASH_SIZE);
			seal_hash(text.lines[i], strlen(text.lines[i]), hash);
			sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
		});
}

static void change_and_mend(struct world *w)
{
	change_byte(w);
	mend_chain(w, 0, 3);
}

static void add_with_right_prev(struct world *w)
{
	LINES(w, 2, insert_at(&text, text.count, text.lines[text.count - 1]));
	mend_chain(w, 2, 5 - 1);
}

static void cut_bytes(struct world *w, int day, off_t bytes)
{
	struct stat st;
	assert_int_equal(stat(w->files[day], &st), 0);
	assert_int_equal(truncate(w->files[day], st.st_size - bytes), 0);
}

static void cut_newline(struct world *w) { cut_bytes(w, 2, 1); }
static void cut_earlier_newline(struct world *w) { cut_bytes(w, 0, 1); }
static void cut_earlier_line(struct world *w) { cut_bytes(w, 1, 40); }
static void cut_in_line(struct world *w) { cut_bytes(w, 2, 40); }
static void cut_two_and_a_half(struct world *w) { cut_bytes(w, 2, 450); }

static void empty_last_day(struct world *w) { assert_int_equal(truncate(w->files[2], 0), 0); }
static void remove_first_day(struct world *w) { assert_int_equal(unlink(w->files[0]), 0); }
static void remove_middle_day(struct world *w) { assert_int_equal(unlink(w->files[1]), 0); }
static void remove_last_day(struct world *w) { assert_int_equal(unlink(w->files[2]), 0); }
static void remove_all_days(struct world *w) { remove_first_day(w), remove_middle_day(w), remove_last_day(w); }

static void swap_days(struct world *w)
{
	char aside[160];
	path_of(w, "aside", aside);
	assert_int_equal(rename(w->files[1], aside) || rename(w->files[2], w->files[1]) || rename(aside, w->files[2]),
	                 0);
}

static void rename_day(struct world *w)
{
	char later[160];
	path_of(w, "2999-01-01.jsonl", later);
	assert_int_equal(rename(w->files[2], later), 0);
}

static void join_days(struct world *w)
{
	LINES(w, 1, struct text more = take_lines(w->files[2]);
		for (int i = 0; i < more.count; i++)
			text.lines[text.count++] = more.lines[i]);
	remove_last_day(w);
}

static void add_day(struct world *w)
{
	char path[160];
	path_of(w, "2999-01-01.jsonl", path);
	ground_write(path, "{\"row\":\"test\"}\n");
}

static void add_unended_day(struct world *w)
{
	char path[160];
	path_of(w, "2999-01-01.jsonl", path);
	ground_write(path, "{\"row\":\"test\"");
}

static void add_too_long_end(struct world *w)
{
	struct stat st;
	assert_int_equal(stat(w->files[2], &st), 0);
	assert_int_equal(truncate(w->files[2], st.st_size + 3 * (off_t)LEDGER_LINE_MAX), 0);
}

static void link_day(struct world *w)
{
	char aside[160];
	path_of(w, "aside", aside);
	assert_int_equal(rename(w->files[1], aside) || symlink(aside, w->files[1]), 0);
}

static void replace(struct world *w, const char *name, const char *after)
{
	char path[160];
	path_of(w, name, path);
	char *text = ground_slurp(path), *at = strstr(text, after) + strlen(after);
	*at = *at == '1' ? '2' : '1';
	ground_write(path, text);
	free(text);
}

static void remove_small(struct world *w, const char *name)
{
	char path[160];
	path_of(w, name, path);
	assert_int_equal(unlink(path), 0);
}

static void change_head(struct world *w) { replace(w, "head", "\"rows\":"); }
static void change_head_mac(struct world *w) { replace(w, "head", "\"mac\":\""); }
static void remove_head(struct world *w) { remove_small(w, "head"); }
static void change_signed(struct world *w) { replace(w, "signed", "\"rows\":"); }
static void remove_signed(struct world *w) { remove_small(w, "signed"); }
static void change_key(struct world *w) { replace(w, "key", ""); }
static void remove_key(struct world *w) { remove_small(w, "key"); }
static void change_public(struct world *w) { replace(w, "key.pub", ""); }
static void remove_public(struct world *w) { remove_small(w, "key.pub"); }

static void cut_and_remove_head(struct world *w)
{
	remove_last(w);
	remove_head(w);
}

/* The head of another ledger, whole and sealed, but not with this key. */
static void foreign_head(struct world *w)
{
	time_t offset = clock_offset;
	struct world other = world_make();
	char from[160], to[160];
	path_of(&other, "head", from);
	path_of(w, "head", to);
	assert_int_equal(rename(from, to), 0);
	ground_remove(other.ground);
	clock_offset = offset;
}

#define DAY(n) (n), ""

/* What must be reported first, and in which line (of which day) or which file; how many reports there are, if that
 * matters. */
static const struct attack {
	const char *name;
	void (*tamper)(struct world *world);
	const char *what;
	int day;                /* -1: see `file` */
	const char *file;
	int line, reports;
} attacks[] = {
	{ "a byte changed", change_byte, "row_changed", DAY(0), 4, 1 },
	{ "the first row changed", change_first, "row_changed", DAY(0), 1, 1 },
	{ "the last row changed", change_last, "row_changed", DAY(2), 5, 0 },
	{ "prev changed", change_prev, "row_changed", DAY(2), 2, 1 },
	{ "mac changed", change_mac, "row_changed", DAY(2), 2, 1 },
	{ "prev in capitals", change_case, "row_foreign", DAY(2), 2, 1 },
	{ "a torn line changed", change_torn, "row_foreign", DAY(1), 4, 1 },
	{ "a row removed", remove_row, "row_out_of_place", DAY(0), 3, 1 },
	{ "the first row removed", remove_first, "beginning_missing", DAY(0), 1, 1 },
	{ "the first row of a day removed", remove_first_of_day, "row_out_of_place", DAY(1), 1, 0 },
	{ "the last row of a day removed", remove_last_of_day, "row_out_of_place", DAY(2), 1, 0 },
	{ "a torn line removed", remove_torn, "row_out_of_place", DAY(1), 4, 1 },
	{ "a repair row removed", remove_repair, "row_foreign", DAY(1), 4, 1 },
	{ "the last row removed", remove_last, "rows_missing", -1, "head", 0, 1 },
	{ "a row twice", duplicate_row, "row_out_of_place", DAY(0), 5, 1 },
	{ "the last row twice", duplicate_last, "row_out_of_place", DAY(2), 6, 1 },
	{ "a row again elsewhere", repeat_elsewhere, "row_out_of_place", DAY(2), 4, 0 },
	{ "a row inserted", insert_plain, "row_foreign", DAY(0), 3, 1 },
	{ "a blank line inserted", insert_empty, "row_foreign", DAY(0), 3, 1 },
	{ "a row added at the end", insert_at_end, "row_foreign", DAY(2), 6, 1 },
	{ "a row added at the end that continues the chain", add_with_right_prev, "row_changed", DAY(2), 6, 1 },
	{ "a line longer than any row", insert_too_long, "row_too_long", DAY(0), 3, 1 },
	{ "two rows swapped", swap_rows, "row_out_of_place", DAY(0), 3, 0 },
	{ "a row changed, the chain mended", change_and_mend, "row_changed", DAY(0), 4, 0 },
	{ "the last newline cut", cut_newline, "rows_missing", -1, "head", 0, 1 },
	{ "a day's last newline cut", cut_earlier_newline, "row_torn", DAY(0), 6, 1 },
	{ "a day's last line cut", cut_earlier_line, "row_foreign", DAY(1), 7, 0 },
	{ "cut within a line", cut_in_line, "rows_missing", -1, "head", 0, 1 },
	{ "cut within a line, rows before it gone", cut_two_and_a_half, "rows_missing", -1, "head", 0, 1 },
	{ "a day emptied", empty_last_day, "rows_missing", -1, "head", 0, 1 },
	{ "the first day removed", remove_first_day, "beginning_missing", DAY(1), 1, 1 },
	{ "a day removed", remove_middle_day, "row_out_of_place", DAY(2), 1, 0 },
	{ "the last day removed", remove_last_day, "rows_missing", -1, "head", 0, 1 },
	{ "all days removed", remove_all_days, "rows_missing", -1, "head", 0, 0 },
	{ "two days swapped", swap_days, "row_out_of_place", DAY(1), 1, 0 },
	{ "a day renamed", rename_day, "row_out_of_place", -1, "head", 0, 1 },
	{ "two days joined", join_days, "row_out_of_place", -1, "head", 0, 1 },
	{ "a day added", add_day, "row_foreign", -1, "2999-01-01.jsonl", 1, 1 },
	{ "bytes without an end in a later day", add_unended_day, "row_foreign", -1, "2999-01-01.jsonl", 1, 1 },
	{ "more bytes at the end than a row can have", add_too_long_end, "row_too_long", DAY(2), 6, 1 },
	{ "a link for a day", link_day, "file_unreadable", DAY(1), 0, 0 },
	{ "the head changed", change_head, "head_changed", -1, "head", 0, 1 },
	{ "the head's mac changed", change_head_mac, "head_changed", -1, "head", 0, 1 },
	{ "another ledger's head", foreign_head, "head_changed", -1, "head", 0, 1 },
	{ "the head removed", remove_head, "head_missing", -1, "head", 0, 1 },
	{ "the last row and the head removed", cut_and_remove_head, "head_missing", -1, "head", 0, 1 },
	{ "the signed head changed", change_signed, "signature_changed", -1, "signed", 0, 1 },
	{ "the signed head removed", remove_signed, "signature_missing", -1, "signed", 0, 1 },
	{ "the key changed", change_key, "public_key_changed", -1, "key.pub", 0, 0 },
	{ "the key removed", remove_key, "key_missing", -1, "key", 0, 1 },
	{ "the public key changed", change_public, "public_key_changed", -1, "key.pub", 0, 0 },
	{ "the public key removed", remove_public, "public_key_missing", -1, "key.pub", 0, 1 },
};

static bool reported(json_t *report, const struct attack *attack, const struct world *world)
{
	const json_t *first = json_array_get(json_object_get(report, "problems"), 0);
	const char *file = attack->day < 0 ? attack->file : strrchr(world->files[attack->day], '/') + 1;
	json_int_t count = json_integer_value(json_object_get(report, "problem_count"));
	return first && !json_is_true(json_object_get(report, "intact")) && count > 0 &&
	       !strcmp(json_string_value(json_object_get(first, "what")), attack->what) &&
	       !strcmp(json_string_value(json_object_get(first, "file")), file) &&
	       json_integer_value(json_object_get(first, "line")) == attack->line &&
	       *json_string_value(json_object_get(first, "reason")) && (!attack->reports || count == attack->reports);
}

static void tampering(void **state)
{
	int missed = 0;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(attacks); i++) {
		if (!HAS_LINKS && attacks[i].tamper == link_day)
			continue;
		struct world world = world_make();
		ground_intact(world.ground, true);
		attacks[i].tamper(&world);
		json_t *report = ground_verify(world.ground);
		if (!reported(report, &attacks[i], &world)) {
			print_error("%s: %s\n", attacks[i].name, json_dumps(report, JSON_INDENT(2)));
			missed++;
		}
		json_decref(report);
		/* And it is still found when the ledger has gone on. */
		struct ledger *fresh;
		struct cordon_error err;
		assert_int_equal(ledger_open(world.ground->data, false, &fresh, &err), 0);
		bool refused = ledger_append(fresh, "{\"row\":\"after\"}", 15, &err) < 0;
		bool by_link = attacks[i].tamper == link_day;
		if (refused && !by_link)
			fail_msg("%s: %s", attacks[i].name, err.reason);
		ledger_unref(fresh);
		/* A signed head is made anew; nothing was lost with it. */
		bool heals = attacks[i].tamper == change_signed || attacks[i].tamper == remove_signed;
		ground_intact(world.ground, heals);
		world_remove(&world);
	}
	assert_int_equal(missed, 0);
}

/* The limit of it: with the key all can be written anew. Only who knows the key or a signed head from before can
 * tell. */
static void who_has_the_key(void **state)
{
	struct world world = world_make();
	json_t *before = ground_verify(world.ground);
	(void)state;
	assert_int_equal(nftw(world.ground->directory, ground_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	ledger_unref(world.ground->ledger);
	struct cordon_error err;
	assert_int_equal(ledger_open(world.ground->data, false, &world.ground->ledger, &err), 0);
	ground_append(world.ground->ledger, "{\"row\":\"invented\"}");
	ground_intact(world.ground, true);
	json_t *after = ground_verify(world.ground);
	assert_string_not_equal(json_string_value(json_object_get(before, "key")),
	                        json_string_value(json_object_get(after, "key")));
	json_decref(before);
	json_decref(after);
	world_remove(&world);
}

static void no_ledger(void **state)
{
	struct ground *ground = ground_make();
	(void)state;
	json_t *report = ground_verify(ground);
	assert_false(json_is_true(json_object_get(report, "intact")));
	json_decref(report);
	ground_remove(ground);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tampering), cmocka_unit_test(who_has_the_key), cmocka_unit_test(no_ledger),
	};
	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
