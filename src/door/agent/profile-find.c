/* Where profiles are: see profile.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "door/agent/profile.h"

#define NAME_LENGTH_MAX 64
#define SUFFIX ".toml"

#define PROFILE(name)                                                                                                  \
	extern const unsigned char agent_profile_##name[];                                                             \
	extern const unsigned agent_profile_##name##_size;
#include "door/agent/profiles.def"
#undef PROFILE

static const struct {
	const char *name;
	const unsigned char *text;
	const unsigned *size;
} shipped[] = {
#define PROFILE(name) { #name, agent_profile_##name, &agent_profile_##name##_size },
#include "door/agent/profiles.def"
#undef PROFILE
};

const char *agent_profile_directory(struct arena *arena)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	if (config && *config == '/')
		return arena_printf(arena, "%s/cordon/agents", config);
	return home && *home == '/' ? arena_printf(arena, "%s/.config/cordon/agents", home) : NULL;
}

static bool is_name(const char *name, size_t length)
{
	return length && length <= NAME_LENGTH_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") >= length;
}

/* False: there is none. Root's is anybody's. */
static int read_file(struct arena *arena, const char *path, bool *ret_there, struct agent_profile_source *ret_source,
                     struct cordon_error *err)
{
	auto_free char *text = NULL;
	size_t length = 0;
	int number = -file_read_trusted(AT_FDCWD, path, PROFILE_SIZE_MAX, &text, &length);
	*ret_there = false;
	if (number == ENOENT || number == ENOTDIR)
		return 0;
	if (number && number != ENODATA) {
		fail(err, CORDON_E_CONFIG_INVALID, number == EPERM ? 0 : number, path, "%s",
		     number == EPERM ? "this profile is another user's, or others may change it"
		                     : "this profile cannot be read");
		return fail_remedy(err,
		                   "a profile is a regular file of yours or of root's, that nobody else may write to, "
		                   "of at most %u bytes",
		                   PROFILE_SIZE_MAX);
	}
	*ret_source = (struct agent_profile_source){ path, arena_strndup(arena, text ? text : "", length), length };
	*ret_there = true;
	return ret_source->text ? 0 : fail_oom(err);
}

int agent_profile_names(struct arena *arena, const char *share, struct strings *ret_names, struct cordon_error *err)
{
	const char *directories[] = { agent_profile_directory(arena), share };
	struct strings names = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++)
		if (strings_add(arena, &names, shipped[i].name) < 0)
			return fail_oom(err);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		DIR *directory = directories[i] ? opendir(directories[i]) : NULL;
		for (struct dirent *entry; directory && (entry = readdir(directory));) {
			size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);
			if (length <= suffix || strcmp(entry->d_name + length - suffix, SUFFIX) != 0 ||
			    !is_name(entry->d_name, length - suffix))
				continue;
			const char *name = arena_strndup(arena, entry->d_name, length - suffix);
			if (!name || (strings_find(&names, name) < 0 && strings_add(arena, &names, name) < 0)) {
				closedir(directory);
				return fail_oom(err);
			}
		}
		if (directory)
			closedir(directory);
	}
	for (size_t i = 1; i < names.count; i++)
		for (size_t j = i; j && strcmp(names.items[j - 1], names.items[j]) > 0; j--) {
			const char *other = names.items[j];
			names.items[j] = names.items[j - 1];
			names.items[j - 1] = other;
		}
	*ret_names = names;
	return 0;
}

static int refuse_name(struct arena *arena, const char *name, const char *share, struct cordon_error *err)
{
	struct strings names;
	const char *directory = agent_profile_directory(arena);
	if (agent_profile_names(arena, share, &names, err) < 0)
		return -1;
	const char *nearest = text_nearest(name, names.items, names.count);
	fail(err, CORDON_E_NOT_FOUND, 0, name, "there is no profile for this agent");
	if (nearest)
		return fail_remedy(err, "did you mean %s?", nearest);
	return fail_remedy(err, "see cordon agent list, or write %s/%s" SUFFIX,
	                   directory ? directory : "~/.config/cordon/agents", name);
}

int agent_profile_find(struct arena *arena, const char *name, const char *share,
                       struct agent_profile_source *ret_source, struct cordon_error *err)
{
	const char *directories[] = { agent_profile_directory(arena), share };
	bool there = false;
	if (!is_name(name, strlen(name))) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, name, "this is no name of an agent");
		return fail_remedy(err, "see cordon agent list");
	}
	for (size_t i = 0; i < ARRAY_SIZE(directories) && !there; i++) {
		const char *path = directories[i] ? arena_printf(arena, "%s/%s" SUFFIX, directories[i], name) : NULL;
		if (directories[i] && !path)
			return fail_oom(err);
		if (path && read_file(arena, path, &there, ret_source, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(shipped) && !there; i++)
		if ((there = !strcmp(shipped[i].name, name)))
			*ret_source =
				(struct agent_profile_source){ NULL, (const char *)shipped[i].text, *shipped[i].size };
	return there ? 0 : refuse_name(arena, name, share, err);
}
