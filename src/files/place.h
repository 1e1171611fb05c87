/* The paths of a file tool's call: each becomes a descriptor beneath a root, once, and the tools act on that
 * descriptor.
 *
 * A path is opened as a place (O_PATH), which has no effect on a FIFO or a device, without leaving its root. Then it
 * is judged by its canonical path, and by the path that was asked for, too: by the deny globs and the protected names,
 * whatever the case, and by the tool rules. What is replaced, made or removed is named by the descriptor of its
 * directory and one component. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "paths/index/globs.h"
#include "policy/rules.h"

#define FILES_DEPTH_MAX 128             /* of directories in a search */
#define FILES_READ_MAX (1u << 20)       /* bytes of content that one read returns */
#define FILES_EDIT_MAX (16u << 20)      /* bytes of a file that can be edited, and that has a version */
#define FILES_WRITE_MAX (64u << 20)
#define FILES_SEND_MAX (25u << 20)
#define FILES_TIME_MS 10000             /* for one call */

struct files_screen;
struct files_root {
	int fd;                         /* O_PATH will do; borrowed. A file may be a root of its own */
	const char *path;               /* canonical */
	const char *alias;              /* by which it is known, too; or NULL */
	bool writable;
};

/* What the calls of one request act on; all borrowed. Of roots that lie in each other, the deepest says whether it is
 * writable. */
struct files {
	struct arena *arena;
	const struct files_root *roots;
	size_t root_count;
	const char *cwd;                /* canonical, beneath a root: where relative paths begin */
	const struct names_globs *globs;        /* compiled for "/", `deny` whatever the case; or NULL */
	const struct strings *deny;     /* the globs as they were written, to know which of the default ones may be
	                                   shown (shown.h); or NULL */
	const struct strings *hidden;   /* trees that are cordon's own or other sessions': hidden unless the root
	                                   lies in one; or NULL */
	const struct tool_rules *rules; /* or NULL */
	const char *tool;               /* by which name the rules know it: "read", "write", … */
	const struct files_screen *screen;      /* or NULL */
	bool untold; /* the caller is one from whom names are hidden: nothing says which, or that any are */
};

enum files_how {
	FILES_WRITE = 1 << 0,           /* it is to be changed: the root must be writable, and protected names are
	                                   refused */
	FILES_MAY_MISS = 1 << 1,        /* there may be nothing yet; its directory must be there */
	FILES_NO_FOLLOW = 1 << 2,       /* a link at the end means the link itself */
};

struct files_place {
	const struct files_root *root;
	const char *given;              /* as it was asked for */
	const char *path;               /* canonical, or where it would be */
	const char *named;              /* absolute, resolved by text alone */
	int fd;                         /* O_PATH; -1: nothing is there */
	int parent_fd;                  /* O_PATH; with FILES_WRITE or FILES_NO_FOLLOW, else -1 */
	const char *name;               /* in that directory */
	struct stat info;               /* of `fd` */
	bool asks;                      /* a tool rule wants a human to be asked, because: */
	const char *rule;
};

/* Release with files_place_close(), also where it failed. */
int files_place_open(const struct files *files, const char *path, unsigned how, struct files_place *ret_place,
                     struct cordon_error *err) must_check;
void files_place_close(struct files_place *place);

/* A regular file, or an error that says what it is and which tool to take. */
int files_require_regular(const struct files_place *place, struct cordon_error *err) must_check;
int files_require_directory(const struct files_place *place, struct cordon_error *err) must_check;
/* "file", "directory", "link", "fifo", "socket", "device". */
const char *files_kind(mode_t mode);

/* Opens what is held, itself, never by its name. A descriptor, or a negative errno. */
int files_reopen(int fd, int flags) must_check;

/* Is the path beneath the root hidden by a deny glob, by its own name or a directory's above it, and not shown for
 * what is in it? */
bool files_is_hidden(const struct files *files, const struct files_root *root, const char *path);
/* Why nothing may be written at this canonical path, by what the path alone tells: hidden and protected names, a
 * repository's own directory, tool rules. NULL: nothing is against it. */
const char *files_refused_name(const struct files *files, const struct files_root *root, const char *path,
                               bool is_directory);
/* May a tool change what is there? Protected names, whatever the case. */
bool files_is_protected(const struct files *files, const char *path, bool is_directory);

/* Would a link at this path lead to what is protected, by the name of a directory? */
bool files_leads_to_protected(const struct files *files, const char *path);
/* May what was opened to be written still be written where its directory is by now? Others move directories, and make
 * files beside it, from the moment when it was judged. */
int files_place_again(const struct files *files, const struct files_place *place, struct cordon_error *err) must_check;

/* The error of a system call on a path of the request. */
int files_fail(struct cordon_error *err, int os_errno, const char *path, const char *what);
