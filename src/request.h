/* What a caller asks for: one row per setting. */
#pragma once
#include <stdatomic.h>

#include "approval/gate.h"
#include "base/arena.h"
#include "cordon.h"
#include "policy/capability.h"
#include "profile/profile.h"

struct job_place;

struct cordon_request {
	struct arena arena;
	atomic_uint refs;                       /* a job keeps what its request names */
	const char *session, *workspace, *cwd, *driver, *manifest;
	enum view view;
	bool view_named;
	struct capability_set granted;          /* what the person at the command line grants on top of the baseline */
	bool no_spawn, no_network, tty, choose_toolchains, fresh;
	bool plain;                             /* the limits of a person's own command, and its output is not kept */
	bool one_stream;                        /* its stderr is its stdout */
	unsigned umask;
	bool find_top;                          /* the workspace is the git working tree that `workspace` lies in, if any */
	unsigned short rows, columns;           /* of the terminal */
	struct strings private_hosts;           /* of `granted.hosts`, those that may be at an address of this site */
	struct strings env, pass_env, toolchains, argv;
	char *const *environment;               /* of whoever asks; or NULL: the process's own */
	int stdin_fd;
	cordon_output_fn output;
	void *output_arg;
	bool has_approver;
	struct approver approver;               /* then of this request, instead of the cordon's */
	struct job_place *job;                  /* it is to be a job, and this is filled by step 1; or NULL */
};

/* The environment of whoever asks, and a variable of it, or NULL. A request that is NULL is the process's own. */
char *const *request_environment(const struct cordon_request *request);
const char *request_variable(const struct cordon_request *request, const char *name);
