/* See names-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host-watch.h"
#include "cordon-internal.h"
#include "local-ground.h"
#include "names-ground.h"
#include "paths/index/look.h"

static const char *const deny[] = { "**/.env", "**/.env.*", "**/*.pem", "**/id_rsa*", "**/.ssh" };
static const char *const protect[] = { ".git/hooks", ".git/config", ".cordon.toml" };

int ground_setup(void **state)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	assert_non_null(ground);
	snprintf(ground->root, sizeof(ground->root), "%s/cordon-names-XXXXXX", local_ground());
	snprintf(ground->cache, sizeof(ground->cache), "%s/cordon-names-XXXXXX", local_ground());
	assert_non_null(mkdtemp(ground->root));
	assert_non_null(mkdtemp(ground->cache));
	ground->root_fd = open(ground->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ground->cache_fd = open(ground->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(deny); i++)
		assert_int_equal(strings_add(&ground->arena, &ground->deny, deny[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(protect); i++)
		assert_int_equal(strings_add(&ground->arena, &ground->protect, protect[i]), 0);
	*state = ground;
	return 0;
}

int ground_setup_memory(void **state)
{
	ground_setup(state);
	struct ground *ground = *state;
	ground->host_watch = host_watch_new();
	assert_non_null(ground->host_watch);
	ground->memory = names_memory_new(ground->host_watch);
	assert_non_null(ground->memory);
	return 0;
}

int ground_teardown(void **state)
{
	struct ground *ground = *state;
	char command[256];
	names_memory_free(ground->memory);
	host_watch_free(ground->host_watch);
	snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s %s", ground->root, ground->root,
	         ground->cache);
	close(ground->root_fd);
	close(ground->cache_fd);
	int status = system(command);
	arena_free(&ground->arena);
	free(ground);
	return status;
}

void ground_directory(const struct ground *ground, const char *path)
{
	char part[4096];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		assert_true(mkdirat(ground->root_fd, part, 0755) == 0 || errno == EEXIST);
	}
	assert_true(mkdirat(ground->root_fd, path, 0755) == 0 || errno == EEXIST);
}

void ground_file(const struct ground *ground, const char *path)
{
	char part[4096];
	const char *slash = strrchr(path, '/');
	if (slash) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		ground_directory(ground, part);
	}
	int fd = openat(ground->root_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

void ground_settle(void)
{
	assert_int_equal(usleep(30000), 0);
}

const struct names *ground_find(struct ground *ground, bool cached, uint64_t budget_us)
{
	struct name_rules rules = { &ground->deny, &ground->protect, &ground->exempt };
	struct cordon_error err = { 0 };
	struct names_place place = { .tried = true, .fd = ground->cache_fd };
	const struct names_keep keep = { .place = cached ? &place : NULL, .memory = cached ? ground->memory : NULL };
	if (ground->host_watch)
		host_watch_poll(ground->host_watch);
	if (names_find(&ground->arena, ground->root_fd, ground->root, &rules, &keep, budget_us, &ground->names, &err) <
	    0)
		fail_msg("%s", err.reason);
	return &ground->names;
}

bool ground_has(const struct ground *ground, enum name_kind kind, const char *path)
{
	return names_get(&ground->names, kind, path);
}

void ground_exchange(const struct ground *ground, const char *one, const char *other)
{
	if (renameat2(ground->root_fd, one, ground->root_fd, other, RENAME_EXCHANGE) == 0)
		return;
	assert_int_equal(renameat(ground->root_fd, one, ground->root_fd, "exchanged"), 0);
	assert_int_equal(renameat(ground->root_fd, other, ground->root_fd, one), 0);
	assert_int_equal(renameat(ground->root_fd, "exchanged", ground->root_fd, other), 0);
}

void ground_many(const struct ground *ground, unsigned count)
{
	char path[64];
	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "many/d%u/sub/leaf", i);
		ground_directory(ground, path);
	}
}

bool ground_is_cached(const struct ground *ground, struct names_cache_key *ret_key)
{
	struct name_rules rules = { &ground->deny, &ground->protect, &ground->exempt };
	struct names_stat stat;
	assert_true(names_stat(ground->root_fd, "", &stat));
	names_cache_key_make(stat.device, stat.inode, ground->root, &rules, ret_key);
	return faccessat(ground->cache_fd, ret_key->name, F_OK, 0) == 0;
}

void ground_warm(struct ground *ground)
{
	struct names_cache_key key;
	ground_settle();
	ground_find(ground, true, BUDGET_US);
	assert_true(ground_is_cached(ground, &key));
}
