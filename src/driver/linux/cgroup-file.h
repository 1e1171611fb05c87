/* Control files: small texts that are read and written whole. Nothing in them is trusted to be as it should be. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 1 or 2 where the descriptor is on a cgroup filesystem of that version, else 0. */
int cgroup_file_version(int fd);
/* The text, ended by NUL; its length, or -1. What does not fit is left out. */
long cgroup_file_read(int dir, const char *name, char *text, size_t size);
/* 0, or -1 with errno. */
int cgroup_file_write(int dir, const char *name, const char *text);
int cgroup_file_write_number(int dir, const char *name, uint64_t number);
/* Of an open file: the number after `key` and a space at the beginning of a line (NULL: the file is one number); 0:
 * there is none. */
uint64_t cgroup_file_number(int fd, const char *key);
/* Is this one of the words in a text? */
bool cgroup_file_has_word(const char *text, const char *word);
/* Of /proc/PID/cgroup: the path after the second colon of the line whose list has this controller, as long as the line
 * is; NULL: no tree of version 1 has it. */
const char *cgroup_file_own(const char *self, const char *controller);
/* Kills what cgroup.procs lists until it lists nothing; false where something stays. Only where nothing new can be
 * started meanwhile does it surely come to an end. */
bool cgroup_file_kill_listed(int dir);
/* A directory there that is owned by the caller. Another user who can write to the place could have put one there and
 * change its limits. -1 with errno. */
int cgroup_file_open_own(int dir, const char *name);
