/* fs.watch: what changes beneath a directory, as file tools see it. The kernel tells by inotify of each directory,
 * which is watched by a descriptor that was opened beneath its root. Each telling takes the walk of a file tool: it is
 * judged by the policy as it is then, hidden names are not told, and the ledger has a row of it. */
#pragma once
#include <pthread.h>

#include "api/call.h"
#include "base/id.h"
#include "files/walk.h"

#define WATCHES_MAX 64             /* of one cordon */
#define WATCH_DIRECTORIES_MAX 4096 /* of one watch */
#define WATCH_CHANGES_MAX 1000     /* told at a time */

struct watched_directory {
	int number; /* the kernel's */
	char *path; /* from the place on; "": itself */
};

struct watch {
	struct watch *next; /* of the cordon's, under its jobs_lock, as are: */
	unsigned users;
	bool removed;
	char id[ID_SIZE];
	struct cordon_request *request;
	char *path;           /* as it was asked for */
	size_t depth;         /* 0: without a limit */
	int fd;               /* inotify's */
	pthread_mutex_t lock; /* over the next: one tells at a time */
	struct watched_directory *directories;
	size_t count;
	dev_t device; /* of the place */
	ino_t inode;
	bool missed;       /* something is not watched, or was not told */
	const char *ended; /* why there will be no more; or NULL */
};

/* By the tool "watch": begins to watch what is at `place`, or tells what changed there. */
int watch_act(struct watch *watch, const struct files *files, const struct files_place *place, struct json *json,
	      struct cordon_error *err) must_check;
/* Those of a cordon that is released. */
void watches_free(struct watch *watches);

/* api/file.c: cordon_file_call() with this tool; `watch` (or NULL) acts. *ret_json is to be free()d. */
int file_watch_call(struct cordon *cordon, const struct cordon_request *request, const char *path, struct watch *watch,
		    char **ret_json, struct cordon_error *err) must_check;
