/* The judgement: see toolchain-judge.h. Names of secrets are compared by text, which is safe because what is shown is
 * judged by its canonical path: a link to the home is the home. */
#include "host/toolchain-judge.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Beneath a home: never shown, neither they nor what holds them. */
static const char *const private_places[] = {
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".mozilla", ".password-store", ".pki", ".netrc",
	".git-credentials", ".config/gh", ".config/gcloud", ".config/git", ".config/cordon", ".local/share/keyrings",
	".local/share/cordon", ".local/state/cordon",
};
/* A directory with one of these in it is a home directory, or equivalent to one. */
static const char *const home_marks[] = { ".ssh", ".gnupg", ".aws", ".netrc" };
/* Nothing is put there: they are made anew inside. */
static const char *const kernel_places[] = { "/proc", "/sys", "/dev" };

static bool is_private(const char *path, const char *home)
{
	if (!path_within(path, home))
		return path_within(home, path);
	const char *rest = path + strlen(home);
	rest += *rest == '/';
	if (!*rest)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(private_places); i++)
		if (path_within(rest, private_places[i]) || path_within(private_places[i], rest))
			return true;
	return false;
}

bool judge_may_name(const struct judge *judge, const char *path)
{
	const char *slash = strrchr(path, '/');
	if (slash == path || text_has_control(path))
		return false;   /* "/" or a top-level directory */
	if (slash - path == 5 && !strncmp(path, "/home", 5))
		return false;   /* another person's home, be it empty */
	for (size_t i = 0; i < ARRAY_SIZE(kernel_places); i++)
		if (path_within(path, kernel_places[i]))
			return false;
	return !(judge->home && is_private(path, judge->home)) &&
	       !(judge->home_real && is_private(path, judge->home_real));
}

static bool is_somebodys_home(const struct judge *judge, const char *path)
{
	uncleared char mark[PATH_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(home_marks); i++) {
		int length = snprintf(mark, sizeof(mark), "%s/%s", path, home_marks[i]);
		if (length < 0 || (size_t)length >= sizeof(mark))
			return true;
		host_watch_path(judge->watches, mark);
		if (!access(mark, F_OK))
			return true;
	}
	return false;
}

bool judge_may_show(const struct judge *judge, const char *real, const char *beneath)
{
	/* /run holds sockets, which can be connected to even where nothing can be written. */
	return judge_may_name(judge, real) && !path_within(real, "/run") &&
	       ((beneath && path_within(real, beneath)) || !is_somebodys_home(judge, real));
}
