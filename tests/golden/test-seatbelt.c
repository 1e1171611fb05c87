/* Profiles as macOS's sandbox-exec takes them: the texts, compared with expected/; and what they decide by our own
 * model of the language (tests/support/seatbelt-model.h), which is not Apple's. A group of rules that is left out,
 * inverted or moved is noticed.
 *
 *     GOLDEN_UPDATE=1 build/tests/golden/test-seatbelt      writes them anew; read the difference before committing it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "seatbelt-model.h"
#include "seatbelt-profiles.h"

static struct capability_set capabilities;

static struct places places_of(struct arena *arena, const char *const *paths, size_t most)
{
	struct places places = { 0 };
	for (size_t i = 0; i < most && paths[i]; i++) {
		size_t length = strlen(paths[i]);
		bool directory = paths[i][length - 1] == '/';
		struct place place = { .path = arena_strndup(arena, paths[i], length - directory),
			               .is_directory = directory };
		assert_int_equal(places_add(arena, &places, &place), 0);
	}
	return places;
}

static struct strings strings_of(struct arena *arena, const char *const *texts, size_t most)
{
	struct strings list = { 0 };
	for (size_t i = 0; i < most && texts[i]; i++)
		assert_int_equal(strings_add(arena, &list, texts[i]), 0);
	return list;
}

static int render(struct arena *arena, const struct seatbelt_request *request, struct seatbelt *ret_seatbelt)
{
	struct profile profile;
	const char *argv[] = { "make" };
	if (request->proxy)
		return seatbelt_render_proxy(arena, request->proxy, ret_seatbelt);
	assert_int_equal(capability_baseline(arena, !request->no_spawn, &capabilities), 0);
	capabilities.network = request->network;
	capabilities.programs = strings_of(arena, request->programs, ARRAY_SIZE(request->programs));
	struct profile_input input = {
		.abilities = { .driver = "seatbelt" },
		.capabilities = &capabilities,
		.view = request->view,
		.session_id = "s",
		.sandbox_id = "s",
		.workspace = { .path = request->workspace ? request->workspace : WORK, .is_directory = true },
		.cwd = request->workspace ? request->workspace : WORK,
		.home = "/Users/ada/.local/share/cordon/homes/h",
		.home_source = "/Users/ada/.local/share/cordon/homes/h",
		.scratch = "/Users/ada/.local/share/cordon/scratch/t",
		.data_dir = DATA,
		.reads = places_of(arena, request->reads, ARRAY_SIZE(request->reads)),
		.writes = places_of(arena, request->writes, ARRAY_SIZE(request->writes)),
		.masked = places_of(arena, request->masked, ARRAY_SIZE(request->masked)),
		.sockets = places_of(arena, request->sockets, ARRAY_SIZE(request->sockets)),
		.devices = places_of(arena, request->devices, ARRAY_SIZE(request->devices)),
		.protect = strings_of(arena, request->protect, ARRAY_SIZE(request->protect)),
		.argv = { .items = argv, .count = 1 },
	};
	assert_int_equal(profile_make(arena, &input, &profile), 0);
	const struct seatbelt_facts facts = { .proxy_port = (uint16_t)request->port, .tty = request->tty };
	return seatbelt_render(arena, &profile, &facts, ret_seatbelt);
}

static const struct seatbelt_request *request_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(seatbelt_requests); i++)
		if (!strcmp(seatbelt_requests[i].name, name))
			return &seatbelt_requests[i];
	fail_msg("there is no request %s", name);
	return NULL;
}

/* ---- the texts --------------------------------------------------------------------------------------------------- */

static void test_text(void **state)
{
	const struct seatbelt_request *request = *state;
	struct arena arena = { 0 };
	struct seatbelt seatbelt;
	char path[512], *wanted = NULL;
	size_t capacity = 0;
	assert_int_equal(render(&arena, request, &seatbelt), 0);
	const char *text = arena_printf(&arena, "%s", seatbelt.text);
	for (size_t i = 0; i < seatbelt.count; i++)
		text = arena_printf(&arena, "%s; %s=%s\n", text, seatbelt.parameters[i].name,
		                    seatbelt.parameters[i].value);
	snprintf(path, sizeof(path), TESTS_DIR "/golden/expected/%s.sb", request->name);
	if (getenv("GOLDEN_UPDATE")) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
	} else {
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		assert_true(getdelim(&wanted, &capacity, '\0', file) > 0);
		fclose(file);
		assert_string_equal(text, wanted);
		free(wanted);
	}
	arena_free(&arena);
}

/* ---- what they decide -------------------------------------------------------------------------------------------- */

#include "seatbelt-cases.h"

static size_t count_wrong(const struct seatbelt *seatbelt, const char *name, bool tell)
{
	size_t wrong = 0;
	for (size_t i = 0; i < ARRAY_SIZE(decisions); i++) {
		const struct decision *decision = &decisions[i];
		if (strcmp(decision->request, name))
			continue;
		enum seatbelt_answer answer = seatbelt_decide(seatbelt, decision->operation, decision->subject);
		bool right = answer == (decision->allowed ? SEATBELT_ALLOWED : SEATBELT_DENIED);
		wrong += !right;
		if (!right && tell)
			print_message("%s: %s %s should be %s\n", name, decision->operation, decision->subject,
			              decision->allowed ? "allowed" : "denied");
	}
	return wrong;
}

static void test_decisions(void **state)
{
	size_t wrong = 0, allowed = 0;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seatbelt_requests); i++) {
		struct arena arena = { 0 };
		struct seatbelt seatbelt;
		assert_int_equal(render(&arena, &seatbelt_requests[i], &seatbelt), 0);
		wrong += count_wrong(&seatbelt, seatbelt_requests[i].name, true);
		arena_free(&arena);
	}
	for (size_t i = 0; i < ARRAY_SIZE(decisions); i++) {
		request_named(decisions[i].request);
		allowed += decisions[i].allowed;
	}
	assert_int_equal(wrong, 0);
	assert_true(ARRAY_SIZE(decisions) >= 120);
	assert_true(allowed >= 40 && ARRAY_SIZE(decisions) - allowed >= 40);
}

/* ---- planted mistakes -------------------------------------------------------------------------------------------- */

enum mistake { OMITTED, INVERTED, MOVED_FIRST };

static void add_text(char *to, const char *from, size_t length)
{
	strncat(to, from, length);
}

/* The text with that done to each statement that contains `within`; NULL: there is none. */
static char *planted(const char *text, const char *within, enum mistake mistake)
{
	size_t room = 2 * strlen(text) + 64;
	char *front = calloc(1, room), *back = calloc(1, room);
	size_t begin = strcspn(text, "\n") + 1;         /* the version */
	begin += strcspn(text + begin, "\n") + 1;        /* what is so by default */
	bool found = false;
	assert_non_null(front);
	assert_non_null(back);
	add_text(front, text, begin);
	for (const char *at = text + begin; *at;) {
		const char *end = at + 1;
		while (*end && !(end[-1] == '\n' && *end == '('))
			end++;
		size_t length = (size_t)(end - at);
		bool hit = memmem(at, length, within, strlen(within)) != NULL, allows = !strncmp(at, "(allow", 6);
		found |= hit;
		if (hit && mistake == INVERTED) {
			strcat(back, allows ? "(deny" : "(allow");
			add_text(back, at + (allows ? 6 : 5), length - (allows ? 6 : 5));
		} else if (!hit || mistake == MOVED_FIRST) {
			add_text(hit ? front : back, at, length);
		}
		at = end;
	}
	strcat(front, back);
	free(back);
	if (!found) {
		free(front);
		return NULL;
	}
	return front;
}

static void notice(const struct seatbelt *right, const char *request, const char *within, enum mistake mistake)
{
	static const char *const names[] = { "left out", "inverted", "moved to the front" };
	struct seatbelt wrong = *right;
	char *changed = planted(right->text, within, mistake);
	if (!changed)
		fail_msg("%s has no rule with %s", request, within);
	wrong.text = changed;
	if (!count_wrong(&wrong, request, false))
		fail_msg("%s: nothing is noticed where %s is %s", request, within, names[mistake]);
	free(changed);
}

/* A group of rules that is left out, says the opposite, or stands where a later one wins, changes what some case says.
 */
static void test_planted(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		struct arena arena = { 0 };
		struct seatbelt seatbelt;
		assert_int_equal(render(&arena, request_named(mistakes[i].request), &seatbelt), 0);
		notice(&seatbelt, mistakes[i].request, mistakes[i].within, OMITTED);
		notice(&seatbelt, mistakes[i].request, mistakes[i].within, INVERTED);
		if (mistakes[i].first)
			notice(&seatbelt, mistakes[i].request, mistakes[i].within, MOVED_FIRST);
		arena_free(&arena);
	}
}

static void test_hosts_need_a_port(void **state)
{
	(void)state;
	struct arena arena = { 0 };
	struct seatbelt seatbelt;
	const struct seatbelt_request request = { .name = "x", .network = NETWORK_HOSTS };
	assert_int_equal(render(&arena, &request, &seatbelt), -2);
	arena_free(&arena);
}

static void test_model_is_strict(void **state)
{
	(void)state;
	static const char *const broken[] = { "(allow file-read* (regex \"x\"))", "(permit default)",
		                              "(allow file-read*", "(allow default) x",
		                              "(allow file-read* (literal (param \"NONE\")))" };
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct seatbelt seatbelt = { .text = broken[i] };
		assert_int_equal(seatbelt_decide(&seatbelt, "file-read-data", "/x"), SEATBELT_UNREADABLE);
	}
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(seatbelt_requests) + 4];
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(seatbelt_requests); i++)
		tests[count++] = (struct CMUnitTest){ seatbelt_requests[i].name, test_text, NULL, NULL,
			                              (void *)&seatbelt_requests[i] };
	tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_decisions);
	tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_planted);
	tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_hosts_need_a_port);
	tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_model_is_strict);
	return _cmocka_run_group_tests("seatbelt", tests, count, NULL, NULL);
}
