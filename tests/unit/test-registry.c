/* Sessions on disk: what is kept, what is refused, and that neither races nor kills lose or double anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/remove.h"
#include "session/registry-json.h"
#include "session/workspace.h"

#include <cmocka.h>     /* after ours: it has a macro fail() */

#define KILLS 200
#define RACERS 16
#define LIST(...) { .items = (const char *[]){ __VA_ARGS__, NULL }, \
	.count = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *) }

struct ground {
	char data[64];
	struct arena arena;
};

static int setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->data, "/tmp/cordon-test-registry.XXXXXX");
	assert_non_null(mkdtemp(ground->data));
	*state = ground;
	return 0;
}

static int teardown(void **state)
{
	struct ground *ground = *state;
	int left = remove_tree(AT_FDCWD, ground->data);
	arena_free(&ground->arena);
	free(ground);
	return left;
}

#define MUST(call) do { if ((call) < 0) fail_msg("%s: %s (%s)", #call, err.reason, err.subject); } while (0)

static const char *path_of(struct ground *ground, const char *id, const char *name)
{
	return arena_printf(&ground->arena, "%s/sessions/%s/%s", ground->data, workspace_hash(&ground->arena, id), name);
}

static void put(const char *path, const char *text, size_t length)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

static char *get(struct ground *ground, const char *path, size_t *ret_length)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	char *text = arena_alloc(&ground->arena, 1 << 16);
	*ret_length = fread(text, 1, (1 << 16) - 1, file);
	fclose(file);
	return text;
}

static struct session_record open_one(struct ground *ground, const char *id, bool expect_made)
{
	struct session_record record;
	struct cordon_error err;
	bool made = !expect_made;
	MUST(registry_open(&ground->arena, ground->data, id, NULL, &record, &made, &err));
	assert_int_equal(made, expect_made);
	return record;
}

/* The session's lock; with it comes the record, if there is one. */
static int use(struct ground *ground, const char *id, bool expect_found)
{
	struct session_record record = { 0 };
	struct cordon_error err;
	bool found = !expect_found;
	int fd = -1;
	MUST(registry_use(&ground->arena, ground->data, id, NULL, &fd, &record, &found, &err));
	assert_int_equal(found, expect_found);
	assert_int_equal(found, record.id && !strcmp(record.id, id));
	return fd;
}

/* ---- ids --------------------------------------------------------------------------------------------------------- */

static void ids(void **state)
{
	(void)state;
	char *longest = malloc(SESSION_ID_MAX + 2);
	memset(longest, 'x', SESSION_ID_MAX + 1);
	longest[SESSION_ID_MAX + 1] = '\0';
	struct cordon_error err;
	assert_int_equal(registry_check_id(longest, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	longest[SESSION_ID_MAX] = '\0';
	assert_int_equal(registry_check_id(longest, &err), 0);
	free(longest);
	static const char *const good[] = { "a", "/", "..", ".", "../../etc/passwd", "-c", "--", " ", "a b", "\"'\\$`", "\xc3\xbc",
		"\xf0\x9f\x92\xa9", "\xc2\xa0", "\xe2\x80\xae" };
	static const char *const bad[] = { "", "\n", "a\tb", "\x1b[31m", "\x7f", "\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80",
		"\xf4\x90\x80\x80", "\xc2\x80", "x\xc2\x9f" };
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(registry_check_id(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(registry_check_id(bad[i], NULL), -1);
	/* Every byte by itself: a printable one of ASCII is an id. */
	for (int byte = 1; byte < 256; byte++) {
		char id[] = { (char)byte, '\0' };
		assert_int_equal(registry_check_id(id, NULL) == 0, byte >= 0x20 && byte < 0x7f);
	}
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static void making_and_reading(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	struct stat info;
	bool found = true;
	MUST(registry_read(&ground->arena, ground->data, "../x", &record, &found, &err));
	assert_false(found);
	/* Asking makes nothing. */
	assert_int_equal(rmdir(ground->data), 0);
	assert_int_equal(mkdir(ground->data, 0700), 0);
	record = open_one(ground, "../x", true);
	assert_string_equal(record.id, "../x");
	assert_int_equal(record.state, SESSION_ACTIVE);
	assert_true(!record.why && !record.workspace && !record.has_baseline && !record.grant_count && !record.denial_count);
	assert_string_equal(record.created, record.changed);
	struct session_record again = open_one(ground, "../x", false);
	assert_string_equal(again.created, record.created);
	assert_int_equal(stat(path_of(ground, "../x", "session.json"), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0600);
	assert_int_equal(stat(path_of(ground, "../x", ""), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0700);
}

static const struct capability_set granted = { .fs_read = LIST("/data", "/\xff"), .network = NETWORK_HOSTS,
	.hosts = LIST("a.com:443"), .spawn = true, .limits.wall_ms = UINT64_MAX };

static int fill(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arg, (void)err;
	record->state = SESSION_PAUSED;
	record->why = "three denials\n\"so\"";
	record->denied_in_a_row = 3;
	record->grants = arena_alloc(arena, 2 * sizeof(*record->grants));
	record->grant_count = 2;
	record->grants[0] = (struct session_grant){ .card = "CARD0", .hash = "HASH0", .time = "then", .set = granted };
	record->grants[1] = (struct session_grant){ .card = "CARD1", .hash = "HASH1", .time = "later" };
	struct place place = { "/data", "/link\xff", UINT64_MAX, (uint64_t)INT64_MAX + 1, true };
	struct place file = { .path = "/\xff", .device = 1, .inode = 2 };
	assert_int_equal(places_add(arena, &record->grants[0].places, &place) | places_add(arena, &record->grants[0].places, &file), 0);
	record->denials = arena_alloc(arena, sizeof(*record->denials));
	record->denial_count = 1;
	record->denials[0] = (struct session_denial){ .hash = "HASH", .reason = NULL, .time = "now" };
	return 0;
}

static void everything_is_kept(void **state)
{
	struct ground *ground = *state;
	struct session_record record, first = { .workspace = "/some/\xfe/where", .own_root = "/r\xff", .has_baseline = true }, changed;
	struct cordon_error err;
	bool made, found;
	assert_int_equal(capability_baseline(&ground->arena, false, &first.baseline), 0);
	MUST(registry_open(&ground->arena, ground->data, "s", &first, &record, &made, &err));
	assert_true(made && record.workspace != first.workspace);
	MUST(registry_change(&ground->arena, ground->data, "s", fill, NULL, &changed, &err));
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	char *before = record_write(&changed), *after = record_write(&record);
	assert_string_equal(before, after);
	free(before);
	free(after);
	assert_string_equal(record.workspace, "/some/\xfe/where");
	assert_string_equal(record.own_root, "/r\xff");
	assert_true(record.has_baseline && !record.baseline.spawn && record.baseline.deny.count > 3);
	assert_int_equal(record.state, SESSION_PAUSED);
	assert_string_equal(record.why, "three denials\n\"so\"");
	assert_int_equal(record.denied_in_a_row, 3);
	assert_int_equal(record.grant_count, 2);
	assert_string_equal(record.grants[0].set.fs_read.items[1], "/\xff");
	const struct place *place = &record.grants[0].places.items[0];
	assert_string_equal(place->alias, "/link\xff");
	assert_true(place->device == UINT64_MAX && place->inode == (uint64_t)INT64_MAX + 1 && place->is_directory);
	assert_true(!record.grants[0].places.items[1].alias && !record.grants[0].places.items[1].is_directory);
	assert_string_equal(record.denials[0].hash, "HASH");
	assert_null(record.denials[0].reason);
}

static void what_contradicts(void **state)
{
	struct ground *ground = *state;
	struct session_record record, first = { .workspace = "/a" }, other = { .workspace = "/b" };
	struct session_record strict = { .has_baseline = true }, plain = { .has_baseline = false };
	struct cordon_error err;
	bool made;
	assert_int_equal(capability_baseline(&ground->arena, false, &strict.baseline), 0);
	MUST(registry_open(&ground->arena, ground->data, "s", &first, &record, &made, &err));
	MUST(registry_open(&ground->arena, ground->data, "s", &first, &record, &made, &err));
	MUST(registry_open(&ground->arena, ground->data, "s", &plain, &record, &made, &err));
	assert_string_equal(record.workspace, "/a");
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", &other, &record, &made, &err), -1);
	assert_true(err.class == CORDON_E_INVALID_REQUEST && strstr(err.reason, "workspace"));
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", &strict, &record, &made, &err), -1);
	assert_true(err.class == CORDON_E_INVALID_REQUEST && strstr(err.reason, "capabilities"));
	MUST(registry_open(&ground->arena, ground->data, "t", &strict, &record, &made, &err));
	MUST(registry_open(&ground->arena, ground->data, "t", &strict, &record, &made, &err));
	assert_false(made);
	assert_int_equal(registry_open(&ground->arena, ground->data, "t", &first, &record, &made, &err), -1);
	assert_int_equal(capability_baseline(&ground->arena, true, &strict.baseline), 0);
	assert_int_equal(registry_open(&ground->arena, ground->data, "t", &strict, &record, &made, &err), -1);
}

static int answer(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena;
	record->why = "changed";
	if (*(int *)arg < 0)
		err->class = CORDON_E_SESSION_ENDED;
	return *(int *)arg;
}

static void changing(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	int answers[] = { 1, -1, 0 };
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", answer, &answers[2], &record, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	open_one(ground, "s", true);
	MUST(registry_change(&ground->arena, ground->data, "s", answer, &answers[0], &record, &err));
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", answer, &answers[1], &record, &err), -1);
	assert_int_equal(err.class, CORDON_E_SESSION_ENDED);
	assert_null(open_one(ground, "s", false).why);
	MUST(registry_change(&ground->arena, ground->data, "s", answer, &answers[2], NULL, &err));
	assert_string_equal(open_one(ground, "s", false).why, "changed");
}

static int refuse_making(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)arg;
	assert_string_equal(record->id, "s");
	err->class = CORDON_E_AUDIT_UNAVAILABLE;
	return -1;
}

static void a_say_in_the_making(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	bool made, found;
	assert_int_equal(registry_make(&ground->arena, ground->data, "s", NULL, refuse_making, NULL, &record, &made, &err), -1);
	assert_int_equal(err.class, CORDON_E_AUDIT_UNAVAILABLE);
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	assert_false(found);
	/* Only the maker is asked. */
	open_one(ground, "s", true);
	MUST(registry_make(&ground->arena, ground->data, "s", NULL, refuse_making, NULL, &record, &made, &err));
	assert_false(made);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static void must_refuse(struct ground *ground, const char *what)
{
	struct session_record record;
	struct cordon_error err;
	bool flag;
	int write_it = 0;
	memset(&err, 0, sizeof(err));
	if (registry_read(&ground->arena, ground->data, "s", &record, &flag, &err) == 0)
		fail_msg("read in spite of: %s", what);
	assert_true(*err.reason && *err.subject && *err.remediation && err.class == CORDON_E_INTERNAL);
	assert_int_equal(registry_open(&ground->arena, ground->data, "s", NULL, &record, &flag, &err), -1);
	assert_int_equal(registry_change(&ground->arena, ground->data, "s", answer, &write_it, &record, &err), -1);
}

static void damaged_records(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	size_t length, now;
	open_one(ground, "s", true);
	open_one(ground, "other", true);
	MUST(registry_change(&ground->arena, ground->data, "s", fill, NULL, NULL, &err));
	const char *path = path_of(ground, "s", "session.json");
	char *good = get(ground, path, &length), *text = arena_alloc(&ground->arena, length + 100);
	assert_true(length > 200);
	/* Cut anywhere; what is refused stays as it is. */
	for (size_t cut = 0; cut < length; cut++) {
		put(path, good, cut);
		must_refuse(ground, "a cut");
		get(ground, path, &now);
		assert_int_equal(now, cut);
	}
	/* One byte more, and one that is a NUL. */
	memcpy(text, good, length);
	text[length] = 'x';
	put(path, text, length + 1);
	must_refuse(ground, "a byte more");
	text[length / 2] = '\0';
	put(path, text, length);
	must_refuse(ground, "a NUL");
	static const char *const other[] = { "{}", "[]", "null", "\xff\xfe", "{\"version\":2}", "{\"version\":1}", "{\"version\":\"1\"}" };
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		put(path, other[i], strlen(other[i]));
		must_refuse(ground, other[i]);
	}
	/* A key more, a key twice. */
	snprintf(text, length + 100, "{\"more\":1,%s", good + 1);
	put(path, text, strlen(text));
	must_refuse(ground, "a key more");
	snprintf(text, length + 100, "{\"version\":1,%s", good + 1);
	put(path, text, strlen(text));
	must_refuse(ground, "a key twice");
	char *others = get(ground, path_of(ground, "other", "session.json"), &now);
	put(path, others, now);
	must_refuse(ground, "the record of another");
	put(path, good, length);
	assert_string_equal(open_one(ground, "s", false).denials[0].hash, "HASH");
}

static void other_things_in_its_place(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	bool found;
	open_one(ground, "s", true);
	const char *path = path_of(ground, "s", "session.json"), *aside = path_of(ground, "s", "aside");
	assert_int_equal(chmod(path, 0620), 0);
	must_refuse(ground, "others may write");
	assert_int_equal(chmod(path, 0600), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 0), 0);
		must_refuse(ground, "another owner");
		assert_int_equal(chown(path, 0, 0), 0);
	}
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(symlink("aside", path), 0);
	must_refuse(ground, "a link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	must_refuse(ground, "a pipe");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	must_refuse(ground, "a directory");
	assert_int_equal(rmdir(path), 0);
	put(path, "", 0);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	must_refuse(ground, "a huge file");
	assert_int_equal(rename(aside, path), 0);
	open_one(ground, "s", false);
	/* The directory itself. */
	const char *directory = path_of(ground, "s", ""), *moved = arena_printf(&ground->arena, "%s/moved", ground->data);
	char *trimmed = arena_strndup(&ground->arena, directory, strlen(directory) - 1);
	assert_int_equal(rename(trimmed, moved), 0);
	assert_int_equal(symlink("../moved", trimmed), 0);
	must_refuse(ground, "a linked directory");
	assert_int_equal(unlink(trimmed), 0);
	put(trimmed, "", 0);
	must_refuse(ground, "a file for a directory");
	assert_int_equal(unlink(trimmed), 0);
	assert_int_equal(rename(moved, trimmed), 0);
	assert_int_equal(chmod(trimmed, 0770), 0);
	must_refuse(ground, "a directory others may write to");
	assert_int_equal(chmod(trimmed, 0700), 0);
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	assert_true(found);
}

static void what_the_dead_left(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	int write_it = 0;
	/* A writer that was killed. */
	open_one(ground, "s", true);
	put(path_of(ground, "s", "session.json.new"), "{\"ver", 5);
	open_one(ground, "s", false);
	MUST(registry_change(&ground->arena, ground->data, "s", answer, &write_it, &record, &err));
	assert_int_equal(access(path_of(ground, "s", "session.json.new"), F_OK), -1);
	/* A remover that was killed after the record was gone. */
	put(path_of(ground, "s", "approval"), "old", 3);
	assert_int_equal(unlink(path_of(ground, "s", "session.json")), 0);
	assert_null(open_one(ground, "s", true).why);
	assert_int_equal(access(path_of(ground, "s", "approval"), F_OK), -1);
}

/* ---- listing, using, removing ------------------------------------------------------------------------------------ */

struct listed {
	size_t whole, damaged;
	bool stop;
};

static int count(void *arg, const struct session_record *record, const char *name)
{
	struct listed *listed = arg;
	assert_int_equal(strlen(name), 32);
	*(record ? &listed->whole : &listed->damaged) += 1;
	return listed->stop;
}

static void listing(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	struct listed none = { 0 }, all = { 0 }, one = { .stop = true };
	int fd;
	MUST(registry_list(ground->data, count, &none, &err));
	assert_true(!none.whole && !none.damaged);
	for (int i = 0; i < 20; i++)
		open_one(ground, arena_printf(&ground->arena, "s%d", i), true);
	put(path_of(ground, "s3", "session.json"), "x", 1);
	size_t length;
	char *text = get(ground, path_of(ground, "s4", "session.json"), &length);
	put(path_of(ground, "s5", "session.json"), text, length);
	/* In the making. */
	fd = use(ground, "half", false);
	close(fd);
	put(arena_printf(&ground->arena, "%s/sessions/stray", ground->data), "", 0);
	MUST(registry_list(ground->data, count, &all, &err));
	assert_int_equal(all.whole, 18);
	assert_int_equal(all.damaged, 2);
	MUST(registry_list(ground->data, count, &one, &err));
	assert_int_equal(one.whole + one.damaged, 1);
}

static void using_and_removing(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	int first, second, alone;
	assert_int_equal(registry_exclude(ground->data, "s", &alone, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	assert_int_equal(registry_remove(ground->data, "s", &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	first = use(ground, "s", false);
	open_one(ground, "s", true);
	second = use(ground, "s", true);
	close(first);
	assert_int_equal(registry_exclude(ground->data, "s", &alone, &err), -1);
	assert_int_equal(err.class, CORDON_E_SESSION_BUSY);
	close(second);
	MUST(registry_exclude(ground->data, "s", &alone, &err));
	MUST(registry_remove(ground->data, "s", &err));
	close(alone);
	assert_int_equal(access(path_of(ground, "s", ""), F_OK), -1);
	open_one(ground, "s", true);
}

static void using_says_what_disagrees(void **state)
{
	struct ground *ground = *state;
	struct session_record record = { 0 };
	const struct session_record first = { .workspace = "/elsewhere" };
	struct cordon_error err;
	bool found = false;
	int fd = -1, alone = -1;
	open_one(ground, "s", true);
	assert_int_equal(registry_use(&ground->arena, ground->data, "s", &first, &fd, &record, &found, &err), -1);
	assert_int_equal(err.class, CORDON_E_INVALID_REQUEST);
	put(path_of(ground, "s", "session.json"), "x", 1);
	assert_int_equal(registry_use(&ground->arena, ground->data, "s", NULL, &fd, &record, &found, &err), -1);
	/* Neither holds it. */
	assert_int_equal(fd, -1);
	MUST(registry_exclude(ground->data, "s", &alone, &err));
	close(alone);
}

/* ---- races and kills --------------------------------------------------------------------------------------------- */

static void wait_for_all(int count_of)
{
	for (int status; count_of; count_of--) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static int count_up(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)arg, (void)err;
	record->denied_in_a_row++;
	return 0;
}

/* The makers are counted in the pipe; and of changes none is lost. */
static void one_of_many_makes_it(void **state)
{
	struct ground *ground = *state;
	int gate[2], makers[2];
	for (int round = 0; round < 20; round++) {
		const char *id = arena_printf(&ground->arena, "race %d", round);
		assert_int_equal(pipe(gate) | pipe(makers), 0);
		for (int i = 0; i < RACERS; i++) {
			if (fork())
				continue;
			struct session_record record;
			struct arena arena = { 0 };
			bool made = false;
			char go;
			close(gate[1]);
			(void)!read(gate[0], &go, 1);
			int failed = registry_open(&arena, ground->data, id, NULL, &record, &made, NULL) < 0 ||
			             registry_change(&arena, ground->data, id, count_up, NULL, NULL, NULL) < 0 ||
			             (made && write(makers[1], "m", 1) != 1);
			_exit(failed);
		}
		close(gate[0]);
		close(gate[1]);
		close(makers[1]);
		wait_for_all(RACERS);
		char made[RACERS];
		assert_int_equal(read(makers[0], made, sizeof(made)), 1);
		close(makers[0]);
		assert_int_equal(open_one(ground, id, false).denied_in_a_row, RACERS);
	}
}

/* Made, used and removed by all at once: every call succeeds or says that the session is missing or in use. */
static bool expected(const struct cordon_error *err)
{
	return err->class == CORDON_E_SESSION_BUSY || (err->class == CORDON_E_INVALID_REQUEST && strstr(err->reason, "no such"));
}

static int live_and_let_die(const char *data, unsigned seed)
{
	struct cordon_error err;
	for (int i = 0; i < 300; i++) {
		struct arena arena = { 0 };
		struct session_record record;
		int fd = -1;
		bool flag = false;
		int result = 0;
		switch (rand_r(&seed) % 4) {
		case 0:
			/* A session that is in use stays. */
			result = registry_use(&arena, data, "s", NULL, &fd, &record, &flag, &err);
			if (result == 0 && !flag)
				result = registry_open(&arena, data, "s", NULL, &record, &flag, &err);
			if (result == 0 && (registry_read(&arena, data, "s", &record, &flag, &err) < 0 || !flag))
				return 2;
			break;
		case 1: result = registry_open(&arena, data, "s", NULL, &record, &flag, &err); break;
		case 2: result = registry_change(&arena, data, "s", count_up, NULL, NULL, &err); break;
		case 3: result = registry_exclude(data, "s", &fd, &err) < 0 ? -1 : registry_remove(data, "s", &err); break;
		}
		if (fd >= 0)
			close(fd);
		arena_free(&arena);
		if (result < 0 && !expected(&err)) {
			fprintf(stderr, "%s: %s\n", err.reason, err.subject);
			return 3;
		}
	}
	return 0;
}

static void removing_and_opening_at_once(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	bool found;
	for (unsigned i = 0; i < 8; i++)
		if (fork() == 0)
			_exit(live_and_let_die(ground->data, i));
	wait_for_all(8);
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	open_one(ground, "s", !found);
}

static int note_denial(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arg, (void)err;
	struct session_denial *denials = arena_alloc(arena, (record->denial_count + 1) * sizeof(*denials));
	if (record->denial_count)
		memcpy(denials, record->denials, record->denial_count * sizeof(*denials));
	denials[record->denial_count] = (struct session_denial){ "h", arena_printf(arena, "%zu", record->denial_count), "t" };
	record->denials = denials;
	record->denial_count++;
	return 0;
}

/* Killed at any moment: the record is there and whole, and no change is lost that was acknowledged. */
static void kills(void **state)
{
	struct ground *ground = *state;
	size_t *acknowledged = mmap(NULL, sizeof(*acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned seed = 7;
	assert_true(acknowledged != MAP_FAILED);
	for (int round = 0; round < KILLS; round++) {
		/* A new session now and then, so that making is hit as well. */
		const char *id = arena_printf(&ground->arena, "s%d", round / 20);
		if (round % 20 == 0)
			*acknowledged = 0;
		pid_t pid = fork();
		if (pid == 0)
			for (;;) {
				struct arena arena = { 0 };
				struct session_record record;
				bool made;
				if (registry_open(&arena, ground->data, id, NULL, &record, &made, NULL) < 0 ||
				    registry_change(&arena, ground->data, id, note_denial, NULL, &record, NULL) < 0)
					_exit(1);
				*acknowledged = record.denial_count;
				arena_free(&arena);
			}
		struct timespec pause = { .tv_nsec = rand_r(&seed) % 3000000 };
		nanosleep(&pause, NULL);
		int status;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		struct session_record record = { 0 };
		struct cordon_error err;
		bool found;
		MUST(registry_read(&ground->arena, ground->data, id, &record, &found, &err));
		assert_true(found || *acknowledged == 0);
		assert_true(!found || (record.denial_count >= *acknowledged && record.denial_count <= *acknowledged + 1));
		for (size_t i = 0; found && i < record.denial_count; i++)
			assert_int_equal(strtoul(record.denials[i].reason, NULL, 10), i);
		if (found)
			*acknowledged = record.denial_count;
	}
	munmap(acknowledged, sizeof(*acknowledged));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids),
#define WITH_GROUND(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		WITH_GROUND(making_and_reading), WITH_GROUND(everything_is_kept), WITH_GROUND(what_contradicts),
		WITH_GROUND(changing), WITH_GROUND(a_say_in_the_making), WITH_GROUND(damaged_records),
		WITH_GROUND(other_things_in_its_place), WITH_GROUND(what_the_dead_left), WITH_GROUND(listing),
		WITH_GROUND(using_and_removing), WITH_GROUND(using_says_what_disagrees), WITH_GROUND(one_of_many_makes_it),
		WITH_GROUND(removing_and_opening_at_once), WITH_GROUND(kills),
	};
	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
