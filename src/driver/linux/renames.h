/* Renames of a command, told to its supervisor before the kernel makes them, by seccomp's user notification. A file
 * that is a mount of its own, as a protected name is, cannot be renamed over: the supervisor can write to it in the
 * command's place, where what is to be written is harmless. Everything else the kernel decides on as if nobody had
 * asked. It reads the command's memory, which the command can change meanwhile; so what is found there only says which
 * of a few places is meant, and no wall depends on it.
 *
 * A program inside that wants a listener of its own gets EBUSY, as the kernel allows one. */
#pragma once
#include "driver/driver.h"

struct renames {
	int listener_fd;                /* -1 until the command's process has handed it out */
	const struct rename_watch *watch;
};

/* Takes the descriptor. */
void renames_begin(struct renames *renames, int listener_fd);
/* Answers one that is pending. False: there will be none any more, nothing of the command is left. */
bool renames_serve(struct renames *renames);
void renames_end(struct renames *renames);
