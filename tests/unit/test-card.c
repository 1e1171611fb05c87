/* Cards: what is on them, that the same question has the same hash and every other question another, that nothing on
 * them deceives or is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/visible.h"
#include "policy/card.h"

#include <cmocka.h>

struct world {
	struct arena arena;
	struct strings argv;
	struct capability_set excess, ceiling;
	struct places places;
	struct card_question question;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	assert_int_equal(strings_add(&world->arena, &world->argv, "make"), 0);
	assert_int_equal(strings_add(&world->arena, &world->argv, "two words"), 0);
	assert_int_equal(strings_add(&world->arena, &world->excess.fs_write, "/srv/out"), 0);
	world->question = (struct card_question){ .session = "agent 7", .tool = "run", .program = "/usr/bin/make",
		.cwd = "/home/me/project", .argv = &world->argv, .excess = &world->excess, .ceiling = &world->ceiling,
		.places = &world->places };
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	arena_free(&world->arena);
	free(world);
	return 0;
}

static struct card make(struct world *world)
{
	struct card card;
	struct cordon_error err;
	assert_int_equal(card_make(&world->arena, &world->question, &card, &err), 0);
	return card;
}

static void test_text(void **state)
{
	struct world *world = *state;
	assert_string_equal(make(world).text,
	                    "A command asks for more than its session may do without approval.\n"
	                    "  session    'agent 7'\n"
	                    "  tool       run\n"
	                    "  program    /usr/bin/make\n"
	                    "  command    make 'two words'\n"
	                    "  directory  /home/me/project\n"
	                    "  asks for   write /srv/out\n");
}

static void test_everything_asked_for(void **state)
{
	struct world *world = *state;
	struct arena *arena = &world->arena;
	struct capability_set *set = &world->excess;
	assert_int_equal(strings_add(arena, &set->fs_read, "/data/link"), 0);
	assert_int_equal(strings_add(arena, &set->programs, "/opt/x y"), 0);
	assert_int_equal(strings_add(arena, &set->devices, "/dev/dri"), 0);
	assert_int_equal(strings_add(arena, &set->sockets, "/run/docker.sock"), 0);
	assert_int_equal(strings_add(arena, &set->deny, "**/.env"), 0);
	assert_int_equal(places_add(arena, &world->places, &(struct place){ .path = "/real", .alias = "/data/link" }),
	                 0);
	set->network = NETWORK_ALL;
	set->spawn = true;
	set->limits = (struct limits){ UINT64_C(8) << 30, 200, 128, 3, 90000, UINT64_MAX, 1 << 20, 4096, 1536 << 10 };
	world->ceiling.limits = (struct limits){ .memory_bytes = UINT64_C(2) << 30, .wall_ms = 60000, .processes = 64 };
	world->question.rule = "a rule: /etc/cordon/config.toml:3:1";
	world->question.any_program = true;
	const char *text = make(world).text;
	assert_string_equal(strstr(text, "  asks for"),
	                    "  asks for   read /data/link (leads to /real)\n"
	                    "             write /srv/out\n"
	                    "             start the program '/opt/x y'\n"
	                    "             use the device /dev/dri\n"
	                    "             connect to the socket /run/docker.sock\n"
	                    "             network: all of the host's\n"
	                    "             start other programs\n"
	                    "             start any program, not only the listed ones\n"
	                    "             memory 8 GiB (2 GiB without asking)\n"
	                    "             processor time 200 %\n"
	                    "             processes 128 (64 without asking)\n"
	                    "             disk 3 bytes\n"
	                    "             time to run 90 s (1 min without asking)\n"
	                    "             standard output without limit\n"
	                    "             standard error 1 MiB\n"
	                    "             open files 4096\n"
	                    "             temporary files 1536 KiB\n"
	                    "  because of 'a rule: /etc/cordon/config.toml:3:1'\n");
}

static void test_a_rule_alone(void **state)
{
	struct world *world = *state;
	world->excess = (struct capability_set){ 0 };
	world->question.session = "";
	world->question.rule = "ask";
	const char *text = make(world).text;
	assert_null(strstr(text, "session"));
	assert_non_null(strstr(text, "  asks for   nothing beyond its grants: a rule requires approval"));
}

static void test_hosts(void **state)
{
	struct world *world = *state;
	world->excess = (struct capability_set){ .network = NETWORK_HOSTS };
	assert_int_equal(strings_add(&world->arena, &world->excess.hosts, "b.example:443"), 0);
	assert_int_equal(strings_add(&world->arena, &world->excess.hosts, "a.example:80"), 0);
	assert_string_equal(strstr(make(world).text, "  asks for"), "  asks for   connect to a.example:80\n"
	                                                            "             connect to b.example:443\n");
}

/* The content is valid JSON that says all of it; its hash is what the card says. */
static void test_content(void **state)
{
	struct world *world = *state;
	char hash[CARD_HASH_SIZE];
	world->argv.items[1] = "\xe2\x80\xae\xff";
	struct card card = make(world);
	card_hash(card.content, hash);
	assert_string_equal(hash, card.hash);
	assert_int_equal(strlen(hash), 64);
	json_t *content = json_loads(card.content, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(content);
	assert_string_equal(json_string_value(json_object_get(content, "text")), card.text);
	assert_string_equal(json_string_value(json_object_get(content, "session")), "agent 7");
	json_t *argv = json_object_get(content, "argv");
	assert_string_equal(json_string_value(json_array_get(argv, 0)), "make");
	assert_string_equal(json_string_value(json_object_get(json_array_get(argv, 1), "hex")), "e280aeff");
	json_t *asked = json_object_get(content, "asks_for");
	assert_string_equal(json_string_value(json_array_get(json_object_get(asked, "fs_write"), 0)), "/srv/out");
	assert_null(json_object_get(asked, "deny"));
	json_decref(content);
}

static const char *const hostile[] = {
	"\x1b[2J\x1b[H",
	"\x9b"
	"2J",
	"\xc2\x9b"
	"2J",
	"a\nb",
	"a\rb",
	"\xe2\x80\xae"
	"gpj.exe",
	"\xe2\x81\xa6",
	"\xe2\x80\x8f",
	"\xd8\x9c",
	"\xe2\x80\x8b",
	"\xef\xbb\xbf",
	"\xf3\xa0\x81\x81",
	"\xe2\x80\xa8",
	"\xe2\x80\xa9",
	"\x7f",
	"\x08\x08\x08",
	"\xff\xfe",
	"\xed\xa0\x80",
	"x\n  asks for   nothing\n",
	"'; rm -rf / #",
	"$(reboot)",
	"\\x1b",
	"\xcc\xb6",
	"\xc2\xa0",
	"",
};

/* Whatever is put where: the text is printable, has no line that was not ours, and no two are the same. */
static void test_hostile(void **state)
{
	struct world *world = *state;
	const char **const slots[] = { &world->question.session, &world->question.tool, &world->question.program,
		                       &world->question.cwd,     &world->question.rule, &world->argv.items[0],
		                       &world->argv.items[1] };
	static char hashes[ARRAY_SIZE(slots) * ARRAY_SIZE(hostile)][CARD_HASH_SIZE];
	size_t count = 0;
	world->question.rule = "rule";
	for (size_t slot = 0; slot < ARRAY_SIZE(slots); slot++) {
		const char *before = *slots[slot];
		for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
			size_t lines = 0;
			*slots[slot] = hostile[i];
			struct card card = make(world);
			for (size_t at = 0, all = strlen(card.text); at < all;) {
				struct visible seen = visible_next(card.text + at, all - at);
				lines += seen.code == '\n';
				assert_true(seen.is_plain || seen.code == '\n');
				at += seen.length;
			}
			assert_int_equal(lines, *world->question.session ? 8 : 7);
			for (size_t at = 0, all = strlen(card.content); at < all;) {
				struct visible seen = visible_next(card.content + at, all - at);
				assert_true(seen.is_plain);
				at += seen.length;
			}
			for (size_t j = 0; j < count; j++)
				assert_string_not_equal(hashes[j], card.hash);
			memcpy(hashes[count++], card.hash, CARD_HASH_SIZE);
		}
		*slots[slot] = before;
	}
}

static void test_the_same_hash(void **state)
{
	struct world *world = *state;
	struct arena *arena = &world->arena;
	assert_int_equal(strings_add(arena, &world->excess.fs_read, "/b"), 0);
	assert_int_equal(strings_add(arena, &world->excess.fs_read, "/a"), 0);
	struct card first = make(world);
	world->excess.fs_read = (struct strings){ 0 };
	assert_int_equal(strings_add(arena, &world->excess.fs_read, "/a/../a/"), 0);
	assert_int_equal(strings_add(arena, &world->excess.fs_read, "/b"), 0);
	assert_int_equal(strings_add(arena, &world->excess.fs_read, "/b/c"), 0);
	assert_string_equal(make(world).hash, first.hash);
	world->argv.items[1] = "two  words";
	assert_string_not_equal(make(world).hash, first.hash);
	world->argv.items[1] = "two words";
	world->excess.limits.stdout_bytes = UINT64_MAX;
	struct card other = make(world);
	assert_string_not_equal(other.hash, first.hash);
	assert_true(other.excess.limits.stdout_bytes == UINT64_MAX);
}

/* Words cannot be moved from one argument to the next. */
static void test_arguments_stay_apart(void **state)
{
	struct world *world = *state;
	world->argv.items[0] = "a' b";
	world->argv.items[1] = "c";
	struct card first = make(world);
	world->argv.items[0] = "a'";
	world->argv.items[1] = "b c";
	assert_string_not_equal(make(world).hash, first.hash);
}

static void test_too_long(void **state)
{
	struct world *world = *state;
	struct card card;
	struct cordon_error err;
	char *text = arena_alloc(&world->arena, CARD_TEXT_MAX + 1);
	memset(text, 'x', CARD_TEXT_MAX);
	world->argv.items[1] = text;
	assert_int_equal(card_make(&world->arena, &world->question, &card, &err), -1);
	assert_int_equal(err.class, CORDON_E_CAPABILITY_DENIED);
	assert_string_equal(err.boundary, "approval");
	text[CARD_TEXT_MAX - 1024] = '\0';
	assert_non_null(strstr(make(world).text, text));
}

static void test_relative_paths(void **state)
{
	struct world *world = *state;
	struct card card;
	struct cordon_error err;
	assert_int_equal(strings_add(&world->arena, &world->excess.fs_read, "etc"), 0);
	assert_int_equal(card_make(&world->arena, &world->question, &card, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_string_equal(err.subject, "etc");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_text),          TEST(test_everything_asked_for),
		TEST(test_a_rule_alone),  TEST(test_hosts),
		TEST(test_content),       TEST(test_hostile),
		TEST(test_the_same_hash), TEST(test_arguments_stay_apart),
		TEST(test_too_long),      TEST(test_relative_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
