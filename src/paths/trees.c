/* Of step 4: which names in what was granted must be hidden, and which kept as they are. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "paths/trees.h"
#include "session/beneath.h"
#include "paths/index/look.h"
#include "host/whole-view.h"
#include "profile/profile.h"

/* How long rechecking the names in a tree may take; what is left over is rechecked by later commands. */
#define NAMES_BUDGET_US 2000

/* How many names of a tree can be covered: each is a mount. */
#define COVERS_MAX (32 * 1024)

/* The time for following the links among them: far more than it takes unless a command prepared the tree for that. */
#define LINKS_US (2 * 1000 * 1000)

static bool is_masked(const struct profile_input *input, const char *path)
{
	for (size_t i = 0; i < input->masked.count; i++)
		if (path_within(path, input->masked.items[i].path))
			return true;
	return false;
}

static bool is_granted_socket(const struct trees *trees, const char *path)
{
	for (size_t i = 0; i < trees->facts.sockets.count; i++)
		if (!strcmp(trees->facts.sockets.items[i].path, path))
			return true;
	return false;
}

static bool is_granted_by_name(const struct trees *trees, const char *path)
{
	return strings_find(trees->facts.by_name, path) >= 0;
}

/* Is it mounted read-only, with a directory around it? The narrowest grant decides; of two of the same path, the one
 * to be written. */
static bool is_in_read_only_tree(const struct trees *trees, const char *path)
{
	const struct places *grants[] = { &trees->facts.reads, &trees->facts.writes };
	const char *workspace = trees->facts.workspace.path;
	size_t narrowest = path_within(path, workspace) ? strlen(workspace) : 0;
	bool read_only = !narrowest;
	for (size_t i = 0; i < ARRAY_SIZE(grants); i++) {
		for (size_t j = 0; j < grants[i]->count; j++) {
			const struct place *place = &grants[i]->items[j];
			size_t length = strlen(place->path);
			bool to_be_written = grants[i] == &trees->facts.writes;
			if (!path_within(path, place->path) || length < narrowest ||
			    (length == narrowest && !to_be_written))
				continue;
			narrowest = length;
			read_only = !to_be_written && place->is_directory;
		}
	}
	return read_only;
}

/* Beneath a directory that was granted? One that was granted as a file is meant to be seen. */
static bool is_in_a_tree(const struct trees *trees, const char *path)
{
	const struct strings *roots = &trees->roots;
	for (size_t i = 0; i < roots->count; i++)
		if (path_within(path, roots->items[i]))
			return true;
	return false;
}

/* What a link leads to, where that is in a tree that was granted; elsewhere it is not there to be seen. 0, or a
 * negative errno: -ETIME where that takes too long. */
static int follow(struct trees *trees, const char *link, struct place *ret_place, struct strings *ret_way)
{
	uint64_t start_us = names_now_us();
	int result = beneath_follow(trees->arena, link, &trees->roots, ret_place, ret_way);
	trees->links_us += names_now_us() - start_us;
	if (trees->links_us > LINKS_US)
		return -ETIME;
	if (result < 0)
		return result;
	/* A directory that the link or the whole workspace lies in is more than any name is meant to cover. */
	bool too_much = ret_place->is_directory && (path_within(link, ret_place->path) ||
	                                            path_within(trees->facts.workspace.path, ret_place->path));
	return too_much || !is_in_a_tree(trees, ret_place->path) ? -ENOENT : 0;
}

/* A repository that a link or its own name passes off as what is read-only: commits must work. */
static bool must_stay_writable(const struct tree *tree, const struct name *name, bool is_directory)
{
	const char *slash = strrchr(name->path, '/');
	const struct git_tree git = { tree->fd, tree->place.path, &tree->before };
	return is_directory && (planted_is_repository(&git, name) ||
	                        (name->is_link && !strcasecmp(slash ? slash + 1 : name->path, ".git")));
}

/* Of so many some would be left open. */
static int refuse_crowd(const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path,
	     "there are more names in it to hide or to keep as they are than can be: over %d", COVERS_MAX);
	return fail_remedy(
		err,
		"remove what matches capabilities.deny or capabilities.protect there, or grant a smaller directory");
}

static int refuse_maze(const char *path, struct cordon_error *err)
{
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, path, "the symbolic links in it that must be followed take too long");
	return fail_remedy(
		err,
		"remove what matches capabilities.deny or capabilities.protect there, or grant a smaller directory");
}

/* In a workspace of cordon's own making, only what is found there by itself is (tree-names.c): no tree around it has a
 * word in it. */
static bool is_shown(const struct trees *trees, const struct tree *tree, const struct name *name, const char *path)
{
	const char *workspace = trees->facts.workspace.path;
	if (name->kind != NAME_MASKED || name->is_closed)
		return false;
	return is_granted_by_name(trees, path) || (trees->facts.own_workspace && path_within(path, workspace) &&
	                                                !path_within(tree->place.path, workspace));
}

/* A grant that a mask overrides is reported, with the grant that would not be. */
static int tell_hidden(struct trees *trees, const struct places *granted, const char *option, const struct place *mask)
{
	static const char note[] =
		"granted, but hidden: a name that holds secrets is, unless a person grants it by itself";
	for (size_t i = 0; i < granted->count; i++) {
		const char *path = granted->items[i].path;
		const char *grant =
			path_within(path, mask->path) ? arena_printf(trees->arena, "%s %s", option, mask->path) : "";
		if (!grant ||
		    (*grant && denials_add(trees->denials, trees->arena, CORDON_WALL_MASKED, path, note, grant) < 0))
			return -1;
	}
	return 0;
}

static int take_mask(struct trees *trees, const struct name *name, const struct place *place,
                     struct profile_input *input)
{
	if (places_add(trees->arena, &input->masked, place) < 0)
		return -1;
	if (name->kind == NAME_MASKED && !name->is_closed && !trees->hidden_count++)
		trees->hidden = place->path;
	return name->kind == NAME_MASKED && (tell_hidden(trees, &trees->facts.reads, "--read", place) < 0 ||
	                                     tell_hidden(trees, &trees->facts.writes, "--write", place) < 0) ? -1 : 0;
}

static int take_name(struct trees *trees, const struct tree *tree, const struct name *name,
                     struct profile_input *input)
{
	struct place place = { .is_directory = name->is_directory };
	struct strings way = { 0 };
	if (name->kind == NAME_JUDGED || name->is_shown)
		return 0;
	const char *link = place.path = arena_printf(trees->arena, "%s/%s", tree->place.path, name->path);
	if (!link)
		return -ENOMEM;
	int followed = name->is_link ? follow(trees, link, &place, &way) : 0;
	if (followed < 0)
		return followed == -ENOMEM || followed == -ETIME ? followed : 0;
	/* Beneath what is covered as a whole there is nothing left to cover. */
	if (is_masked(input, place.path) || (path_within(place.path, trees->facts.data_dir) &&
	                                     !path_within(place.path, trees->facts.workspace.path)))
		return 0;
	bool is_open_fifo = name->is_fifo && is_in_read_only_tree(trees, place.path);
	if (name->kind == NAME_FIFO && !is_open_fifo)
		return 0;
	if (name->kind == NAME_PROTECTED && !is_open_fifo) {
		bool writable = name->is_link ?
		                        place_is_within(place.path, &trees->facts.workspace, &trees->facts.writes) :
		                        tree->writable;
		if (!writable || must_stay_writable(tree, name, place.is_directory))
			return 0;
		return strings_add(trees->arena, &input->protect, place.path) < 0 ||
		       strings_add_all(trees->arena, &input->ways, &way) < 0 ? -ENOMEM : 0;
	}
	if (name->kind == NAME_SOCKET && is_granted_socket(trees, place.path))
		return 0;
	if (is_shown(trees, tree, name, place.path))
		return 0;
	if (take_mask(trees, name, &place, input) < 0 || strings_add_all(trees->arena, &input->ways, &way) < 0)
		return -ENOMEM;
	place.alias = link;
	return name->is_link && places_add(trees->arena, &trees->links, &place) < 0 ? -ENOMEM : 0;
}

static int take_names(struct trees *trees, const struct tree *tree, struct profile_input *input,
                      struct cordon_error *err)
{
	for (size_t i = 0; i < tree->before.count; i++) {
		int taken = take_name(trees, tree, &tree->before.items[i], input);
		if (taken < 0)
			return taken == -ETIME ? refuse_maze(tree->place.path, err) : fail_oom(err);
	}
	if (!tree->before.note)
		return 0;
	input->unmasked = !input->unmasked ? tree->before.note :
	                                     arena_printf(trees->arena, "%s; %s: %s", input->unmasked, tree->place.path,
	                                                  tree->before.note);
	/* In what it may write, the command's end tells. */
	bool told = tree->writable || !tree->before.unseen;
	return !input->unmasked || (!told && denials_add(trees->denials, trees->arena, CORDON_WALL_MASKED,
	                                                 tree->place.path, tree->before.note, "") < 0)
	               ? fail_oom(err) : 0;
}

/* Names are looked for in what was granted, which is what will be mounted. */
static int require_same(const struct place *place, int fd, struct cordon_error *err)
{
	struct stat info;
	if (fstat(fd, &info) == 0 && (uint64_t)info.st_dev == place->device && info.st_ino == place->inode)
		return 0;
	fail(err, CORDON_E_CAPABILITY_DENIED, 0, place->path,
	     "the path was replaced by something else while the command was being started");
	return fail_boundary(err, "filesystem");
}

/* `fd` is the place where that is open already, or -1. */
static int add_tree(struct trees *trees, const struct place *place, int fd, bool writable, struct cordon_error *err)
{
	struct tree *tree = &trees->items[trees->count];
	if (!place->is_directory)
		return 0;
	*tree = (struct tree){ .place = *place,
		               .writable = writable,
		               .fd = fd >= 0 ? fd : open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) };
	if (tree->fd < 0)
		return trees->facts.dry ? 0 :
		                          fail(err, CORDON_E_CAPABILITY_DENIED, errno, place->path,
		                               "cannot look for names to protect");
	trees->count++;
	return fd < 0 ? require_same(place, tree->fd, err) : 0;
}

static bool is_covered(const struct tree *tree, const struct name *name)
{
	return name->kind != NAME_JUDGED && !name->is_shown && (name->kind != NAME_FIFO || !tree->writable);
}

static size_t count_covers(const struct tree *tree)
{
	size_t count = 0;
	for (size_t i = 0; i < tree->before.count; i++)
		count += is_covered(tree, &tree->before.items[i]);
	return count;
}

/* If there are more names than can be covered, those that commands made are left out before the owner's, and that is
 * reported. A protected name that is left out is still judged when the command has ended. */
static int make_room(struct trees *trees, struct tree *tree, struct cordon_error *err)
{
	static const char note[] =
		"names that commands made are neither hidden nor kept as they are: there are too many";
	struct judged_record record;
	struct names *names = &tree->before;
	size_t covers = names->too_many ? SIZE_MAX : count_covers(tree), kept = 0;
	if (covers <= COVERS_MAX)
		return 0;
	if (names->too_many || !tree->judged || !judged_load(tree->judged, trees->arena, &record))
		return refuse_crowd(tree->place.path, err);
	for (size_t i = 0; i < names->count; i++)
		if (!is_covered(tree, &names->items[i]) || !judged_is_made(&record, tree->fd, &names->items[i]))
			names->items[kept++] = names->items[i];
	const char *told = arena_printf(trees->arena, "%zu %s", names->count - kept, note);
	names->count = kept;
	if (count_covers(tree) > COVERS_MAX)
		return refuse_crowd(tree->place.path, err);
	return !told || denials_add(trees->denials, trees->arena, CORDON_WALL_MASKED, tree->place.path, told, "") < 0
	               ? fail_oom(err) : 0;
}

struct names_keep trees_keep(struct trees *trees)
{
	return (struct names_keep){ .place = &trees->names, .memory = trees->facts.memory, .mounts = trees->mounts };
}

static int search(struct trees *trees, struct tree *tree, struct profile_input *input, struct cordon_error *err)
{
	const struct names_search search = { true, trees_keep(trees), NAMES_BUDGET_US };
	if (tree_names_find(trees, trees->arena, tree, &search, &tree->before, err) < 0)
		return -1;
	if (trees_judge_shown(trees, tree) < 0)
		return fail_oom(err);
	if (make_room(trees, tree, err) < 0)
		return -1;
	return take_names(trees, tree, input, err);
}

static int look_at(struct trees *trees, const struct place *place, struct profile_input *input,
                   struct cordon_error *err)
{
	size_t known = trees->count;
	if (add_tree(trees, place, -1, false, err) < 0)
		return -1;
	return trees->count > known ? search(trees, &trees->items[known], input, err) : 0;
}

/* Of the base view, /opt is where third-party services live; their sockets need a grant like any other. */
static int find_system_sockets(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	const struct strings none = { 0 };
	const struct name_rules rules = { &none, &none, &none };
	struct tree tree = { .place = { .path = "/opt", .is_directory = true } };
	auto_close int fd = open(tree.place.path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	tree.fd = fd;
	const struct names_keep keep = trees_keep(trees);
	if (names_find(trees->arena, fd, tree.place.path, &rules, &keep, NAMES_BUDGET_US, &tree.before, err) < 0)
		return -1;
	return take_names(trees, &tree, input, err);
}

static int add_roots(struct arena *arena, const struct places *places, struct strings *roots)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].is_directory && place_add_names(arena, roots, &places->items[i]) < 0)
			return -1;
	return 0;
}

/* With all of the host in view, names are looked for in the caller's home as in a granted tree. */
static bool find_home(struct trees *trees, enum view view, struct place *ret_home)
{
	const char *named = view == VIEW_HOST_READONLY ? trees->facts.home : NULL;
	/* Covered by a private one, it is not to be seen. */
	return named && beneath_resolve(trees->arena, named, ret_home, NULL, NULL) == 0 && ret_home->path[1] &&
	       strcmp(ret_home->path, trees->facts.private_home);
}

static int find_roots(struct trees *trees, enum view view)
{
	struct strings *roots = &trees->roots;
	struct arena *arena = trees->arena;
	struct place home;
	return place_add_names(arena, roots, &trees->facts.workspace) < 0 ||
	       add_roots(arena, &trees->facts.writes, roots) < 0 ||
	       add_roots(arena, &trees->facts.reads, roots) < 0 ||
	       (find_home(trees, view, &home) && place_add_names(arena, roots, &home) < 0) ? -1 : 0;
}

/* What is there under protected names, in each of the writable trees now that they are all known. */
static int record(struct trees *trees, struct cordon_error *err)
{
	struct git_tree *items = arena_alloc(trees->arena, trees->count * sizeof(*items));
	struct git_trees all = { .items = items };
	if (!items)
		return fail_oom(err);
	for (size_t i = 0; i < trees->count; i++, all.count++) {
		const struct tree *tree = &trees->items[i];
		items[i] = (struct git_tree){ tree->fd, tree->place.path, &tree->before };
	}
	for (size_t i = 0; i < all.count; i++) {
		struct planted_before *planted = &trees->items[i].planted;
		if (planted_record(trees->arena, &all, &items[i], planted, err) < 0)
			return -1;
		/* What is not recorded could not be told from what the command makes. */
		if (!planted->complete) {
			fail(err, CORDON_E_CAPABILITY_DENIED, 0, items[i].root_path,
			     "there is more under protected names in it than can be recorded in 2 s");
			return fail_remedy(
				err, "remove repositories that you do not need there, or grant a smaller directory");
		}
	}
	return 0;
}

int trees_find(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	const struct places *reads = &trees->facts.reads, *writes = &trees->facts.writes;
	const char *cache = arena_printf(trees->arena, "%s/names", trees->facts.data_dir);
	trees->items = arena_alloc(trees->arena, (reads->count + writes->count + 2) *
	                                                                  sizeof(*trees->items));
	if (!trees->items || !cache || find_roots(trees, input->view) < 0)
		return fail_oom(err);
	trees->names = (struct names_place){ .path = cache, .may_make = !trees->facts.dry, .fd = -1 };
	if (add_tree(trees, &trees->facts.workspace, trees->facts.workspace_fd, true, err) < 0)
		return -1;
	for (size_t i = 0; i < writes->count; i++)
		if (add_tree(trees, &writes->items[i], -1, true, err) < 0)
			return -1;
	if (trees_open_records(trees, err) < 0)
		return -1;
	for (size_t i = 0; i < trees->count; i++)
		if (search(trees, &trees->items[i], input, err) < 0)
			return -1;
	if (record(trees, err) < 0 || trees_begin(trees, err) < 0)
		return -1;
	for (size_t i = 0; i < reads->count; i++)
		if (look_at(trees, &reads->items[i], input, err) < 0)
			return -1;
	return input->view == VIEW_SYSTEM ? find_system_sockets(trees, input, err) : 0;
}

int trees_keep_read_only(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	const struct strings *paths = trees->facts.read_only;
	for (size_t i = 0; i < paths->count; i++) {
		struct place place;
		/* By whatever name it is called. What is missing elsewhere is no matter here. */
		bool found = beneath_resolve(trees->arena, paths->items[i], &place, NULL, err) == 0;
		if (!found && place_is_within(paths->items[i], &trees->facts.workspace, &trees->facts.writes))
			return fail_boundary(err, "filesystem");
		if (found && place_is_within(place.path, &trees->facts.workspace, &trees->facts.writes) &&
		    strings_add(trees->arena, &input->protect, place.path) < 0)
			return fail_oom(err);
	}
	return 0;
}

int trees_mask_whole_view(struct trees *trees, struct profile_input *input, struct cordon_error *err)
{
	struct place home;
	if (input->view != VIEW_HOST_READONLY)
		return 0;
	if (find_home(trees, input->view, &home) && look_at(trees, &home, input, err) < 0)
		return -1;
	struct places masks = { 0 };
	if (whole_view_masks(trees->arena, trees->facts.home, &masks) < 0)
		return fail_oom(err);
	for (size_t i = 0; i < masks.count; i++)
		if (!is_granted_socket(trees, masks.items[i].path) && !is_granted_by_name(trees, masks.items[i].path) &&
		    !is_masked(input, masks.items[i].path) &&
		    places_add(trees->arena, &input->masked, &masks.items[i]) < 0)
			return fail_oom(err);
	return 0;
}
