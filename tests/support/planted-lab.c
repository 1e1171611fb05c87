/* See planted-lab.h. */
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

#include "cordon-internal.h"
#include "planted-lab.h"

static int setup_in(void **state, const char *directory)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	assert_non_null(lab);
	snprintf(lab->root, sizeof(lab->root), "%s/cordon-planted-XXXXXX", directory);
	strcpy(lab->quarantine, lab->root);
	assert_non_null(mkdtemp(lab->root));
	assert_non_null(mkdtemp(lab->quarantine));
	lab->root_fd = open(lab->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	lab->quarantine_fd = open(lab->quarantine, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(capability_baseline(&lab->arena, true, &lab->set), 0);
	assert_int_equal(strings_add(&lab->arena, &lab->set.protect, "IDENTITY.md"), 0);
	*state = lab;
	return 0;
}

int lab_setup(void **state)
{
	return setup_in(state, "/tmp");
}

int lab_setup_in_memory(void **state)
{
	return setup_in(state, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

int lab_teardown(void **state)
{
	struct lab *lab = *state;
	char command[256];
	snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s %s", lab->root, lab->root, lab->quarantine);
	close(lab->root_fd);
	close(lab->quarantine_fd);
	int status = system(command);
	arena_free(&lab->arena);
	free(lab);
	return status;
}

static void find(struct lab *lab, struct names *ret_names)
{
	struct name_rules rules = { NULL, &lab->set.protect, &lab->set.exempt };
	struct cordon_error err;
	assert_int_equal(names_find(&lab->arena, lab->root_fd, lab->root, &rules, &(struct names_keep){ 0 }, 800,
	                            ret_names, &err),
	                 0);
}

void lab_record(struct lab *lab)
{
	struct cordon_error err;
	find(lab, &lab->before_names);
	const struct git_tree tree = { lab->root_fd, lab->root, &lab->before_names };
	assert_int_equal(planted_record(&lab->arena, &(struct git_trees){ &tree, 1, false }, &tree, &lab->before, &err),
	                 0);
}

void lab_check(struct lab *lab, bool move)
{
	struct cordon_error err;
	do
		find(lab, &lab->after_names);
	while (planted_unlock(lab->root_fd, &lab->before_names, &lab->after_names));
	const struct git_tree tree = { lab->root_fd, lab->root, &lab->after_names };
	assert_int_equal(planted_check(&lab->arena, &(struct git_trees){ &tree, 1, false }, &tree, &lab->before,
	                               move ? lab->quarantine_fd : -1, &lab->planted, &err), 0);
}

const struct planted_file *lab_get(const struct lab *lab, const char *path)
{
	for (size_t i = 0; i < lab->planted.count; i++)
		if (!strcmp(lab->planted.items[i].path, path))
			return &lab->planted.items[i];
	return NULL;
}

void lab_make(const struct lab *lab, const char *path, const char *text, mode_t mode)
{
	char part[256];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		assert_true(mkdirat(lab->root_fd, part, 0755) == 0 || errno == EEXIST);
	}
	int fd = openat(lab->root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

bool lab_exists(const struct lab *lab, const char *path)
{
	return faccessat(lab->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void lab_assert_moved(const struct lab *lab, const char *path, const char *text)
{
	const struct planted_file *file = lab_get(lab, path);
	char content[256];
	struct stat stat;
	assert_non_null(file);
	assert_non_null(strstr(file->note, "moved to quarantine"));
	assert_false(lab_exists(lab, path));
	assert_int_equal(fstatat(lab->quarantine_fd, file->quarantined_as, &stat, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(stat.st_mode));
	assert_int_equal(stat.st_mode & 07777, 0600);
	int fd = openat(lab->quarantine_fd, file->quarantined_as, O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, content, sizeof(content) - 1);
	close(fd);
	assert_int_equal(length, strlen(text));
	assert_memory_equal(content, text, length);
}
