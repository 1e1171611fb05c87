/* An agent's temporary directory: see agent-tmp.h. */
#include "door/agent/agent-tmp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/glob.h"
#include "base/text.h"
#include "door/agent/inside.h"

#define ENTRIES_MAX 1024
#define RETURNED_MAX 8          /* by one command; others of the conversation may end at the same moment */

const char *agent_tmp(struct arena *arena, enum agent_id agent)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (!agents[agent].tmp_variable || !home || *home != '/')
		return NULL;
	return cache && *cache == '/' && path_within(cache, home)
	               ? arena_printf(arena, "%s/cordon/%s", cache, agents[agent].name)
	               : arena_printf(arena, "%s/.cache/cordon/%s", home, agents[agent].name);
}

int agent_tmp_make(const char *path, struct cordon_error *err)
{
	char part[4096];
	struct stat st;
	for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
		if ((size_t)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path) >= sizeof(part))
			return fail(err, CORDON_E_INVALID_REQUEST, ENAMETOOLONG, path, "the path is too long");
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return fail(err, CORDON_E_INTERNAL, errno, part, "cannot make the agent's temporary directory");
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fail(err, CORDON_E_INTERNAL, errno, path, "cannot make the agent's temporary directory");
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, path, "this is no directory of yours");
		return fail_remedy(err, "remove it; cordon makes it anew");
	}
	return 0;
}

const char *agent_tmp_named(struct arena *arena, enum agent_id agent)
{
	const char *path = agent_tmp(arena, agent), *named = path ? getenv(agents[agent].tmp_variable) : NULL;
	return named && !strcmp(named, path) ? path : NULL;
}

bool agent_tmp_is_private(struct cordon *cordon)
{
	struct cordon_driver_facts facts;
	struct cordon_error untold;
	return cordon_driver_look(cordon, &facts, &untold) < 0 || facts.private_home;
}

/* Where the agent keeps what is its own, of all its conversations. */
static const char *own_directory(struct arena *arena, enum agent_id agent)
{
	const char *base = agent_tmp(arena, agent);
	return base && agents[agent].tmp_files ?
	               arena_printf(arena, "%s/%s-%u", base, agents[agent].name, (unsigned)geteuid()) : NULL;
}

int agent_tmp_kept(struct arena *arena, struct cordon *cordon, enum agent_id agent, const char **ret_path,
                   struct cordon_error *err)
{
	struct cordon_driver_facts facts;
	const char *path = own_directory(arena, agent);
	if (cordon_driver_look(cordon, &facts, err) < 0)
		return -1;
	if (!path || !facts.keeps_names)
		return 0;
	if (agent_tmp_make(path, err) < 0)
		return -1;
	*ret_path = path;
	return 0;
}

/* As the agent names a directory after a path. */
static const char *with_dashes(struct arena *arena, const char *path)
{
	char *name = arena_strdup(arena, path);
	for (char *at = name; at && *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9')))
			*at = '-';
	return name;
}

int agent_tmp_shown(struct arena *arena, enum agent_id agent, const char *id, const char *started,
                    const char **ret_path, struct cordon_error *err)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	const char *own = own_directory(arena, agent), *project = started ? with_dashes(arena, started) : NULL;
	if (!own || !project || strlen(project) > NAME_MAX || !id || !*id || id[strspn(id, plain)])
		return 0;
	const char *path = arena_printf(arena, "%s/%s/%s", own, project, id);
	if (!path)
		return fail_oom(err);
	if (agent_tmp_make(path, err) < 0)
		return -1;
	*ret_path = path;
	return 0;
}

/* ---- what commands leave there ----------------------------------------------------------------------------------- */

int agent_tmp_begin(struct arena *arena, struct cordon *cordon, enum agent_id agent, const char *session,
                    struct agent_tmp *ret_tmp, struct cordon_error *err)
{
	const char *path = agent_tmp_named(arena, agent), *home = getenv("HOME"), *last;
	struct agent_tmp tmp = { .files = agents[agent].tmp_files };
	*ret_tmp = (struct agent_tmp){ 0 };
	if (!path || !home || !tmp.files || !agent_tmp_is_private(cordon))
		return 0;
	tmp.outside = path;
	tmp.beneath = arena_printf(arena, "%s/", path + strlen(home) + 1);
	if (!tmp.beneath)
		return fail_oom(err);
	if (agent_tmp_make(path, err) < 0 || inside_home(arena, cordon, session, &tmp.home, err) < 0)
		return -1;
	auto_close int root = open(tmp.home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int directory = root < 0 ? -1 : inside_open_parent(root, tmp.beneath, true, &last);
	if (directory < 0)
		return fail(err, CORDON_E_INTERNAL, errno, tmp.home,
		            "the session's temporary directory cannot be made");
	*ret_tmp = tmp;
	return 0;
}

/* A path from / without . and .., on a line of its own or without one's end. */
static bool is_path(const char *text, size_t length)
{
	char path[PATH_MAX];
	if (length && text[length - 1] == '\n')
		length--;
	if (!length || length >= sizeof(path) || memchr(text, '\0', length))
		return false;
	memcpy(path, text, length);
	path[length] = '\0';
	return !text_has_control(path) && path_is_normal(path);
}

/* Never in the place of another. */
static void take(int inside, int outside, const char *name)
{
	auto_free char *text = NULL;
	struct stat info;
	size_t length = 0;
	if (fstatat(inside, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1 &&
	    file_read_any(inside, name, PATH_MAX, &text, &length) == 0 && is_path(text, length))
		(void)!file_create(outside, name, text, length, NULL);
	unlinkat(inside, name, 0);
}

void agent_tmp_end(const struct agent_tmp *tmp)
{
	const char *last;
	auto_close int root = tmp->outside ? open(tmp->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	auto_close int outside = root < 0 ? -1 : open(tmp->outside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int inside = outside < 0 ? -1 : inside_open_parent(root, tmp->beneath, false, &last);
	DIR *directory = inside < 0 ? NULL : fdopendir(inside);
	if (!directory) {
		close_fd(&inside);
		return;
	}
	struct dirent *entry;
	for (int seen = 0, taken = 0; taken < RETURNED_MAX && seen < ENTRIES_MAX && (entry = readdir(directory));
	     seen++)
		if (glob_match_text(tmp->files, entry->d_name)) {
			take(inside, outside, entry->d_name);
			taken++;
		}
	closedir(directory);
}
