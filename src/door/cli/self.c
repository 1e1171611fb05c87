/* See self.h. */
#include "door/cli/self.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/pid.h"

int self_path(struct arena *arena, const char **ret_path, struct cordon_error *err)
{
	char path[PATH_MAX];
	int number = -pid_own_program(path, sizeof(path));
	if (number)
		return fail(err, CORDON_E_INTERNAL, number, "", "cannot tell where this program lies");
	*ret_path = arena_strdup(arena, path);
	return *ret_path ? 0 : fail_oom(err);
}

int self_beside(struct arena *arena, const char *name, const char **ret_path, struct cordon_error *err)
{
	const char *own, *path;
	if (self_path(arena, &own, err) < 0)
		return -1;
	path = arena_printf(arena, "%.*s/%s", (int)(strrchr(own, '/') - own), own, name);
	if (!path)
		return fail_oom(err);
	if (access(path, X_OK) < 0) {
		fail(err, CORDON_E_NOT_FOUND, errno, path, "this program of cordon's is missing");
		return fail_remedy(err, "install cordon whole: it belongs beside cordon");
	}
	*ret_path = path;
	return 0;
}

int self_beneath_prefix(struct arena *arena, const char *name, const char **ret_path, struct cordon_error *err)
{
	const char *own;
	if (self_path(arena, &own, err) < 0)
		return -1;
	const char *slash = strrchr(own, '/'), *above = slash;
	while (above && above > own && *--above != '/')
		;
	*ret_path = arena_printf(arena, "%.*s/%s", (int)(above ? above - own : 0), own, name);
	return *ret_path ? 0 : fail_oom(err);
}
