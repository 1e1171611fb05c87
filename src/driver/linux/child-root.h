/* Parts of building the private root that mount nothing (child-root-shared.c): opening targets, making mount points,
 * refusals. child-root.c makes the mounts. */
#pragma once
#include "driver/linux/launch.h"

struct builder {
	struct launch *launch;
	int base;       /* the tmpfs over "/"; holds what masks are made of */
	int root;       /* the root to be: the same, or a view of the host's whole tree */
	int tree;       /* a detached mount that the caller made for this operation, or -1 */
	int mask_file, mask_directory;
	int stage;      /* where layers are put together, a tmpfs over the host's /dev; below 0: there is none yet */
};

typedef int root_player(struct builder *builder, const struct mount_op *op);

/* Fills launch->error and returns -1. */
int root_refuse(const struct builder *builder, long result, const char *subject, const char *reason);
/* The same where the private root itself, or a fresh /proc, is refused: what the kernel means by that. */
int root_refuse_base(const struct builder *builder, long result);
int root_refuse_proc(const struct builder *builder, long result, const char *target);
/* The same where something was to be covered that is not there, or not of its kind, any more. */
int root_refuse_cover(const struct builder *builder, const struct mount_op *op, long result);
int root_refuse_swapped(const struct builder *builder, const struct mount_op *op);

/* Is it "/"? */
bool root_is_whole(const char *path);
/* Opens what is at `target` beneath `root`, following no link; a descriptor or a negative errno. */
long root_open_target(int root, const char *target);
/* May this operation be left out after this failure? */
bool root_may_skip(const struct mount_op *op, long result);
/* Is it what the walk saw under this path? */
bool root_is_same(long fd, const struct mount_op *op);
/* Opens the point of the base where a view of the host's whole tree goes, made if missing. */
long root_open_view(const struct builder *builder);
void root_number_text(char text[24], uint64_t number);
/* "/proc/self/fd/7" */
struct root_link {
	char text[48];
};
struct root_link root_link_to(long fd);
const char *root_mode_text(unsigned mode);

/* The path without its leading slashes; "." for "/". */
const char *root_relative(const char *target);
/* An empty filesystem in memory, detached; a size of 0 is any. */
long root_new_tmpfs(uint64_t size, unsigned mode);
/* A file that holds the text, to be mounted over another; its name is there for as long as that takes. */
long root_make_text(const struct builder *builder, const char *text);
void root_drop_text(const struct builder *builder, long fd);

/* Nothing is mounted by these. */
root_player root_play_point, root_play_link, root_play_text;
