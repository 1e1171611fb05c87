/* The scanner: every kind in every layer is found, at its place; what only looks like a secret is not; the portable
 * search and the one for AVX2 agree; near misses cost linear time. */
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
#include "secrets/scan.h"
#include "secret-ground.h"
#include "skip.h"

static const unsigned char key[SECRET_KEY] = "a key for tests, of 32 bytes...";

static void put(char **ret_text, size_t *ret_length, const void *bytes, size_t length)
{
	*ret_text = realloc(*ret_text, *ret_length + length + 1);
	memcpy(*ret_text + *ret_length, bytes, length);
	*ret_length += length;
	(*ret_text)[*ret_length] = '\0';
}

/* A secret, encoded, between other bytes; it must be the only thing found, and the span must be within the encoded
 * bytes and hold all of the secret but what shares a group with its neighbours. */
static void expect(struct secret_scanner *scanner, const char *before, struct encoded secret, const char *after,
                   const char *name, const char *layer)
{
	auto_free char *text = NULL;
	size_t length = 0;
	char found_layer[SECRET_LAYER_TEXT];
	put(&text, &length, before, strlen(before));
	put(&text, &length, secret.bytes, secret.length);
	put(&text, &length, after, strlen(after));
	assert_int_equal(secret_scan(scanner, text, length, true), 0);
	if (scanner->found_count != 1)
		fail_msg("%zu found of %s (%s) in: %s", scanner->found_count, name, layer, text);
	const struct secret_found *found = &scanner->found[0];
	secret_layer_text(found->layers, found_layer);
	assert_string_equal(secret_found_name(scanner->set, found), name);
	if (layer)
		assert_string_equal(found_layer, layer);
	assert_true(found->start >= strlen(before) && found->end <= strlen(before) + secret.length);
}

static struct secret_set *own_set(void)
{
	struct secret_set *set = secret_set_new();
	assert_non_null(set);
	assert_int_equal(secret_set_add(set, "MY_TOKEN", "correct7horse+battery", 21), 1);
	assert_int_equal(secret_set_add(set, "OTHER", "Zx9#kQ2vLm7!", 12), 1);
	return set;
}

static void every_kind_is_found_in_every_layer(void **state)
{
	static const char *const around[][2] = {
		{ "", "" }, { "key: ", "\nnext line\n" }, { "{\"k\":\"", "\"}" }, { "x=", " y" }
	};
	struct secret_scanner scanner;
	struct secret_set *set = own_set();
	size_t planted = 0;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	for (size_t row = 0; row < secret_row_count + 2; row++) {
		bool is_own = row >= secret_row_count;
		auto_free char *secret =
			is_own ? strdup(row == secret_row_count ? "correct7horse+battery" : "Zx9#kQ2vLm7!")
			       : secret_example(row);
		const char *name = !is_own ? secret_rows[row].name : row == secret_row_count ? "MY_TOKEN" : "OTHER";
		for (int inner = 0; inner < ENCODE_MAX; inner++) {
			/* At each place in a group of base64: with 0, 1 and 2 bytes before it. */
			for (size_t shift = 0; shift < 3; shift++) {
				auto_free char *shifted = NULL;
				size_t length = 0;
				put(&shifted, &length, ": ", shift);
				put(&shifted, &length, secret, strlen(secret));
				struct encoded encoded = encode((enum encoding)inner, shifted, length);
				const char *const *pair = around[planted % ARRAY_SIZE(around)];
				/* A wrapped one goes on in the next line if a word stands there. */
				if (strchr(pair[1], '\n') && inner != ENCODE_RAW)
					pair = around[2];
				expect(&scanner, pair[0], encoded, pair[1], name,
				       inner == ENCODE_URL ? NULL : encoding_layer((enum encoding)inner));
				planted++;
				for (int outer = 1; outer < ENCODE_MAX; outer++) {
					struct encoded twice =
						encode((enum encoding)outer, encoded.bytes, encoded.length);
					expect(&scanner, pair[0], twice, pair[1], name, NULL);
					free(twice.bytes);
					planted++;
				}
				free(encoded.bytes);
			}
		}
	}
	print_message("# %zu planted, all found\n", planted);
	assert_true(planted >= 300);
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

static void fingerprints_are_of_the_secret_and_keyed(void **state)
{
	struct secret_set *set = own_set();
	struct secret_scanner scanner, other;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	secret_scanner_init(&other, set, NULL);
	auto_free char *secret = secret_example(0);
	struct encoded hexed = encode(ENCODE_HEX, secret, strlen(secret));
	assert_int_equal(secret_scan(&scanner, secret, strlen(secret), true), 0);
	assert_int_equal(scanner.found_count, 1);
	unsigned char first[SECRET_FINGERPRINT];
	memcpy(first, scanner.found[0].fingerprint, sizeof(first));
	assert_int_equal(secret_scan(&scanner, hexed.bytes, hexed.length, true), 0);
	assert_int_equal(scanner.found_count, 1);
	assert_memory_equal(scanner.found[0].fingerprint, first, sizeof(first));
	assert_int_equal(secret_scan(&other, secret, strlen(secret), true), 0);
	assert_memory_not_equal(other.found[0].fingerprint, first, sizeof(first));
	free(hexed.bytes);
	secret_scanner_free(&scanner);
	secret_scanner_free(&other);
	secret_set_unref(set);
}

static void what_is_public_stays_silent(void **state)
{
	static const char *const texts[] = {
		"-----BEGIN PUBLIC "
		"KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEq7xLm2Vt9Rw4Zb8Nd1Hs6Jf3Gy0P\n-----END PUBLIC "
		"KEY-----\n",
		"-----BEGIN "
		"CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END "
		"CERTIFICATE-----\n",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE...\n-----END RSA PRIVATE KEY-----\n",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9nWq3xTz7LkVb2Rm8Yc5Hd1Ps6Gf0Ja4Ne9Uo3Ki7Q user@host",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"commit efb47ff0ba1cfe5af1a17ff5bc98d8e263cd7871 (HEAD -> main)",
		"123e4567-e89b-12d3-a456-426614174000",
		"apiKey:\"6be0576ff61c053d5f9a3225e2a90f76\",indexName:\"docs\"", /* a public search key */
		"pk_live_51Kx9QvT4nLb8YcJ5hGd1PsF6aE3uIoR7kW2m",
		"task-2f7c1b9a8e6d4c3b2a1908f7e6d5c4b3a2918070f",
		"sk-learn and desk-top risk-free mask-image",
		"sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"AKIAXXXXXXXXXXXXXXXX",
		"AKIAIOSFODNN7EXAMPLE",
		"ASIAI44QH8DHBEXAMPLE\nregion = eu\n",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
		"data:image/"
		"png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+"
		"M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"//# "
		"sourceMappingURL=data:application/"
		"json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbImEuanMiXSwibmFtZXMiOltdfQ==",
		"!function(e,t){\"object\"==typeof exports&&\"undefined\"!=typeof "
		"module?module.exports=t():e.xoxb=t()}(this,function(){return a%2D+b});",
		"12:34:56:ABC 10:15:AM 2026-11-18T15:14:18Z 123456789:AB",
		"integrity "
		"sha512-Zk3vQ8mT1xB7nR5cW2yH9dL4pS6gJ0fKaEuIoXqVtMbNzRwCsDyGhPl7Jk2Fv9Qm4Tx8Bn1Rc5Wy3Hd6Lp0Sgu7YtA==",
		"BSAfoo BSABCDEFGHIJKLMNOPQRSTUVWXYZ ABSAk7Qm2Xv9TtL4nRb8YcJ5hGd1PsF6a",
		"correct horse battery staple",
		"MY_TOKEN=correct7horse",
	};
	struct secret_set *set = own_set();
	struct secret_scanner scanner;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		for (int final = 0; final < 2; final++) {
			assert_int_equal(secret_scan(&scanner, texts[i], strlen(texts[i]), final), 0);
			if (scanner.found_count)
				fail_msg("%s found in: %s", secret_found_name(set, &scanner.found[0]), texts[i]);
		}
	}
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

static void secrets_are_found_in_the_company_they_keep(void **state)
{
	static const struct { const char *format; size_t row;
	} places[] = {
		{ "https://x:%s@example.org/repo.git", 8 },
		{ "\x1b[32m%s\x1b[0m", 5 },
		{ "{\"text\":\"key:\\n%s\\n\"}", 5 },
		{ "Authorization: Bearer %s\r\n", 36 },
		{ "+%s", 0 },
		{ "-%s", 0 },
		{ "`%s`", 15 },
		{ "https://api/bot%s/getMe", 28 },
	};
	struct secret_set *set = secret_set_new();
	struct secret_scanner scanner;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		auto_free char *secret = secret_example(places[i].row);
		auto_free char *text = NULL;
		const char *mark = strstr(places[i].format, "%s");
		size_t length = 0;
		put(&text, &length, places[i].format, (size_t)(mark - places[i].format));
		put(&text, &length, secret, strlen(secret));
		put(&text, &length, mark + 2, strlen(mark + 2));
		assert_int_equal(secret_scan(&scanner, text, length, true), 0);
		if (scanner.found_count != 1 || scanner.found[0].start != (size_t)(mark - places[i].format) ||
		    scanner.found[0].end - scanner.found[0].start != strlen(secret))
			fail_msg("%zu found in: %s", scanner.found_count, text);
	}
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

/* One behind the other with nothing between. What must stand alone, by its flags, cannot be told then. */
static void adjacent_secrets_are_hidden_both(void **state)
{
	struct secret_set *set = own_set();
	struct secret_scanner scanner;
	size_t pairs = 0;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	for (size_t first = 0; first < secret_row_count; first++) {
		for (size_t second = 0; second < secret_row_count; second++) {
			if (secret_rows[first].flags & SECRET_EXACT || secret_rows[first].check == shape_discord ||
			    secret_rows[second].flags & SECRET_LEFT || !*secret_rows[second].prefix ||
			    secret_rows[second].check == shape_named)
				continue;
			auto_free char *left = secret_example(first), *right = secret_example(second), *text = NULL;
			size_t length = 0, hidden = 0;
			put(&text, &length, left, strlen(left));
			put(&text, &length, right, strlen(right));
			assert_int_equal(secret_scan(&scanner, text, length, true), 0);
			for (size_t i = 0; i < scanner.found_count; i++)
				hidden += scanner.found[i].end - scanner.found[i].start;
			if (hidden != length)
				fail_msg("%zu of %zu hidden: %s", hidden, length, text);
			pairs++;
		}
	}
	assert_true(pairs > 400);
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

static void both_halves_of_an_aws_key_are_one_finding(void **state)
{
	static const char text[] = "[default]\naws_access_key_id = AKIA" "Q4ZX7MVK2LTR5WBN\n"
				   "aws_secret = kQ7xLm2Vt9Rw4Zb8Nd1Hs6Jf3Gy0PaTe5UiOqWcX\nregion = eu\n";
	struct secret_set *set = secret_set_new();
	struct secret_scanner scanner;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	assert_int_equal(secret_scan(&scanner, text, sizeof(text) - 1, true), 0);
	assert_int_equal(scanner.found_count, 1);
	assert_ptr_equal(strstr(text, "AKIA"), text + scanner.found[0].start);
	assert_ptr_equal(strstr(text, "\nregion"), text + scanner.found[0].end);
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

/* What an earlier check of the same bytes found out holds for them only. */
static void what_is_remembered_hides_nothing(void **state)
{
	static const char aws[] =
		"AKIA"
		"Q4ZX7MVK2LTR5WBN "
	        "............................................................................................"
		" AKIA"
		"T7BQ3NXK5WVM2RLZ/z "
	        ".........................................................................................."
		" kQ7xLm2Vt9Rw4Zb8Nd1Hs6Jf3Gy0PaTe5UiOqWcX.";
	static const char jwt[] = "eyJ-eyJ--"
				  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
				  ".eyJzdWIiOiIyNDY4MTM1NzkwIiwiaWF0IjoxNTE2MjM5MDIyfQ."
				  "k7Qm2Xv9TtL4nRb8YcJ5hGd1PsF6aE3uIoKxWqZtVb0";
	struct secret_set *set = secret_set_new();
	struct secret_scanner scanner;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	assert_int_equal(secret_scan(&scanner, aws, sizeof(aws) - 1, true), 0);
	assert_int_equal(scanner.found_count, 2);
	assert_int_equal(scanner.found[0].end, 20);
	assert_int_equal(scanner.found[1].end, sizeof(aws) - 2);
	assert_int_equal(secret_scan(&scanner, jwt, sizeof(jwt) - 1, true), 0);
	assert_int_equal(scanner.found_count, 1);
	assert_int_equal(scanner.found[0].start, 9);
	assert_int_equal(scanner.found[0].end, sizeof(jwt) - 1);
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

static void a_routable_token_of_gitlab_is_hidden_with_its_fields(void **state)
{
	static const struct { const char *after; size_t hidden;
	} rows[] = {
		{ "", 0 },     { ".01.170a5i9pl x", 13 }, { ".0z170a5i9 x", 10 }, { ".so it is", 0 },
		{ ". So", 0 }, { ".01.html", 0 },         { ".html", 0 },
	};
	struct secret_set *set = secret_set_new();
	struct secret_scanner scanner;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[80];
		int length = sprintf(text, "%s%s", "glpat" "-x7Kq2Lm9Vt4Rw8Zb1NdH", rows[i].after);
		assert_int_equal(secret_scan(&scanner, text, (size_t)length, true), 0);
		assert_int_equal(scanner.found_count, 1);
		assert_int_equal(scanner.found[0].end, 26 + rows[i].hidden);
	}
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

static void an_own_secret_is_found_as_json_writes_it(void **state)
{
	static const char value[] = "pass\"word\\of\nmine\x01"
				    "7",
			  text[] = "{\"a\": \"pass\\\"word\\\\of\\nmine\\u00017\"}";
	struct secret_set *set = secret_set_new();
	struct secret_scanner scanner;
	(void)state;
	assert_int_equal(secret_set_add(set, "QUOTED", value, sizeof(value) - 1), 1);
	assert_int_equal(secret_set_count(set), 2);
	secret_scanner_init(&scanner, set, key);
	assert_int_equal(secret_scan(&scanner, text, sizeof(text) - 1, true), 0);
	assert_int_equal(scanner.found_count, 1);
	assert_string_equal(secret_found_name(set, &scanner.found[0]), "QUOTED");
	assert_int_equal(scanner.found[0].start, 7);
	assert_int_equal(scanner.found[0].end, sizeof(text) - 1 - 2);
	/* It is the same secret, and where that is given by name, so is this. */
	unsigned char first[SECRET_FINGERPRINT];
	memcpy(first, scanner.found[0].fingerprint, sizeof(first));
	assert_int_equal(secret_scan(&scanner, value, sizeof(value) - 1, true), 0);
	assert_int_equal(scanner.found_count, 1);
	assert_memory_equal(scanner.found[0].fingerprint, first, sizeof(first));
	assert_int_equal(secret_set_exempt(set, "GIVEN", value, sizeof(value) - 1, true), 0);
	assert_true(secret_set_own(set, 0)->is_exempt && secret_set_own(set, 1)->is_exempt);
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

/* Kept out of what another process gets, in both forms. */
static void a_key_is_left_out_as_json_writes_it_too(void **state)
{
	static const char key_value[] = "gate\"way7Key", value[] = "pass\"word7Zq";
	struct secret_set *set = secret_set_new();
	(void)state;
	assert_int_equal(secret_set_add(set, "BOTH", key_value, sizeof(key_value) - 1), 1);
	assert_int_equal(secret_set_add(set, "MINE", value, sizeof(value) - 1), 1);
	assert_int_equal(secret_set_add_key(set, "KEY", key_value, sizeof(key_value) - 1), 0);
	struct secret_set *others = secret_set_without_keys(set);
	assert_int_equal(secret_set_count(set), 4);
	assert_int_equal(secret_set_count(others), 2);
	assert_string_equal(secret_set_own(others, 0)->name, "MINE");
	assert_ptr_equal(secret_set_plain(others, 1), secret_set_own(others, 0));
	secret_set_unref(others);
	secret_set_unref(set);
}

/* All of as many as there may be are found; of what is beyond, the number is known. */
static void thousands_of_own_secrets_are_found(void **state)
{
	struct secret_set *set = secret_set_new();
	struct secret_scanner scanner;
	char text[64];
	(void)state;
	for (int i = 0; i < SECRET_OWN_COUNT + 3; i++) {
		int length = sprintf(text, "Zx%dq#kQ2vLm7!", 7 * i);
		assert_int_equal(secret_set_add(set, "X", text, (size_t)length), i < SECRET_OWN_COUNT);
	}
	assert_int_equal(secret_set_count(set), SECRET_OWN_COUNT);
	assert_int_equal(secret_set_left_out(set), 3);
	secret_scanner_init(&scanner, set, key);
	for (int i = 0; i < SECRET_OWN_COUNT; i++) {
		int length = sprintf(text, "an Zx%dq#kQ2vLm7!", 7 * i);
		assert_int_equal(secret_scan(&scanner, text, (size_t)length, true), 0);
		assert_int_equal(scanner.found_count, 1);
		assert_int_equal(scanner.found[0].start, 3);
	}
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

static void own_secrets_are_no_plain_words(void **state)
{
	static const struct { const char *value; int added;
	} rows[] = {
		{ "short", 0 },
		{ "elevenbytes", 0 },
		{ "developmentmode", 0 },
		{ "some-plain-words", 0 },
		{ "/usr/share/doc/keys", 0 },
		{ "192.168.100.200", 0 },
		{ "2026-11-18 15:14:18", 0 },
		{ "aaaaaaaaaaaa1", 0 },
		{ "PRODUCTION_VALUE", 0 },
		{ "correct7horse", 1 },
		{ "correct7horse", 0 /* known */ },
		{ "  padded1value#x\n", 1 },
		{ "p@ssword-of-mine", 1 },
		{ "kQ7xLm2Vt9Rw", 1 },
		{ "qwertZuiopasd", 1 },
	};
	struct secret_set *set = secret_set_new();
	size_t added = 0;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int status = secret_set_add(set, "X", rows[i].value, strlen(rows[i].value));
		if (status != rows[i].added)
			fail_msg("%s", rows[i].value);
		added += (size_t)status;
	}
	assert_int_equal(secret_set_count(set), added);
	assert_int_equal(secret_set_own(set, 1)->length, strlen("padded1value#x"));
	secret_set_unref(set);
}

/* Bytes of which many are parts of anchors. */
static void fill(unsigned char *bytes, size_t length)
{
	static const char pieces[] = "sk-aghp_AIzaAKIABEGIxoxbnpm_eyJ0:AMTE3glpa \nRaQ9";
	for (size_t i = 0; i < length; i++)
		bytes[i] = randombytes_uniform(16)
		                   ? (unsigned char)pieces[(i + randombytes_uniform(3)) % (sizeof(pieces) - 1)]
		                   : (unsigned char)randombytes_uniform(256);
}

static void both_searches_report_the_same_places(void **state)
{
	unsigned char bytes[1024];
	size_t places = 0;
	(void)state;
	if (!prefilter_has_avx2())
		skip_cannot("avx2", "the processor has none");
	struct secret_set *set = own_set();
	for (int round = 0; round < 400; round++) {
		size_t length = randombytes_uniform(sizeof(bytes) + 1), at = 0;
		fill(bytes, length);
		/* Behind a place that fits, from each: a search goes on from there. */
		for (;; at++) {
			uint8_t left = 0, right = 0;
			size_t portable = prefilter_next_portable(secret_set_prefilter(set), bytes, length, at, &left);
			assert_int_equal(prefilter_next_avx2(secret_set_prefilter(set), bytes, length, at, &right),
			                 portable);
			if (portable == length)
				break;
			assert_int_equal(left, right);
			places++;
			at = portable;
		}
	}
	assert_true(places > 1000);
	for (int round = 0; round < 2000; round++) {
		size_t length = randombytes_uniform(300), from = length ? randombytes_uniform((uint32_t)length) : 0;
		for (size_t i = 0; i < length; i++)
			bytes[i] = randombytes_uniform(20) ? (unsigned char)"aZ09+/-_"[randombytes_uniform(8)]
			                                   : (unsigned char)randombytes_uniform(256);
		assert_int_equal(run_next_avx2(bytes, length, from), run_next_portable(bytes, length, from));
	}
	for (int byte = 0; byte < 256; byte++) {
		memset(bytes, byte, 64);
		assert_int_equal(run_next_avx2(bytes, 64, 0), run_has((unsigned char)byte) ? 0 : 64);
		assert_int_equal(run_next_portable(bytes, 64, 0), run_has((unsigned char)byte) ? 0 : 64);
	}
	secret_set_unref(set);
}

static double seconds_for(struct secret_scanner *scanner, const char *piece, size_t length)
{
	struct timespec from, to;
	char *text = malloc(length);
	for (size_t i = 0; i < length; i++)
		text[i] = piece[i % strlen(piece)];
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	assert_int_equal(secret_scan(scanner, text, length, true), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	free(text);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* Checks look at no byte of a text more often than this, on the average of all levels. */
#define STEPS_MAX 8

/* Sixteen times the bytes may take sixteen times as long, and not 256; the bound lies between, since clocks are coarse.
 * How large the constant is, the checks' steps show. */
static void near_misses_cost_linear_time(void **state)
{
	static const char *const pieces[] = {
		"sk-",
		"sk-ant-",
		"sk-ant-a1B2c3D4 ",
		"-----BEGIN PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"-----",
		"eyJ",
		"eyJhbGciOiJIUzI1NiJ9.",
		".eyJhbGciOiJIUzI1NiJ9",
		"1",
		"1:A",
		"123456:A",
		"MTE3",
		"MTE3NDM5MjYwODE1NzM5MDI0Nw.",
		"AKIAQ4ZX7MVK2LTR5WBN ",
		"c2stYW50LQ",
		"73",
		"%",
		"%25",
		"%2525",
		"+",
		"A",
		"AAAA\n",
		"BSAk",
		"a\\n",
		"736b2d616e742d",
		"MzEz",
		"3331",
		"aws_secret_access_key=",
		"correct7horse+batter",
		"eyJ-",
		"eyJhbGciOiJIUzI1NiJ9.eyJ-",
		"AKIAQ4ZX7MVK2LTR5WBN+",
		"eyJhbGciOiJIUzI1NiJ9-eyJ-",
	};
	struct secret_set *set = own_set();
	struct secret_scanner scanner;
	(void)state;
	secret_scanner_init(&scanner, set, key);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		double small = seconds_for(&scanner, pieces[i], 16384);
		double large = seconds_for(&scanner, pieces[i], (size_t)16 * 16384);
		print_message("# %s: %.6f s for 16 KiB, %.6f s for 256 KiB\n", pieces[i], small, large);
		if (scanner.steps > STEPS_MAX * UINT64_C(16) * 16384)
			fail_msg("%s: %llu steps for 256 KiB", pieces[i], (unsigned long long)scanner.steps);
	}
	secret_scanner_free(&scanner);
	secret_set_unref(set);
}

static void the_table_is_sound(void **state)
{
	(void)state;
	assert_true(secret_row_count <= SECRET_ROWS);
	for (size_t i = 0; i < secret_row_count; i++) {
		const struct secret_row *row = &secret_rows[i];
		assert_true(row->min <= row->max && *row->name && *row->example && strlen(row->name) < 32);
		assert_true(strlen(row->prefix) < 24);
		if (*row->prefix && row->anchor[3] != '[')
			assert_memory_equal(row->prefix + row->back, row->anchor, 3);
		for (const char *letter = row->name; *letter; letter++)
			assert_true((*letter >= 'a' && *letter <= 'z') || *letter == '-');
		assert_true(secret_kind_known(row->name));
	}
	assert_false(secret_kind_known("own") || secret_kind_known("nothing"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sound),
		cmocka_unit_test(every_kind_is_found_in_every_layer),
		cmocka_unit_test(fingerprints_are_of_the_secret_and_keyed),
		cmocka_unit_test(what_is_public_stays_silent),
		cmocka_unit_test(secrets_are_found_in_the_company_they_keep),
		cmocka_unit_test(adjacent_secrets_are_hidden_both),
		cmocka_unit_test(both_halves_of_an_aws_key_are_one_finding),
		cmocka_unit_test(what_is_remembered_hides_nothing),
		cmocka_unit_test(a_routable_token_of_gitlab_is_hidden_with_its_fields),
		cmocka_unit_test(an_own_secret_is_found_as_json_writes_it),
		cmocka_unit_test(a_key_is_left_out_as_json_writes_it_too),
		cmocka_unit_test(thousands_of_own_secrets_are_found),
		cmocka_unit_test(own_secrets_are_no_plain_words),
		cmocka_unit_test(both_searches_report_the_same_places),
		cmocka_unit_test(near_misses_cost_linear_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
