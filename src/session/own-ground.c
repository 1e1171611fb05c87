/* See own-ground.h. */
#include "session/own-ground.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "session/beneath.h"

#define POINTS_MAX 128

struct own_ground {
	pthread_mutex_t mutex;
	struct vigil_post *post;
	const char *paths[3];                   /* the last is the directory */
	bool known, has_second_names;
	size_t count;
	struct {
		uint64_t device, inode;
	} points[POINTS_MAX];
};

struct own_ground *own_ground_new(struct vigil *vigil, const char *const files[2], const char *directory)
{
	struct own_ground *ground = calloc(1, sizeof(*ground));
	if (!ground || !(ground->post = vigil_post_new(vigil))) {
		free(ground);
		return NULL;
	}
	pthread_mutex_init(&ground->mutex, NULL);
	ground->paths[0] = files[0];
	ground->paths[1] = files[1];
	ground->paths[2] = directory;
	return ground;
}

void own_ground_free(struct own_ground *ground)
{
	if (!ground)
		return;
	vigil_post_free(ground->post);
	pthread_mutex_destroy(&ground->mutex);
	free(ground);
}

static bool add_point(struct own_ground *ground, const struct stat *info)
{
	for (size_t i = 0; i < ground->count; i++)
		if (ground->points[i].inode == info->st_ino && ground->points[i].device == info->st_dev)
			return true;
	if (ground->count == POINTS_MAX)
		return false;
	ground->points[ground->count].inode = info->st_ino;
	ground->points[ground->count++].device = info->st_dev;
	return true;
}

/* What is not there is no tree. */
static bool add_all_above(struct own_ground *ground, struct arena *arena, const char *path)
{
	struct stat info;
	char *above = arena_strdup(arena, path);
	for (char *end = above; end && *above; *end = '\0') {
		if (lstat(above, &info) == 0 && !add_point(ground, &info))
			return false;
		end = strrchr(above, '/');
	}
	return above;
}

static bool look_at(struct own_ground *ground, struct arena *arena, const char *path, bool is_file)
{
	const char *end;
	struct strings way;
	struct stat info;
	if (is_file)
		vigil_watch(ground->post, path);
	else
		vigil_watch_name(ground->post, path);
	if (beneath_way(arena, path, &end, &way) == -ENOMEM || !add_all_above(ground, arena, end))
		return false;
	for (size_t i = 0; i < way.count; i++)
		if (!add_all_above(ground, arena, way.items[i]))
			return false;
	ground->has_second_names |= is_file && stat(end, &info) == 0 && info.st_nlink > 1;
	return true;
}

/* Whether it is known where they lie. */
static bool look(struct own_ground *ground, uint64_t mounts)
{
	if (vigil_stands(ground->post, mounts))
		return ground->known;
	vigil_begin(ground->post, mounts);
	ground->known = vigil_watches(ground->post);
	ground->has_second_names = false;
	ground->count = 0;
	struct arena arena = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(ground->paths) && ground->known; i++)
		ground->known = !ground->paths[i] || look_at(ground, &arena, ground->paths[i], i + 1 < ARRAY_SIZE(ground->paths));
	arena_free(&arena);
	ground->known = ground->known && vigil_watches(ground->post);
	return ground->known;
}

static bool is_root(const struct own_ground *ground, const struct place *tree)
{
	for (size_t i = 0; i < ground->count; i++)
		if (ground->points[i].inode == tree->inode && ground->points[i].device == tree->device)
			return true;
	return false;
}

bool own_ground_is_elsewhere(struct own_ground *ground, uint64_t mounts, const struct place *workspace, const struct places *trees)
{
	pthread_mutex_lock(&ground->mutex);
	bool elsewhere = look(ground, mounts) && !ground->has_second_names && !is_root(ground, workspace);
	for (size_t i = 0; i < trees->count && elsewhere; i++)
		elsewhere = !is_root(ground, &trees->items[i]);
	pthread_mutex_unlock(&ground->mutex);
	return elsewhere;
}
