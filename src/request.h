/* What a caller asks for: one row per setting. */
#pragma once
#include "base/arena.h"
#include "cordon.h"
#include "policy/capability.h"
#include "profile/profile.h"

struct cordon_request {
	struct arena arena;
	const char *session, *workspace, *cwd, *driver, *manifest;
	enum view view;
	bool view_named;
	struct capability_set granted;          /* what the person at the command line grants on top of the baseline */
	bool no_spawn, no_network, tty, choose_toolchains;
	unsigned short rows, columns;           /* of the terminal */
	struct strings env, pass_env, toolchains, argv;
	int stdin_fd;
	cordon_output_fn output;
	void *output_arg;
};
