/* A tree to count and to watch, on a filesystem whose figures and by a clock whose time a test says. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "driver/linux/disk.h"

#define KiB UINT64_C(1024)
#define MiB (UINT64_C(1) << 20)
#define NEVER INT64_MAX

/* The figures of a filesystem that nobody else uses: what a test says is in use. */
extern struct volume {
	uint64_t type, bytes, inodes;
	unsigned asked;
} volume;

/* Files are dated by the kernel's clock; the one that is asked may be behind it. And time may pass without waiting. */
extern time_t behind_s;
extern uint64_t skipped_us;

struct ground {
	char root[64];
	int fd, tree;
};

int ground_setup(void **state);
int ground_teardown(void **state);

/* Adds so much to a file, with blocks for all of it; the filesystem knows. */
void ground_fill(int directory, const char *name, uint64_t bytes);

int ground_directory(int parent, const char *name);
struct disk_count ground_count_since(int root, int64_t since_ns);
uint64_t ground_count(int root);

/* What a file counts, by the kernel's word. */
uint64_t ground_counts(int directory, const char *name);

void ground_watch(struct disk_watch *watch, int tree, uint64_t most, bool growth);

/* Looks as often as the watch wants, for that long; true: the limit is passed. */
bool ground_look_for(struct disk_watch *watch, int pidfd, unsigned ms);

/* Until what there was at the start is known, which must not end it. */
void ground_look_first(struct disk_watch *watch, int pidfd);
