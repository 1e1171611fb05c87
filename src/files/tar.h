/* Archives in the format of tar, in memory: POSIX (ustar, pax) and GNU's long names are read, POSIX is written. Reading
 * takes untrusted bytes and makes no system call: it tells entries as they are written, whatever their paths say. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tar_type { TAR_FILE, TAR_DIRECTORY, TAR_LINK, TAR_OTHER };

struct tar_entry {
	enum tar_type type;
	const char *what;               /* in words: "a file", "a hard link", "a device" */
	const char *path, *target;      /* target: of a symbolic link, else "" */
	unsigned mode;
	int64_t modified;               /* in seconds; 0 where it is read */
	const char *data;               /* of a file; borrowed from the archive */
	size_t length;
};

struct tar_reader {
	const char *at, *end;
	char path[PATH_MAX], target[PATH_MAX];
};

/* 1: an entry, whose texts are the reader's until the next call; 0: the end; -1: *ret_why says what is wrong. */
int tar_next(struct tar_reader *reader, struct tar_entry *ret_entry, const char **ret_why);

struct tar_writer {
	char *data;                     /* to be free()d */
	size_t length, size, most;
};

/* False: memory is short, or it would be longer than `most`, which writer->length then tells. */
bool tar_add(struct tar_writer *writer, const struct tar_entry *entry);
bool tar_finish(struct tar_writer *writer);
