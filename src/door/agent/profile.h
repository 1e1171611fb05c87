/* The profile of an agent that runs whole inside: what it may reach, and which of its files it brings along. A TOML
 * file, one for each agent, by the agent's name; a user's own comes before the one that ships.
 *
 *     title       how people call the agent
 *     program     what is started: a name that is looked for in PATH, or a path; NULL: it is not started whole
 *     terminal    whether it is given a fresh terminal where cordon has one
 *     hosts       as --net has them
 *     read,write  directories and files, as far as they exist
 *     toolchains  as --toolchain has them; none: all
 *     protect     names in a project that stay as they are, besides the usual (projects.def); after an exclamation
 *                 mark: one of the usual that does not
 *     variables   passed on where they are set; PREFIX_* stands for all that begin so
 *     copy        files and directories beneath the home that the session has a copy of, never written back
 *     [set]       variables that are set
 *     [limits]    as the options of cordon run are called, with _ for -
 *     [[part]]    file, members: of a JSON file these members only are copied
 *     [[login]]   file, changes: copied in, and copied back when only these members of it changed (see login.h) */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

#define PROFILE_SIZE_MAX (64u << 10)
#define PROFILE_PAIRS_MAX 64
#define PROFILE_FILES_MAX 16

/* A name and what belongs to it. */
struct profile_pair {
	const char *name, *value;
};

/* A file beneath the home, by its name from there, and members of it. */
struct profile_file {
	const char *name;
	struct strings members;
};

struct agent_profile {
	const char *title, *program;
	bool terminal;
	struct strings hosts, read, write, toolchains, protect, variables;
	struct strings copy;            /* from the home */
	struct profile_pair set[PROFILE_PAIRS_MAX], limits[PROFILE_PAIRS_MAX];
	size_t set_count, limit_count;
	struct profile_file parts[PROFILE_FILES_MAX], logins[PROFILE_FILES_MAX];
	size_t part_count, login_count;
};

/* `file` is what errors call it. Everything is the arena's. What is not known is an error, with its place in the file.
 */
int agent_profile_parse(struct arena *arena, const char *file, const char *text, size_t length,
                        struct agent_profile *ret_profile, struct cordon_error *err) must_check;

/* Where a profile was found. */
struct agent_profile_source {
	const char *file;               /* or NULL: it is in the program */
	const char *text;
	size_t length;
};

/* By its name: the user's, one in `share` (a directory, or NULL), the program's own. */
int agent_profile_find(struct arena *arena, const char *name, const char *share,
                       struct agent_profile_source *ret_source, struct cordon_error *err) must_check;
/* The names of all, sorted. */
int agent_profile_names(struct arena *arena, const char *share, struct strings *ret_names,
                        struct cordon_error *err) must_check;
/* The directory of the user's own; NULL: there is no home. */
const char *agent_profile_directory(struct arena *arena);
