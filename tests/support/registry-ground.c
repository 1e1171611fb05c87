/* See registry-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/remove.h"
#include "registry-ground.h"
#include "session/workspace.h"

#include <cmocka.h>     /* after ours: it has a macro fail() */

#define LIST(...) { .items = (const char *[]){ __VA_ARGS__, NULL }, \
	.count = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *) }

int ground_setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	strcpy(ground->data, "/tmp/cordon-test-registry.XXXXXX");
	assert_non_null(mkdtemp(ground->data));
	*state = ground;
	return 0;
}

int ground_teardown(void **state)
{
	struct ground *ground = *state;
	int left = remove_tree(AT_FDCWD, ground->data);
	arena_free(&ground->arena);
	free(ground);
	return left;
}

const char *ground_path(struct ground *ground, const char *id, const char *name)
{
	return arena_printf(&ground->arena, "%s/sessions/%s/%s", ground->data, workspace_hash(&ground->arena, id),
	                    name);
}

void ground_put(const char *path, const char *text, size_t length)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

char *ground_get(struct ground *ground, const char *path, size_t *ret_length)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	char *text = arena_alloc(&ground->arena, 1 << 16);
	*ret_length = fread(text, 1, (1 << 16) - 1, file);
	fclose(file);
	return text;
}

struct session_record ground_open(struct ground *ground, const char *id, bool expect_made)
{
	struct session_record record;
	struct cordon_error err;
	bool made = !expect_made;
	MUST(registry_open(&ground->arena, ground->data, id, NULL, &record, &made, &err));
	assert_int_equal(made, expect_made);
	return record;
}

int ground_use(struct ground *ground, const char *id, bool expect_found)
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

static const struct capability_set granted = { .fs_read = LIST("/data", "/\xff"), .network = NETWORK_HOSTS,
	.hosts = LIST("a.com:443"), .spawn = true, .limits.wall_ms = UINT64_MAX };

int ground_fill(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
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
	assert_int_equal(places_add(arena, &record->grants[0].places, &place) |
	                         places_add(arena, &record->grants[0].places, &file),
	                 0);
	record->denials = arena_alloc(arena, sizeof(*record->denials));
	record->denial_count = 1;
	record->denials[0] = (struct session_denial){ .hash = "HASH", .reason = NULL, .time = "now" };
	return 0;
}

int ground_answer(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena;
	record->why = "changed";
	if (*(int *)arg < 0)
		err->class = CORDON_E_SESSION_ENDED;
	return *(int *)arg;
}
