/* Another process of the sandbox swaps a path for a link that leads out, again and again, while tools act on it:
 * nothing outside is read, written or removed. CORDON_RACE_S says for how long. */
#include "files-ground.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "files/call.h"

#define EXCHANGE 2      /* RENAME_EXCHANGE */

static atomic_bool over;

static void *swap(void *arg)
{
	int fd = *(const int *)arg;
	while (!over) {
		syscall(SYS_renameat2, fd, "dir", fd, "out", EXCHANGE);
		syscall(SYS_renameat2, fd, "file", fd, "file-out", EXCHANGE);
	}
	return NULL;
}

/* Each in its turn. What is made by one is what another finds. */
static const struct cordon_file seed = { .path = "seed" };
#define CONTENT .data = "inside", .length = 6
static const struct { const char *tool; struct cordon_file arguments; } calls[] = {
	{ "write", { .path = "dir/inner", CONTENT } },
	{ "write", { .path = "dir/new", CONTENT } },
	{ "read", { .path = "dir/inner" } },
	{ "read", { .path = "file" } },
	{ "send", { .path = "dir/inner" } },
	{ "send", { .path = "file" } },
	{ "edit", { .path = "dir/inner", .old = "inside", .old_length = 6, .data = "edited", .length = 6 } },
	{ "edit", { .path = "file", .old = "inside", .old_length = 6, .data = "edited", .length = 6 } },
	{ "write", { .path = "file", CONTENT } },
	{ "mkdir", { .path = "dir/made" } },
	{ "mkdir", { .path = "dir/made/again" } },
	{ "rename", { .path = "dir/new", .to = "renamed" } },
	{ "rename", { .path = "renamed", .to = "dir/renamed", .replace = true } },
	{ "rename", { .path = "dir/SECRET-name", .to = "taken" } },
	{ "copy", { .path = "dir", .to = "copied", .recursive = true } },
	{ "copy", { .path = "file", .to = "dir/copied", .replace = true } },
	{ "copy", { .path = "dir/kept", .to = "copied-file", .replace = true } },
	{ "read", { .path = "copied/inner" } },
	{ "read", { .path = "copied-file" } },
	{ "import", { .path = "dir" } },
	{ "import", { .path = "." } },
	{ "export", { .path = "dir", .content_in_json = true } },
	{ "export", { .path = "." } },
	{ "grep", { .path = "dir", .pattern = "SECR.T" } },
	{ "grep", { .path = ".", .pattern = "SECR.T" } },
	{ "find", { .path = "dir" } },
	{ "walk", { .path = "dir" } },
	{ "walk", { .path = "." } },
	{ "list", { .path = "dir" } },
	{ "stat", { .path = "dir/SECRET-name" } },
	{ "remove", { .path = "dir/made", .recursive = true } },
	{ "remove", { .path = "dir/kept" } },
	{ "remove", { .path = "dir/new" } },
	{ "remove", { .path = "copied", .recursive = true } },
};

static bool has_secret(const void *bytes, size_t length)
{
	return bytes && memmem(bytes, length, "SECRET-content", 14);
}

/* True if it did what it was asked. */
static bool call_one(const char *name, const struct cordon_file *arguments, struct files_result *ret_result)
{
	struct files_call call;
	const char *nearest;
	const struct files_tool *tool = files_tool_find(name, &nearest);
	assert_non_null(tool);
	bool done = files_call_open(&files, tool, arguments, "id", &call, NULL) == 0 &&
	            files_call_act(&files, &call, ret_result, NULL) == 0;
	files_call_close(&call);
	return done;
}

static void free_result(struct files_result *result)
{
	free(result->json);
	free(result->data);
}

/* How often each succeeded. */
static void call_all(const struct files_result *archive, size_t *done)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct cordon_file arguments = calls[i].arguments;
		struct files_result result;
		if (!strcmp(calls[i].tool, "import")) {
			arguments.data = archive->data;
			arguments.length = archive->length;
		}
		if (!call_one(calls[i].tool, &arguments, &result))
			continue;
		done[i]++;
		if (has_secret(result.json, strlen(result.json)) || has_secret(result.data, result.length) ||
		    strstr(result.json, "SECRET-name"))
			fail_msg("%s %s: %s", calls[i].tool, arguments.path, result.json);
		free_result(&result);
	}
}

static void race(bool without_openat2)
{
	const char *seconds = getenv("CORDON_RACE_S");
	size_t done[ARRAY_SIZE(calls)] = { 0 }, rounds = 0;
	struct files_result archive;
	pthread_t thread;
	struct stat before, after;
	put("outside/inner", "SECRET-content");
	put("outside/kept", "SECRET-content");
	put("outside/SECRET-name", "");
	assert_int_equal(mkdir(at("work/seed"), 0755), 0);
	put("work/seed/inner", "inside");
	assert_true(call_one("export", &seed, &archive));
	assert_int_equal(stat(at("outside"), &before), 0);
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	assert_int_equal(symlink("../outside", at("work/out")), 0);
	put("work/file", "inside");
	assert_int_equal(symlink("../outside/kept", at("work/file-out")), 0);
	auto_close int fd = open(at("work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ground_no_openat2 = without_openat2;
	over = false;
	assert_int_equal(pthread_create(&thread, NULL, swap, &fd), 0);
	int64_t end = clock_ms() + (seconds ? atoi(seconds) * 1000 : 1500);
	while (clock_ms() < end || !done[2]) {
		call_all(&archive, done);
		rounds++;
	}
	over = true;
	pthread_join(thread, NULL);
	assert_string_equal(get("outside/inner"), "SECRET-content");
	assert_string_equal(get("outside/kept"), "SECRET-content");
	assert_int_equal(stat(at("outside"), &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	free_result(&archive);
	print_message("# %zu rounds:", rounds);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		print_message(" %s %s %zu", calls[i].tool, calls[i].arguments.path, done[i]);
	print_message("\n");
}

static void with_openat2(void **state)
{
	(void)state;
	race(false);
}

static void without_openat2(void **state)
{
	(void)state;
	race(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(with_openat2, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(without_openat2, ground_setup, ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
