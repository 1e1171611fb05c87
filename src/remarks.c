/* Of step 5: a command failed. The kernel tells a refusal to the program alone, so what was refused is taken from what
 * the program says, and named with the option that allows it. No decision depends on it. */
#include "walk.h"

#include <string.h>

#include "base/text.h"
#include "paths/index/globs.h"
#include "paths/trees.h"
#include "run/complaint.h"

#define WORDS_MAX 64                    /* of the output that are looked at */

/* Inside the system's own view, or what the driver makes: a command cannot write there, whatever is granted. */
static bool is_of_view(const char *path)
{
	static const char *const roots[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt",
		                             "/nix", "/etc", "/proc", "/dev", "/sys",   "/run" };
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
		if (path_within(path, roots[i]))
			return true;
	return false;
}

/* Where a sandbox has other files than the host: what a command did not find there, and the option that shows one. */
static const struct place_of_its_own {
	const char *path, *option, *note;
} own_places[] = {
	{ "/tmp", "--read",
	  "the command did not find it: /tmp is a private one, and a file of the host's there must be granted" },
	{ "/var/tmp", "--read",
	  "the command did not find it: /var/tmp is a private one, and a file of the host's there must be granted" },
	{ "/run", "--socket",
	  "the command did not find it: /run is a private one, and a socket of the host's there must be granted" },
	{ "/var/run", "--socket",
	  "the command did not find it: /run is a private one, and a socket of the host's there must be granted" },
	{ "/etc", "--read",
	  "the command did not find it: of /etc only what programs need is there, and what sandbox.etc adds" },
};

static const struct place_of_its_own *find_own_place(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_places); i++)
		if (path_within(path, own_places[i].path) && strcmp(path, own_places[i].path) != 0)
			return &own_places[i];
	return NULL;
}

/* The home directory, or what homes or everything lie in: more than anybody would mean to grant. */
static bool is_too_wide(const struct execution *execution, const char *path)
{
	const char *home = execution->verdict.profile.home;
	return !strcmp(path, "/") || !strcmp(path, "/home") || (home && path_within(home, path)) ||
	       path_within(execution->verdict.session.workspace.path, path);
}

static bool is_granted(const struct execution *execution, const char *path, bool to_write)
{
	const struct grants *grants = &execution->verdict.grants;
	if (path_within(path, execution->verdict.session.workspace.path))
		return true;
	for (size_t i = 0; i < grants->writes.count; i++)
		if (path_within(path, grants->writes.items[i].path))
			return true;
	for (size_t i = 0; i < grants->reads.count && !to_write; i++)
		if (path_within(path, grants->reads.items[i].path))
			return true;
	return false;
}

const struct captured *remarks_source(const struct execution *execution)
{
	bool one = execution->request->tty || execution->request->one_stream;
	return &execution->run.outcome.streams[one ? CORDON_STDOUT : CORDON_STDERR];
}

/* What is to be made needs the directory it is to be in. */
static int tell_path(struct execution *execution, const char *path, bool is_write)
{
	const struct place_of_its_own *own = find_own_place(path);
	const char *slash = strrchr(path, '/'), *option = is_write ? "--write" : own ? own->option : "--read";
	const char *wanted =
		is_write ? arena_strndup(&execution->arena, path, slash > path ? (size_t)(slash - path) : 1) : path;
	const char *grant = !wanted                          ? NULL
	                    : is_too_wide(execution, wanted) ? ""
	                                                     : arena_printf(&execution->arena, "%s %s", option, wanted);
	const char *note =
		is_write ? "the command could not write it: it was not granted"
			 : "the command did not find it: outside the workspace nothing is there that was not granted";
	if (own)
		note = own->note;
	return !grant ? -1
	              : denials_add(&execution->denials, &execution->arena, CORDON_WALL_FILESYSTEM, path, note, grant);
}

/* What the command says it did not find, where that lies outside of all that was granted. Whether there is such a file
 * is not looked at: that would tell the command. Nor is a grant named for what holds secrets by its name. */
static int tell_outside(struct execution *execution)
{
	const struct captured *said = remarks_source(execution);
	const struct name_rules rules = { &execution->verdict.grants.set.deny, NULL, NULL };
	struct complaint_path found;
	struct cordon_error untold;
	struct names_globs secret;
	if (execution->verdict.session.view != VIEW_SYSTEM || !complaint_find_path(said->data, said->length, &found))
		return 0;
	const char *path = *found.path == '/'
	                           ? found.path
	                           : arena_printf(&execution->arena, "%s/%s", execution->verdict.cwd.path, found.path);
	path = path ? path_normalise(&execution->arena, path) : NULL;
	if (!path || names_globs_compile(&execution->arena, "/", &rules, &secret, &untold) < 0)
		return -1;
	const bool is_write = found.is_write && !is_of_view(path);
	const struct place_of_its_own *own = find_own_place(path);
	if (is_granted(execution, path, is_write) || (is_of_view(path) && !found.is_write && !own) ||
	    names_globs_hide(&secret, "/", path) || (is_write && own))
		return 0;
	if (is_of_view(path) && found.is_write)
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_FILESYSTEM, path,
		                   "the system is read-only inside", "");
	return tell_path(execution, path, is_write);
}

/* The directory of PATH that the word lies in, or is; or NULL. */
static const char *find_on_path(const struct execution *execution, struct arena *arena, const char *word)
{
	const struct strings *kept = &execution->verdict.grants.kept;
	const char *whole = *word == '/' ? word : arena_printf(arena, "%s/%s", execution->verdict.cwd.path, word);
	whole = whole ? path_normalise(arena, whole) : NULL;
	for (size_t i = 0; whole && i < kept->count; i++)
		if (path_within(whole, kept->items[i]))
			return kept->items[i];
	return NULL;
}

static const char on_path[] = "a directory of PATH stays as it is, since what lies there runs outside: do that outside, "
                              "or take it off PATH";

/* It could not change, move or remove what is kept as it is, or a directory around that. */
static int tell_kept(struct execution *execution)
{
	const struct captured *said = remarks_source(execution);
	const char *note = "a command may not change, move or remove it, nor a directory around it, since it decides "
	                   "what runs later: do that outside";
	const char *kept = NULL;
	char word[256];
	size_t at = 0;
	for (int i = 0;
	     i < WORDS_MAX && !kept && complaint_next_word(said->data, said->length, &at, word, sizeof(word)); i++) {
		kept = trees_kept_as_it_is(execution->trees, execution->verdict.cwd.path, word);
		if (!kept && (kept = find_on_path(execution, &execution->arena, word)))
			note = on_path;
	}
	/* The broker of git's configuration has said why. */
	for (size_t i = 0; kept && i < execution->denials.count; i++)
		if (!strcmp(execution->denials.items[i].what, kept))
			return 0;
	return !kept ? 0 : denials_add(&execution->denials, &execution->arena, CORDON_WALL_PROTECTED, kept, note, "");
}

/* It could not write to something that it named by no absolute path, and nothing else is known about that. Where a
 * directory of PATH is in the workspace or a grant, that is the likeliest; a program that builds something may then have
 * named a file from another directory, and ninja tells what compilers say on standard output. */
static int tell_read_only(struct execution *execution)
{
	const struct captured *said = remarks_source(execution), *out = &execution->run.outcome.streams[CORDON_STDOUT];
	const struct strings *kept = &execution->verdict.grants.kept;
	if (denials_have(&execution->denials, execution->run.denied_before, CORDON_WALL_FILESYSTEM,
	                 CORDON_WALL_MASKED) ||
	    (complaint_find(said->data, said->length) != COMPLAINT_READ_ONLY &&
	     (!kept->count || complaint_find(out->data, out->length) != COMPLAINT_READ_ONLY)))
		return 0;
	if (kept->count)
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_PROTECTED, kept->items[0],
		                   on_path, "");
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_FILESYSTEM, "a read-only path",
	                   "it seems that the command may not write to it", "--write PATH");
}

/* Nothing asked the proxy for it: an address, the sandbox's own loopback, or a host that cannot be resolved here. */
static int tell_connection(struct execution *execution)
{
	const struct captured *said = remarks_source(execution);
	const char *wall = cordon_wall_name(CORDON_WALL_NETWORK);
	struct complaint_connection found;
	if (execution->verdict.grants.set.network == NETWORK_ALL ||
	    !complaint_find_connection(said->data, said->length, &found))
		return 0;
	for (size_t i = 0; i < execution->denials.count; i++)
		if (!strcmp(execution->denials.items[i].wall, wall))
			return 0;
	const char *grant = arena_printf(&execution->arena, "--net %s:%d", found.host, found.port);
	const bool is_loopback = !strcmp(found.host, "localhost") || !strncmp(found.host, "127.", 4);
	const char *note = is_loopback ? "the command could not reach it: inside, localhost is a loopback of its own"
	                               : "the command could not reach it";
	return !grant ? -1
	              : denials_add(&execution->denials, &execution->arena, CORDON_WALL_NETWORK, found.host, note,
	                            grant);
}

/* The names of what was left out stand in a comment of the configuration that the command has, each after a space. */
static bool is_left_out(const char *config, const char *key)
{
	size_t length = strlen(key);
	for (const char *at = config; (at = strstr(at, key)); at += length)
		if (at > config && at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n'))
			return true;
	return false;
}

/* git says of an alias that was left out that there is no such command. */
static int tell_alias(struct execution *execution)
{
	static const char before[] = "git: '", after[] = "' is not a git command";
	const struct captured *said = remarks_source(execution);
	const struct mount_plan *mounts = &execution->verdict.profile.mounts;
	const char *at = said->length ? memmem(said->data, said->length, before, strlen(before)) : NULL;
	const char *end = at ? memmem(at, said->length - (size_t)(at - said->data), after, strlen(after)) : NULL;
	if (!end)
		return 0;
	at += strlen(before);
	const char *key = end - at < 64 ? arena_printf(&execution->arena, "alias.%.*s", (int)(end - at), at) : NULL;
	bool left_out = false;
	for (size_t i = 0; key && i < mounts->count; i++)
		left_out |= mounts->ops[i].kind == MOUNT_TEXT && !strcmp(mounts->ops[i].target, "/etc/gitconfig") &&
		            is_left_out(mounts->ops[i].source, key);
	return !left_out ? 0
	                 : denials_add(&execution->denials, &execution->arena, CORDON_WALL_FILESYSTEM, key,
	                               "the git configuration of the user has it, but it could run a program, so "
	                               "commands do not have it",
	                               "");
}

/* A program may say nothing of a file that it did not find: then the first of them is named, if `any`. Where a limit, a
 * signal or a person ended the command, that is the reason. */
static int tell_hidden(struct execution *execution, bool any)
{
	const struct captured *said = remarks_source(execution);
	const struct outcome *outcome = &execution->run.outcome;
	const bool was_ended = outcome->limit_hit.name || execution->run.told_by || (any && outcome->signal);
	return was_ended || denials_have(&execution->denials, 0, CORDON_WALL_MASKED, CORDON_WALL_MASKED)
	               ? 0 : trees_tell_hidden(execution->trees, said->data, said->length, any);
}

int remarks_add_success(struct execution *execution)
{
	static const char busy[] = "evice or resource busy";
	const struct captured *said = remarks_source(execution);
	return execution->verdict.profile.walls & WALL_BIT(PROTECTED) && said->length &&
	                       memmem(said->data, said->length, busy, strlen(busy))
	               ? tell_kept(execution) : 0;
}

int remarks_add(struct execution *execution)
{
	const uint64_t walls = execution->verdict.profile.walls;
	const bool files = walls & WALL_BIT(FILESYSTEM), masked = walls & WALL_BIT(MASKED);
	return (files && (tell_outside(execution) < 0 || tell_alias(execution) < 0)) ||
	                       (walls & WALL_BIT(PROTECTED) && tell_kept(execution) < 0) ||
	                       (masked && tell_hidden(execution, false) < 0) ||
	                       (walls & WALL_BIT(NETWORK) && tell_connection(execution) < 0) ||
	                       (files && tell_read_only(execution) < 0) || (masked && tell_hidden(execution, true) < 0)
	               ? -1
	               : 0;
}
