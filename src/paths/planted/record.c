/* Writing down what is there: see record.h. */
#include "paths/planted/record.h"

#include "paths/index/look.h"
#include "paths/planted/seen.h"

#define RECORDED_MAX (1000 * 1000)

struct directory {
	struct recording *recording;
	const char *path;
	bool is_hooks;
};

static int record_entry(void *arg, int fd, const char *leaf)
{
	struct directory *directory = arg;
	struct recording *recording = directory->recording;
	struct names_stat stat;
	if ((directory->is_hooks && git_look_is_sample(leaf)) || !names_stat(fd, leaf, &stat))
		return 0;
	if (directory->is_hooks && !git_look_could_run(leaf, &stat))
		return 0;
	if (recording->before->count >= SEEN_MAX || names_now_us() > recording->deadline_us) {
		recording->before->complete = false;
		return 0;
	}
	return seen_add(recording->arena, recording->before,
	                arena_printf(recording->arena, "%s/%s", directory->path, leaf), &stat, NULL);
}

int record_directory(struct recording *recording, const char *path, bool is_hooks)
{
	struct directory directory = { recording, path, is_hooks };
	return git_look_each(&recording->look, path, RECORDED_MAX, record_entry, &directory) < 0 ? -1 : 0;
}

int record_config(struct recording *recording, const char *path)
{
	struct git_config_before *config = arena_alloc(recording->arena, sizeof(*config));
	if (!config || git_look_config_before(&recording->look, recording->arena, path, config) < 0)
		return -1;
	return seen_add(recording->arena, recording->before, path, NULL, config);
}

int record_git_file(struct recording *recording, const char *path)
{
	return git_look_leads_inside(&recording->look, path)
	               ? seen_add(recording->arena, recording->before, path, NULL, NULL) : 0;
}
