/* A file that was shown and that a command of a session changed stays visible to that session, or it would disappear
 * in the middle of the work. The contents of the shown files of a tree at the end of the session's last command are
 * kept as hashes; at the next start a file with such contents is shown. A file that changed while no command ran has
 * other contents. */
#include <stdlib.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/id.h"
#include "base/sha256.h"
#include "paths/index/cache.h"
#include "paths/index/shown.h"
#include "paths/trees.h"

#define RECORD_MAX (1u << 20)

/* Of the session and the tree. */
static void record_name(const struct trees *trees, const struct tree *tree, char ret_name[64])
{
	crypto_hash_sha256_state state;
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[33];
	crypto_hash_sha256_init(&state);
	sha256_update(&state, trees->facts.session_id, strlen(trees->facts.session_id) + 1);
	sha256_update(&state, tree->place.path, strlen(tree->place.path));
	sha256_final(&state, hash);
	snprintf(ret_name, 64, "shown-%s", sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hex) / 2));
}

/* "HASH PATH", a line each. */
static int load(struct trees *trees, const struct tree *tree, struct strings *ret_lines)
{
	char name[64];
	auto_free char *text = NULL;
	size_t length;
	int directory = names_cache_place(&trees->names);
	record_name(trees, tree, name);
	if (directory < 0 || file_read(directory, name, RECORD_MAX, &text, &length) < 0)
		return 0;
	for (char *line = text, *rest; *line; line = rest) {
		size_t size = strcspn(line, "\n");
		rest = line + size + (line[size] == '\n');
		if (strings_add(trees->arena, ret_lines, arena_strndup(trees->arena, line, size)) < 0)
			return -1;
	}
	return 0;
}

/* Later commands have the time for more of them, since what was read is kept. */
static int tell_late(const struct trees *trees, const struct tree *tree)
{
	const char *note = !tree->before.late ? ""
	                                      : arena_printf(trees->arena,
	                                                     "files with names that may hold secrets were not judged "
	                                                     "in time: %zu; hidden this time",
	                                                     tree->before.late);
	return !note || (*note && denials_add(trees->denials, trees->arena, CORDON_WALL_MASKED, tree->place.path, note,
	                                      "") < 0) ? -1 : 0;
}

static bool has_masked(const struct tree *tree)
{
	for (size_t i = 0; i < tree->before.count; i++)
		if (tree->before.items[i].kind == NAME_MASKED)
			return true;
	return false;
}

int trees_judge_shown(struct trees *trees, struct tree *tree)
{
	struct strings kept = { 0 };
	const bool has_record = trees->facts.session_id && !trees->facts.dry;
	if (!has_masked(tree))
		return 0;
	int directory = names_cache_place(&trees->names);
	tree->contents = contents_new(directory, tree->place.path);
	if (!tree->contents || (has_record && load(trees, tree, &kept) < 0) ||
	    shown_judge(trees->arena, tree->fd, tree->place.path, &trees->facts.set->deny, &kept, tree->contents,
	                &tree->before) < 0)
		return -1;
	for (size_t i = 0; has_record && i < tree->before.count; i++) {
		const char *path = tree->before.items[i].path;
		const char *line = tree->before.items[i].is_shown
		               ? shown_line(trees->arena, tree->fd, path, tree->contents) : NULL;
		if (line && strings_add(trees->arena, &tree->shown, line) < 0)
			return -1;
	}
	contents_store(tree->contents, directory);
	return tell_late(trees, tree);
}

static int store(struct trees *trees, const struct tree *tree, const char *text, size_t length)
{
	char name[64], temporary[ID_SIZE + 8], id[ID_SIZE];
	int directory = names_cache_place(&trees->names);
	record_name(trees, tree, name);
	id_make(id);
	snprintf(temporary, sizeof(temporary), "shown-%s", id);
	if (directory < 0 || length > RECORD_MAX || file_create(directory, temporary, text, length, NULL) < 0)
		return 0;
	if (renameat(directory, temporary, directory, name) < 0)
		unlinkat(directory, temporary, 0);
	return 0;
}

static int keep_tree(struct trees *trees, const struct tree *tree)
{
	auto_free char *text = malloc(RECORD_MAX);
	size_t length = 0;
	if (!text)
		return -1;
	for (size_t i = 0; i < tree->before.count; i++) {
		const struct name *name = &tree->before.items[i];
		const char *line = name->is_shown && !strchr(name->path, '\n')
		               ? shown_line(trees->arena, tree->fd, name->path, tree->contents) : NULL;
		if (!line)
			continue;
		/* What there is no room for is hidden from the next command. */
		if (length + strlen(line) + 1 >= RECORD_MAX)
			break;
		const char *path = arena_printf(trees->arena, "%s/%s", tree->place.path, name->path);
		if (!path)
			return -1;
		memcpy(text + length, line, strlen(line));
		length += strlen(line);
		text[length++] = '\n';
		if (strings_find(&tree->shown, line) < 0 &&
		    denials_add(trees->denials, trees->arena, CORDON_WALL_MASKED, path,
		                "changed by the command: it stays shown to this session, and is hidden from others "
		                "until git has it",
		                "") < 0)
			return -1;
	}
	return length ? store(trees, tree, text, length) : 0;
}

int trees_keep_shown(struct trees *trees)
{
	for (size_t i = 0; trees && trees->facts.session_id && i < trees->count; i++)
		if (trees->items[i].writable && keep_tree(trees, &trees->items[i]) < 0)
			return -1;
	return 0;
}
