/* A workspace, before a command and after it, and a quarantine for what it planted. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/capability.h"
#include "paths/planted/planted.h"

struct lab {
	char root[64], quarantine[64];
	int root_fd, quarantine_fd;
	struct arena arena;
	struct capability_set set;
	struct names before_names, after_names;
	struct planted_before before;
	struct planted planted;
};

int lab_setup(void **state);
/* For what takes a disk's filesystem long. */
int lab_setup_in_memory(void **state);
int lab_teardown(void **state);

/* A file, and the directories on the way. */
void lab_make(const struct lab *lab, const char *path, const char *text, mode_t mode);
bool lab_exists(const struct lab *lab, const char *path);

void lab_record(struct lab *lab);
void lab_check(struct lab *lab, bool move);
/* What was said of it, or NULL. */
const struct planted_file *lab_get(const struct lab *lab, const char *path);
/* Moved: gone from the workspace, whole in quarantine, not executable. */
void lab_assert_moved(const struct lab *lab, const char *path, const char *text);

#define LAB_ROW(name) cmocka_unit_test_setup_teardown(name, lab_setup, lab_teardown)
