/* The command's environment, built from nothing. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

/* Everything is borrowed for the call. Lists may be NULL, and so may what is marked. */
struct env_request {
	const struct strings *passthrough;      /* names, or PREFIX*, to take from the caller's environment where
	                                           they are set there */
	const struct strings *set;              /* NAME=VALUE */
	const struct strings *toolchains;       /* NAME=VALUE; PATH adds to the end of the caller's instead of
	                                           replacing it */
	const char *tools_dir;                  /* its bin/ comes first on PATH; or NULL */
	const char *user;                       /* USER and LOGNAME; or NULL */
	const char *home, *workspace;
	const char *session_id, *sandbox_id;
	const char *driver, *network;
	const char *tmpdir;                     /* NULL: /tmp */
	const char *proxy;                      /* the URL for HTTP_PROXY and its like; or NULL */
	bool proxies_all;                       /* also this machine's own services: NO_PROXY is not set */
};

/* Later sources replace earlier ones: what is always taken from the caller (PATH, LANG, TERM and the like), toolchains,
 * passthrough, set. Last, what cordon itself sets, but for what is there by then; CORDON_* cannot be. Each name occurs
 * once. An error names the variable and never shows its value. `caller` is an environ, or NULL; the strings in
 * *ret_environment live in the arena. */
int env_build(struct arena *arena, char *const *caller, const struct env_request *request,
              struct strings *ret_environment, struct cordon_error *err) must_check;

/* May a request, configuration or toolchain name this variable? If not, the error says why. */
int env_check_name(const char *name, size_t length, struct cordon_error *err) must_check;

/* Likewise a name of `passthrough`. */
int env_check_pattern(const char *pattern, struct cordon_error *err) must_check;

/* Replaces the values of these, NAME or NAME=VALUE, with ENV_HIDDEN: for output. PATH stays. */
#define ENV_HIDDEN "(hidden)"
int env_hide(struct arena *arena, const struct strings *entries, struct strings *environment, struct cordon_error *err)
	must_check;
