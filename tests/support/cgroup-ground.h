/* Control groups on a tree of plain files. What the kernel does when such a tree is changed is done here instead: the
 * functions of the C library that would reach it are this program's own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "driver/linux/cgroup.h"
#include "driver/linux/launch.h"

#define BIT(wall) (UINT32_C(1) << CORDON_WALL_##wall)
#define ALL (BIT(LIMIT_MEMORY) | BIT(LIMIT_PROCESSES) | BIT(LIMIT_CPU))
#define USER "/user.slice/user@7.service"

extern char root[64];
extern char others[64];         /* whose groups are another's */
extern const char *lacking;     /* control files with this in their names are not there; or NULL */
extern const struct cgroup_bounds bounds;

const char *ground_path(int fd);
bool ground_is_v2(const char *path);
void ground_put(const char *dir, const char *name, const char *text);
const char *ground_get(const char *dir, const char *name);
const char *ground_at(const char *path);
void ground_group(const char *path, const char *controllers, const char *subtree);
int ground_setup(void **state);
int ground_teardown(void **state);

/* As systemd makes it: what a user has is below its manager, and not all of it is let down further. */
void ground_user_tree(void);

struct cgroup_search ground_search(const char *own);
struct cgroup_place ground_look(const char *own);
int ground_leaves(const char *path);
struct cgroup ground_make(const char *own);
pid_t ground_ended(void);
