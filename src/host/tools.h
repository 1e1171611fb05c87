/* What of a caller's home is shown to commands (toolchains), and the git identity: host/toolchain.h and
 * host/git-identity.h, found once and cached until a change is reported. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/place.h"
#include "base/host-watch.h"

/* What it is about; all borrowed. Two that are alike in every part have the same answer. */
struct host_tools_request {
	const char *const *environment;         /* the caller's, K=V, ended by NULL */
	const struct strings *chosen;           /* or NULL: all */
	const struct strings *writable;         /* what commands can change, by every name */
	const char *workspace, *inside_home;
	const char *tools_dir;                  /* shown, too; or NULL */
	bool only_tools_dir;
	uint64_t mounts;                        /* the version of the posts */
	unsigned user;                          /* on whose behalf it is looked */
};

#define HOST_GIT_IGNORE "/etc/gitignore" /* inside: what the caller has git ignore everywhere */

struct host_tools {
	struct host_entries shown;
	struct host_caches caches;
	struct places masked;
	struct strings environment;
	const char *git_config, *git_ignore;    /* texts; or NULL */
};

struct host_tools_kept;
/* Shared by threads. NULL when memory is short. */
struct host_tools_kept *host_tools_new(struct host_watch *host_watch);
void host_tools_free(struct host_tools_kept *kept);

int host_tools_find(struct arena *arena, struct host_tools_kept *kept, const struct host_tools_request *request,
                    struct host_tools *ret_tools, struct cordon_error *err) must_check;
