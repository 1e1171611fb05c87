/* What the walk and the doctor ask about the means of this machine; each system answers in its own folder,
 * all but Linux partly by driver/none/machine.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A program of the system's that does nothing and succeeds, and a directory where every user may make another. */
const char *driver_probe_program(void);
const char *driver_temporary_directory(void);

/* 0: there is no Landlock. */
int driver_landlock_abi(void);
/* The user that a command of this caller is inside. */
uint32_t driver_inside_uid(void);
uint32_t driver_inside_gid(void);

/* What holds the limits of a whole tree of processes. */
struct driver_groups {
	const char *mechanism;          /* NULL: nothing does, and `why` says why not */
	uint32_t offers;                /* 1 << enum cordon_wall: the limits it can hold */
	bool can_freeze;
	char path[512], why[256];       /* for display */
};
/* Looks for a place where a group can be made; `directory` is the configuration's, or NULL. */
void driver_groups_look(const char *directory, struct driver_groups *ret_groups);
/* How to get one where there is none; never NULL. */
const char *driver_groups_fix(void);
/* Removes groups whose supervisor is gone, with all that is left in them. */
void driver_groups_sweep(const char *directory);
/* Would this path, which is resolved, show the tree of groups? `known_fd` is what is there, where that is open; or
 * -1. */
bool driver_groups_show(const char *path, int known_fd);

/* Puts back what a command's sandbox changed for its time and could not put back, since its process was killed. Cheap
 * where there is nothing: it is done whenever cordon's data is opened. */
void driver_sweep(const char *data_dir);

/* Waits for what ended commands have left, and forgets what was kept for the next ones. */
void driver_settle(void);
