/* The redacting stream: the same result however the bytes are cut, true totals, whole characters, and nothing held for
 * longer than it may become a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <sodium.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "secrets/filter.h"
#include "secret-ground.h"

#define OWN "correct7horse+battery"

struct sink {
	char *bytes;
	size_t length;
	bool is_split;                  /* a delivery ended within a character */
};

static void deliver(void *context, const void *bytes, size_t length)
{
	struct sink *sink = context;
	sink->bytes = realloc(sink->bytes, sink->length + length + 1);
	memcpy(sink->bytes + sink->length, bytes, length);
	sink->length += length;
	sink->bytes[sink->length] = '\0';
	sink->is_split |= utf8_cut_tail(bytes, length) > 0;
}

struct ground {
	struct secret_set *set;
	struct secret_filter *filter;
	struct sink sink;
};

static void begin(struct ground *ground, enum secret_action action)
{
	struct secret_policy policy;
	memset(ground, 0, sizeof(*ground));
	secret_policy_set(&policy, action);
	ground->set = secret_set_new();
	assert_int_equal(secret_set_add(ground->set, "MY_TOKEN", OWN, strlen(OWN)), 1);
	ground->filter = secret_filter_new(ground->set, &policy, NULL, deliver, &ground->sink);
	assert_non_null(ground->filter);
}

static void end(struct ground *ground)
{
	secret_filter_free(ground->filter);
	secret_set_unref(ground->set);
	free(ground->sink.bytes);
}

static void add(struct ground *ground, const char *text, uint64_t now_ms)
{
	secret_filter_add(ground->filter, text, strlen(text), now_ms);
}

static char *stream_with(const char *secret, const char *after)
{
	char *text;
	assert_true(asprintf(&text, "before it, \xc3\xa9t\xc3\xa9 %s%s the end", secret, after) > 0);
	return text;
}

/* In two parts, cut at every place, and byte by byte. */
static void expect_cut_anywhere(const char *text, const char *expected)
{
	size_t length = strlen(text);
	for (size_t cut = 0; cut <= length + 1; cut++) {
		struct ground ground;
		begin(&ground, SECRET_REDACT);
		size_t first = cut > length ? 1 : cut;
		for (size_t at = 0; at < length;) {
			size_t part = cut > length ? 1 : at ? length - at : first ? first : length;
			part = part < length - at ? part : length - at;
			secret_filter_add(ground.filter, text + at, part, 0);
			at += part;
		}
		secret_filter_finish(ground.filter);
		if (strcmp(ground.sink.bytes, expected) != 0)
			fail_msg("cut at %zu: %s", cut, ground.sink.bytes);
		assert_int_equal(secret_filter_total(ground.filter), length);
		assert_int_equal(secret_filter_count(ground.filter, NULL), 1);
		assert_false(ground.sink.is_split);
		end(&ground);
	}
}

static void every_kind_is_hidden_however_it_is_cut(void **state)
{
	(void)state;
	for (size_t row = 0; row < secret_row_count; row++) {
		auto_free char *secret = secret_example(row), *expected = NULL;
		auto_free char *text = stream_with(secret, "");
		size_t shown = secret_rows[row].check == shape_named ? strcspn(secret, "kRJ") : 0;
		if (shown)
			shown = strlen(secret) - 40;
		assert_true(asprintf(&expected, "before it, \xc3\xa9t\xc3\xa9 %.*s[REDACTED:%s] the end", (int)shown,
		                     secret, secret_rows[row].name) > 0);
		expect_cut_anywhere(text, expected);
	}
	auto_free char *own = stream_with(OWN, "");
	expect_cut_anywhere(own, "before it, \xc3\xa9t\xc3\xa9 [REDACTED:MY_TOKEN] the end");
}

static void every_layer_is_hidden_however_it_is_cut(void **state)
{
	/* One kind of each shape, and an own one; two layers. */
	static const char *const kinds[] = { "anthropic-key", "private-key", "telegram-token",
		                             "discord-token", "jwt",         "aws-key" };
	(void)state;
	for (size_t i = 0; i <= ARRAY_SIZE(kinds); i++) {
		size_t row = 0;
		while (i < ARRAY_SIZE(kinds) && strcmp(secret_rows[row].name, kinds[i]) != 0)
			row++;
		auto_free char *secret = i < ARRAY_SIZE(kinds) ? secret_example(row) : strdup(OWN);
		for (int inner = 1; inner < ENCODE_MAX; inner++) {
			struct encoded once = encode((enum encoding)inner, secret, strlen(secret));
			for (int outer = 0; outer < (i % 3 == 0 ? ENCODE_MAX : 1); outer++) {
				struct encoded twice = encode((enum encoding)outer, once.bytes, once.length);
				auto_free char *text = stream_with(twice.bytes, ";");
				struct ground ground;
				begin(&ground, SECRET_REDACT);
				add(&ground, text, 0);
				secret_filter_finish(ground.filter);
				assert_int_equal(secret_filter_count(ground.filter, NULL), 1);
				expect_cut_anywhere(text, ground.sink.bytes);
				end(&ground);
				free(twice.bytes);
			}
			free(once.bytes);
		}
	}
}

static void only_what_may_begin_a_secret_is_held(void **state)
{
	struct ground ground;
	(void)state;
	begin(&ground, SECRET_REDACT);
	add(&ground, "plain text, with a line.\n", 1000);
	assert_string_equal(ground.sink.bytes, "plain text, with a line.\n");
	assert_int_equal(secret_filter_deadline(ground.filter), 0);
	add(&ground, "the key is sk-ant-api03", 1010);
	assert_string_equal(ground.sink.bytes, "plain text, with a line.\nthe key is ");
	assert_int_equal(secret_filter_deadline(ground.filter), 1010 + SECRET_HOLD_MS);
	/* More of the same secret does not put the deadline off. */
	add(&ground, "-Zk3vQ8mT1xB7nR5cW2", 1050);
	assert_int_equal(secret_filter_deadline(ground.filter), 1010 + SECRET_HOLD_MS);
	secret_filter_release(ground.filter);
	assert_string_equal(ground.sink.bytes, "plain text, with a line.\nthe key is [REDACTED:anthropic-key]");
	assert_int_equal(secret_filter_deadline(ground.filter), 0);
	/* What follows belongs to it. */
	add(&ground, "yH9dL4pS6gJ0fK\n", 1200);
	secret_filter_finish(ground.filter);
	assert_string_equal(ground.sink.bytes,
	                    "plain text, with a line.\nthe key is [REDACTED:anthropic-key][REDACTED:anthropic-key]\n");
	assert_int_equal(secret_filter_count(ground.filter, NULL), 1);
	end(&ground);
}

static void a_start_that_was_released_does_not_show_the_rest(void **state)
{
	struct ground ground;
	(void)state;
	begin(&ground, SECRET_REDACT);
	add(&ground, "t=" "correct7ho", 1);
	secret_filter_release(ground.filter);
	assert_string_equal(ground.sink.bytes, "t=correct7ho");
	add(&ground, "rse+battery.", 200);
	secret_filter_finish(ground.filter);
	assert_string_equal(ground.sink.bytes, "t=correct7ho[REDACTED:MY_TOKEN].");
	const struct secret_finding *findings;
	assert_int_equal(secret_filter_findings(ground.filter, &findings), 1);
	assert_int_equal(findings[0].offset, 2);
	assert_int_equal(findings[0].length, strlen(OWN));
	assert_true(findings[0].is_own);
	assert_string_equal(findings[0].layer, "raw");
	end(&ground);
}

static void a_report_changes_and_holds_nothing(void **state)
{
	static const char text[] = "a " OWN " b\nghp_R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK";
	struct ground ground;
	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		begin(&ground, SECRET_REPORT);
		secret_filter_add(ground.filter, text, cut, 1);
		assert_int_equal(ground.sink.length, cut);
		secret_filter_add(ground.filter, text + cut, sizeof(text) - 1 - cut, 1);
		assert_int_equal(secret_filter_deadline(ground.filter), 0);
		assert_int_equal(ground.sink.length, sizeof(text) - 1);
		secret_filter_finish(ground.filter);
		assert_string_equal(ground.sink.bytes, text);
		assert_int_equal(secret_filter_count(ground.filter, NULL), 2);
		end(&ground);
	}
}

static void a_block_ends_what_is_passed_on(void **state)
{
	struct secret_policy policy;
	struct ground ground;
	(void)state;
	begin(&ground, SECRET_REDACT);
	secret_filter_free(ground.filter);
	secret_policy_set(&policy, SECRET_REDACT);
	assert_true(secret_policy_set_kind(&policy, "own", SECRET_BLOCK));
	assert_true(secret_policy_set_kind(&policy, "github-token", SECRET_IGNORE));
	assert_false(secret_policy_set_kind(&policy, "githubtoken", SECRET_IGNORE));
	ground.filter = secret_filter_new(ground.set, &policy, NULL, deliver, &ground.sink);
	add(&ground, "ghp_R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK and " OWN " and more\n", 1);
	add(&ground, "still more\n", 1);
	secret_filter_finish(ground.filter);
	assert_string_equal(ground.sink.bytes, "ghp_R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK and [REDACTED:MY_TOKEN]");
	assert_true(secret_filter_is_blocked(ground.filter));
	assert_int_equal(secret_filter_count(ground.filter, NULL), 1);
	end(&ground);
}

/* ---- what overlaps ---------------------------------------------------------------------------------------------- */

#define KIND "ghp_R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK"
#define AWS_ID "AKIAQ3ZP7KX2MWN5TRLV"
#define AWS_SECRET "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"

/* What is done about own secrets and about kinds; a part of the text that is an own secret, and another that the caller
 * gave by name; what comes out, and of what is noted the names and whether it is hidden. */
static const struct {
	const char *what, *text, *own, *given;
	enum secret_action for_own, for_kinds;
	const char *out, *noted;
	bool is_blocked;
} overlaps[] = {
	{ "an own one within a kind that is reported", "a " AWS_ID " secret=" AWS_SECRET " z", AWS_SECRET, NULL,
	  SECRET_REDACT, SECRET_REPORT, "a " AWS_ID " secret=[REDACTED:MINE] z", "aws-key? MINE! ", false },
	{ "that is to block", "a " AWS_ID " secret=" AWS_SECRET " z", AWS_SECRET, NULL, SECRET_BLOCK, SECRET_REPORT,
	  "a " AWS_ID " secret=[REDACTED:MINE]", "aws-key? MINE! ", true },
	{ "within one that is hidden, too", "a " AWS_ID " secret=" AWS_SECRET " z", AWS_SECRET, NULL, SECRET_REDACT,
	  SECRET_REDACT, "a [REDACTED:MINE] z", "MINE! ", false },
	{ "that is to block, and the kind is not", "a " KIND " z", KIND "", NULL, SECRET_BLOCK, SECRET_REDACT,
	  "a [REDACTED:MINE]", "MINE! ", true },
	{ "the kind is to block", "a " AWS_ID " secret=" AWS_SECRET " z", AWS_SECRET, NULL, SECRET_REDACT, SECRET_BLOCK,
	  "a [REDACTED:aws-key]", "aws-key! ", true },
	{ "an own one that is reported within a kind", "a " AWS_ID " secret=" AWS_SECRET " z", AWS_SECRET, NULL,
	  SECRET_REPORT, SECRET_REDACT, "a [REDACTED:aws-key] z", "aws-key! ", false },
	{ "a kind within an own one", "a x" KIND "y9Qz!!pP z", "x" KIND "y9Qz!!pP", NULL, SECRET_REDACT, SECRET_REPORT,
	  "a [REDACTED:MINE] z", "MINE! ", false },
	{ "both are reported", "a " AWS_ID " secret=" AWS_SECRET " z", AWS_SECRET, NULL, SECRET_REPORT, SECRET_REPORT,
	  "a " AWS_ID " secret=" AWS_SECRET " z", "MINE? ", false },
	{ "an own one behind the beginning of a kind",
	  "a ghp_R7kW2mZx9QvT4nLb8YcJ"
	  "5hGd1PsF6aE3uIoKq7 z",
	  "5hGd1PsF6aE3uIoKq7", NULL, SECRET_REDACT, SECRET_REPORT, "a ghp_R7kW2mZx9QvT4nLb8YcJ[REDACTED:MINE] z",
	  "github-token? MINE! ", false },
	{ "a kind that was given by name", "a " KIND " z", NULL, KIND, SECRET_BLOCK, SECRET_REDACT, "a " KIND " z", "",
	  false },
	{ "given by name within a longer kind", "a " AWS_ID " secret=" AWS_SECRET " z", NULL, AWS_SECRET, SECRET_BLOCK,
	  SECRET_REDACT, "a [REDACTED:aws-key] z", "aws-key! ", false },
	{ "an own one beside what was given", "a " KIND "," AWS_SECRET " z", AWS_SECRET, KIND, SECRET_REDACT,
	  SECRET_REDACT, "a " KIND ",[REDACTED:MINE] z", "MINE! ", false },
	{ "ignored kinds hide nothing of an own one", "a " AWS_ID " secret=" AWS_SECRET " z", AWS_SECRET, NULL,
	  SECRET_REDACT, SECRET_IGNORE, "a " AWS_ID " secret=[REDACTED:MINE] z", "MINE! ", false },
	/* "x" and the own one in base64: what is a kind outside is reported, what is an own one inside hidden. */
	{ "one in another layer", "k=eGNvcnJlY3Q3aG9yc2UrYmF0dGVyeQ== z", OWN, NULL, SECRET_REDACT, SECRET_REPORT,
	  "k=e[REDACTED:MINE]== z", "MINE! ", false },
	{ "one in another layer within a kind",
	  "t=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIiwiayI6ImNvcnJlY3Q3aG9yc2UrYmF0dGVyeSJ9."
	  "R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK3mT7wQx z",
	  OWN, NULL, SECRET_REDACT, SECRET_REPORT,
	  "t=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIiwiayI6I[REDACTED:MINE]J9."
	  "R7kW2mZx9QvT4nLb8YcJ5hGd1PsF6aE3uIoK3mT7wQx z",
	  "jwt? MINE! ", false },
};

static void note_all(const struct secret_filter *filter, char *ret_noted)
{
	const struct secret_finding *findings;
	size_t count = secret_filter_findings(filter, &findings);
	*ret_noted = '\0';
	for (size_t i = 0; i < count; i++)
		sprintf(ret_noted + strlen(ret_noted), "%s%s ", findings[i].name,
		        findings[i].action == SECRET_REPORT ? "?" : "!");
}

static void what_overlaps_gets_the_strictest_action(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(overlaps); i++) {
		size_t length = strlen(overlaps[i].text);
		for (size_t piece = 1; piece <= length; piece += length - 1) {
			struct ground ground = { .set = secret_set_new() };
			struct secret_policy policy;
			char noted[1000];
			secret_policy_set(&policy, overlaps[i].for_kinds);
			assert_true(secret_policy_set_kind(&policy, "own", overlaps[i].for_own));
			if (overlaps[i].given)
				assert_int_equal(secret_set_exempt(ground.set, "GIVEN", overlaps[i].given,
				                                   strlen(overlaps[i].given), true),
				                 1);
			if (overlaps[i].own)
				assert_int_equal(
					secret_set_add(ground.set, "MINE", overlaps[i].own, strlen(overlaps[i].own)),
					1);
			ground.filter = secret_filter_new(ground.set, &policy, NULL, deliver, &ground.sink);
			for (size_t at = 0; at < length; at += piece)
				secret_filter_add(ground.filter, overlaps[i].text + at,
				                  piece < length - at ? piece : length - at, 1);
			secret_filter_finish(ground.filter);
			note_all(ground.filter, noted);
			if (strcmp(ground.sink.bytes, overlaps[i].out) || strcmp(noted, overlaps[i].noted) ||
			    secret_filter_is_blocked(ground.filter) != overlaps[i].is_blocked)
				fail_msg("%s, in pieces of %zu: %s (%s)", overlaps[i].what, piece, ground.sink.bytes,
				         noted);
			end(&ground);
		}
	}
}

static void findings_are_counted_beyond_those_that_are_kept(void **state)
{
	struct ground ground;
	const struct secret_finding *findings;
	(void)state;
	begin(&ground, SECRET_REDACT);
	for (int i = 0; i < 1000; i++)
		add(&ground, OWN " ", 1);
	secret_filter_finish(ground.filter);
	assert_int_equal(secret_filter_count(ground.filter, NULL), 1000);
	assert_int_equal(secret_filter_findings(ground.filter, &findings), SECRET_FINDINGS);
	assert_int_equal(findings[1].offset, strlen(OWN) + 1);
	assert_int_equal(ground.sink.length, 1000 * strlen("[REDACTED:MY_TOKEN] "));
	end(&ground);
}

/* Random bytes, base64 and text pass through unchanged, whatever is held meanwhile. */
static void other_bytes_pass_unchanged(void **state)
{
	(void)state;
	for (int round = 0; round < 60; round++) {
		struct ground ground;
		char bytes[5000];
		size_t length = randombytes_uniform(sizeof(bytes));
		randombytes_buf(bytes, length);
		for (size_t i = 0; round % 3 && i < length; i++)
			bytes[i] =
				round % 3 == 1
					? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef0123456789+/"[(unsigned char)bytes[i] % 44]
					: "sk-anteyJ123:A \n\xc3\xa9"[(unsigned char)bytes[i] % 17];
		begin(&ground, SECRET_REDACT);
		for (size_t at = 0, part; at < length; at += part) {
			part = 1 + randombytes_uniform(300);
			part = part < length - at ? part : length - at;
			secret_filter_add(ground.filter, bytes + at, part, 1);
			if (!randombytes_uniform(4))
				secret_filter_release(ground.filter);
		}
		secret_filter_finish(ground.filter);
		assert_int_equal(ground.sink.length, length);
		assert_memory_equal(length ? ground.sink.bytes : "", bytes, length);
		end(&ground);
	}
}

/* A long candidate that comes byte by byte is not looked at for every byte. */
static void single_bytes_cost_no_look_each(void **state)
{
	/* A sanitizer takes twenty times as long, and four times less shows the same. */
	struct ground ground;
	struct timespec from, to;
	const size_t length = getenv("CORDON_SANITIZED") ? (size_t)32 * 1024 : (size_t)256 * 1024;
	(void)state;
	begin(&ground, SECRET_REDACT);
	add(&ground, "-----BEGIN PRIVATE KEY-----\n", 1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (size_t i = 0; i < length; i++)
		secret_filter_add(ground.filter, i % 65 == 64 ? "\n" : "Q", 1, 1);
	secret_filter_finish(ground.filter);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	print_message("# %.3f s for %zu single bytes\n", seconds, length);
	/* A look at the whole window for each would take many minutes. */
	assert_true(seconds < 300);
	end(&ground);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_hidden_however_it_is_cut),
		cmocka_unit_test(every_layer_is_hidden_however_it_is_cut),
		cmocka_unit_test(only_what_may_begin_a_secret_is_held),
		cmocka_unit_test(a_start_that_was_released_does_not_show_the_rest),
		cmocka_unit_test(a_report_changes_and_holds_nothing),
		cmocka_unit_test(a_block_ends_what_is_passed_on),
		cmocka_unit_test(what_overlaps_gets_the_strictest_action),
		cmocka_unit_test(findings_are_counted_beyond_those_that_are_kept),
		cmocka_unit_test(other_bytes_pass_unchanged),
		cmocka_unit_test(single_bytes_cost_no_look_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
