/* The processes of a command, seen from outside through /proc: their number, whether they did anything, and the
 * unlinked files they hold. They are not stopped meanwhile: one that is created just now may be missed. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESSES_MAX 4096              /* beyond so many, they are not looked at */

struct disk_stat;

struct processes {
	pid_t *pids;                    /* a process before what it started */
	size_t count, capacity;
	bool partial;                   /* there may be more than these */
	bool untold;                    /* of one it cannot be told whether it ran */
	uint64_t ran, wrote;            /* change when one of them ran, or wrote; or when there are others */
	uint64_t who;                   /* changes when there are others */
	uint64_t written_bytes;         /* in their lives, to whatever it was; very many where that is not told */
};

/* Not where the /proc that is mounted is of another pid namespace. */
bool processes_have_our_numbers(void);
/* All that descend from `first`, and itself. */
void processes_look(pid_t first, struct processes *ret_processes);
/* The same, and nothing else about them. */
void processes_list(pid_t first, struct processes *ret_processes);
void processes_free(struct processes *processes);
/* Those who are found, without `first`. */
void processes_kill_below(pid_t first);

typedef void processes_file_fn(void *arg, const struct disk_stat *file);
/* Calls `each` for every file that it has open and that has no name. */
void processes_each_nameless(pid_t pid, processes_file_fn *each, void *arg);
/* Does it hold files without having them open: on one of these devices and unlinked, but mapped; or sent to a socket
 * and not yet received? */
bool processes_hides(pid_t pid, const uint64_t *devices, size_t count);
