/* The configuration's files of a system, a user and a project, and the store that reads them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/store.h"

extern char root[64], data[80], system_file[80], user_file[80], workspace[80], project_file[96];
extern int workspace_fd;
extern struct config_store *store;
extern struct host_watch *host_watch;             /* over its files; or NULL */

void ground_open_store(void);
int ground_setup(void **state);
int ground_setup_watched(void **state);
int ground_teardown(void **state);
/* Takes in what was told; the version to take a configuration with. */
uint64_t ground_hear(void);
void ground_put(const char *path, const char *text);
const struct config *ground_take(const char *session, bool dry);

/* The memory limit in MiB, and whether there was a note that contains `note` (NULL: none at all). */
void ground_expect(uint64_t memory, const char *note);

void ground_expect_refused(const char *subject, const char *part);
size_t ground_kept_files(void);
