/* See inside.h. */
#include "door/agent/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int inside_open_parent(int root, const char *name, bool make, const char **ret_last)
{
	char part[NAME_MAX + 1];
	auto_close int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	for (size_t length; at >= 0 && name[length = strcspn(name, "/")]; name += length + 1) {
		if (length > NAME_MAX)
			return -1;
		memcpy(part, name, length);
		part[length] = '\0';
		int inner = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner < 0 && make &&
		    (errno == ENOENT || ((errno == ENOTDIR || errno == ELOOP) && unlinkat(at, part, 0) == 0)) &&
		    mkdirat(at, part, 0700) == 0)
			inner = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close_fd(&at);
		at = inner;
	}
	*ret_last = name;
	return take_fd(&at);
}

int inside_home(struct arena *arena, struct cordon *cordon, const char *session, const char **ret_home,
                struct cordon_error *err)
{
	auto_free char *text = NULL;
	if (cordon_session_show(cordon, session, &text, err) < 0)
		return -1;
	json_t *shown = json_loads(text, 0, NULL);
	const char *named = json_string_value(json_object_get(shown, "home")),
		   *home = named ? arena_strdup(arena, named) : NULL;
	json_decref(shown);
	const char *slash = home ? strrchr(home, '/') : NULL;
	const char *above = slash ? arena_strndup(arena, home, (size_t)(slash - home)) : NULL;
	if (!above)
		return fail_oom(err);
	if ((mkdir(above, 0700) < 0 && errno != EEXIST) || (mkdir(home, 0700) < 0 && errno != EEXIST))
		return fail(err, CORDON_E_INTERNAL, errno, home, "the session's home cannot be made");
	*ret_home = home;
	return 0;
}
