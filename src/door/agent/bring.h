/* What an agent that runs whole inside brings along: copies of its files in the session's home, and its login.
 *
 * The session's home was written to by commands: every name in it is opened beneath it, step by step, and no link is
 * followed; a file is written beside its name and renamed into place. From the session nothing comes back but a login
 * that was renewed (login.h), judged as text and written by cordon. */
#pragma once
#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"
#include "door/agent/profile.h"

struct bring {
	struct arena *arena;
	const struct agent_profile *profile;
	const char *home;               /* the user's */
	const char *inside;             /* the session's, on this machine */
	FILE *remarks;
	/* Its text without what cordon setup wrote into it; NULL: it is all cordon's. As it is where nothing was
	 * written. */
	const char *(*without_setup)(void *arg, const char *path, const char *text);
	void *arg;
	struct {
		char *text;             /* of the login as it was given to the session; NULL: there was none */
		size_t length;
	} given[PROFILE_FILES_MAX];
	/* Of bring_watch(). */
	pthread_t watcher;
	bool is_watched;
	int stop_fd;
};

/* Before the agent starts. What cannot be copied is said and left out. */
int bring_in(struct bring *bring, struct cordon_error *err) must_check;
/* While it runs: from now on a thread copies a renewed login back, every few seconds and without a word. */
void bring_watch(struct bring *bring);
/* After it has ended. */
void bring_back(struct bring *bring);
void bring_free(struct bring *bring);
