/* See config-ground.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remove.h"
#include "cordon-internal.h"
#include "config/read.h"
#include "config/store.h"
#include "config-ground.h"

char root[64], data[80], system_file[80], user_file[80], workspace[80], project_file[96];
int workspace_fd = -1;
struct config_store *store;
struct host_watch *host_watch;

void ground_open_store(void)
{
	struct cordon_error err = { 0 };
	const struct config_files files = { .system = system_file, .user = user_file, .home = "/home/me" };
	config_store_unref(store);
	store = NULL;
	if (config_store_open_files(data, &files, &store, &err) < 0 ||
	    (host_watch && config_store_watch(store, host_watch, &err) < 0))
		fail_msg("%s", err.reason);
}

int ground_setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/test-config-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(data, sizeof(data), "%s/data", root);
	snprintf(system_file, sizeof(system_file), "%s/system.toml", root);
	snprintf(user_file, sizeof(user_file), "%s/user.toml", root);
	snprintf(workspace, sizeof(workspace), "%s/work", root);
	snprintf(project_file, sizeof(project_file), "%s/.cordon.toml", workspace);
	assert_int_equal(mkdir(data, 0700), 0);
	assert_int_equal(mkdir(workspace, 0700), 0);
	workspace_fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ground_open_store();
	return 0;
}

int ground_setup_watched(void **state)
{
	host_watch = host_watch_new();
	assert_non_null(host_watch);
	return ground_setup(state);
}

int ground_teardown(void **state)
{
	(void)state;
	config_store_unref(store);
	store = NULL;
	host_watch_free(host_watch);
	host_watch = NULL;
	close(workspace_fd);
	remove_tree(AT_FDCWD, root);
	return 0;
}

uint64_t ground_hear(void)
{
	if (host_watch)
		host_watch_poll(host_watch);
	return 1;
}

void ground_put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

const struct config *ground_take(const char *session, bool dry)
{
	const struct config *config;
	struct cordon_error err = { 0 };
	if (config_store_take(store, session, workspace_fd, workspace, dry, ground_hear(), &config, &err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
	return config;
}

void ground_expect(uint64_t memory, const char *note)
{
	const struct config *config = ground_take(NULL, false);
	assert_int_equal(config->baseline.limits.memory_bytes >> 20, memory);
	if (!note && config->note)
		fail_msg("note: %s", config->note);
	if (note && (!config->note || !strstr(config->note, note)))
		fail_msg("note: %s", config->note ? config->note : "none");
	config_unref(config);
}

void ground_expect_refused(const char *subject, const char *part)
{
	const struct config *config = NULL;
	struct cordon_error err = { 0 };
	assert_true(config_store_take(store, NULL, workspace_fd, workspace, false, ground_hear(), &config, &err) < 0);
	assert_null(config);
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
	assert_string_equal(err.boundary, "configuration");
	if (!strstr(err.subject, subject) || !strstr(err.reason, part))
		fail_msg("%s: %s", err.subject, err.reason);
}

size_t ground_kept_files(void)
{
	char path[96];
	size_t count = 0;
	snprintf(path, sizeof(path), "%s/config", data);
	DIR *directory = opendir(path);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	if (directory)
		closedir(directory);
	return count;
}
