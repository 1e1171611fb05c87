/* A workspace and a directory outside it, for file tools. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "files/grep.h"
#include "files/list.h"
#include "files/write.h"

#include <cmocka.h>

extern char ground[64];                 /* with `work`, the root, `read`, a root for reading, and `outside` */
extern struct files files;
extern struct tool_rules ground_rules;
extern bool ground_no_openat2;          /* openat2() says ENOSYS */

int ground_setup(void **state);
int ground_teardown(void **state);
/* A path in the ground, in one of four buffers. */
const char *at(const char *path);
void put(const char *path, const char *text);
void put_bytes(const char *path, const void *bytes, size_t length);
/* The whole file, in a buffer that the next call overwrites; NULL: there is none. */
const char *get(const char *path);

/* Opens a place, or says by which class it was refused. */
enum cordon_class opens(const char *path, unsigned how, struct files_place *ret_place);
enum cordon_class refused(const char *path, unsigned how);
extern struct cordon_error ground_err;
