/* The program's first code. The start of a static libc costs more than a whole conversation with a daemon, so the ELF entry
 * point of the static program is not libc's but cordon_entry (start.c), which looks whether this is a `run` in a session
 * while a daemon listens. If so the command is run through that, by system calls alone, and the process exits. In
 * every other case, and whenever there is something that only the whole program can do, libc's own start follows, with
 * the stack and the registers as the kernel gave them.
 *
 * It runs before the program is relocated and before there is a thread: no libc, no stack protector, no pointer in
 * initialised data. What is left for the whole program to do is in `entry_handed` (door/handed.h), which the start of libc
 * leaves alone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "door/handed.h"

/* What there is to know of a process that has just begun, all of it where the kernel put it. */
struct entry_process {
	char **argv, **environment;
	uint32_t word_count, environment_count; /* words: from "run" on */
	uint32_t words_size, environment_size;  /* in bytes: each lie one behind the other in memory */
	uint32_t user;                          /* the effective one */
	bool secure;                            /* it has more rights than who started it */
};

/* words.c: is this for a daemon, going by its words; and where would that listen? 0: no, or too long a name. */
bool entry_wants_daemon(const char *const *words, size_t count) __attribute__((visibility("hidden")));
size_t entry_socket_path(const char *const *environment, char *path, size_t size) __attribute__((visibility("hidden")));

/* client.c: returns where the whole program has to go on. */
void entry_converse(const struct entry_process *process) __attribute__((visibility("hidden")));
