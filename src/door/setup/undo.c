/* An edit taken back. In a file that was changed since, an entry is cordon's by its place and by the program that it
 * calls, however it is written now and whatever was added to it. What cannot be taken back with nothing else lost is an
 * error. */
#include <string.h>

#include "base/error.h"
#include "base/toml.h"
#include "door/setup/jsonc.h"
#include "door/setup/setup.h"

#define OTHER_FORM "cordon's entry in it has another form now"

static int refuse(const char *what, struct cordon_error *err)
{
	fail(err, CORDON_E_CONFIG_INVALID, 0, NULL, "%s", what);
	return fail_remedy(err, "remove cordon's entry by hand, and run setup --undo again");
}

static bool ends_word(char c)
{
	return !c || strchr(" \t\"'", c) != NULL;
}

/* Is what `made` runs in it, as words of its own? Of a hook's line what follows || is no part of that. */
static bool calls(const char *text, const char *made)
{
	const char *end = strstr(made, " || ");
	size_t length = end ? (size_t)(end - made) : strlen(made);
	for (const char *at = text; length && *at; at++)
		if (!strncmp(at, made, length) && ends_word(at[length]) && (at == text || ends_word(at[-1])))
			return true;
	return false;
}

/* ---- JSON
 * -------------------------------------------------------------------------------------------------------------- */

static bool is_ours(json_t *is, json_t *made)
{
	json_t *command = json_object_get(made, "command");
	if (json_equal(is, made))
		return true;
	if (command)
		return is_ours(json_object_get(is, "command"), command);
	if (json_is_array(made))
		return is_ours(json_array_get(is, 0), json_array_get(made, 0));
	return json_is_string(is) && json_is_string(made) && calls(json_string_value(is), json_string_value(made));
}

/* An object or array that was made for the entry goes with it, once it is empty. */
static int remove_empty(struct arena *arena, const struct edit *edit, size_t depth, const char *before,
                        const char **text, struct cordon_error *err)
{
	const char *path[EDIT_PATH_MAX] = { 0 };
	while (depth > 0 && depth < EDIT_PATH_MAX) {
		memcpy(path, edit->path, sizeof(path));
		path[depth] = NULL;
		json_t *was = before ? jsonc_get(before, path) : NULL, *is = jsonc_get(*text, path);
		bool goes = !was && is && json_object_size(is) + json_array_size(is) == 0;
		json_decref(was);
		json_decref(is);
		if (!goes)
			return 0;
		if (jsonc_remove(arena, *text, path, NULL, text, err) < 0)
			return -1;
		depth--;
	}
	return 0;
}

/* The member as it was before, or none. */
static int undo_member(struct arena *arena, const struct edit *edit, const char *before, const char **text,
                       struct cordon_error *err)
{
	json_t *is = jsonc_get(*text, edit->path), *was = NULL;
	bool ours = is_ours(is, edit->value), there = is != NULL;
	int result;
	json_decref(is);
	if (!ours)
		return there;
	if (before)
		was = jsonc_get(before, edit->path);
	if (was)
		result = jsonc_set(arena, *text, edit->path, was, text, err);
	else
		result = jsonc_remove(arena, *text, edit->path, NULL, text, err);
	json_decref(was);
	return result;
}

/* Where cordon's element is in the list; *ret_inner: where its hook is in that, SIZE_MAX: the whole element is
 * cordon's. */
static bool find_element(json_t *list, json_t *made, size_t *ret_index, size_t *ret_inner)
{
	json_t *hook = json_array_get(json_object_get(made, "hooks"), 0);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *each = json_array_get(list, i), *hooks = json_object_get(each, "hooks");
		bool ours = hook ? false : is_ours(each, made);
		size_t inner = SIZE_MAX;
		for (size_t j = 0; hook && j < json_array_size(hooks) && !ours; j++)
			if ((ours = is_ours(json_array_get(hooks, j), hook)))
				inner = json_array_size(hooks) > 1 ? j : SIZE_MAX;
		if (ours) {
			*ret_index = i;
			*ret_inner = inner;
			return true;
		}
	}
	return false;
}

static int undo_element(struct arena *arena, const struct edit *edit, size_t depth, const char **text,
                        struct cordon_error *err)
{
	for (;;) {
		const char *path[EDIT_PATH_MAX + 3] = { 0 };
		json_t *list = jsonc_get(*text, edit->path);
		size_t index = 0, inner = SIZE_MAX;
		bool found = find_element(list, edit->value, &index, &inner);
		json_decref(list);
		if (!found)
			return 0;
		memcpy(path, edit->path, depth * sizeof(*path));
		path[depth] = arena_printf(arena, "%zu", index);
		if (inner != SIZE_MAX) {
			path[depth + 1] = "hooks";
			path[depth + 2] = arena_printf(arena, "%zu", inner);
		}
		if (jsonc_remove(arena, *text, path, NULL, text, err) < 0)
			return -1;
	}
}

static bool is_blank(const char *text)
{
	return !text[strspn(text, " \t\r\n")];
}

/* An object with nothing in it. */
static bool is_empty(const char *text)
{
	const char *open = text + strspn(text, " \t\r\n"),
		   *close = *open == '{' ? open + 1 + strspn(open + 1, " \t\r\n") : open;
	return *close == '}' && is_blank(close + 1);
}

static int undo_json(struct arena *arena, const struct edit *edit, const char *before, const char *text,
                     const char **ret_text, struct cordon_error *err)
{
	size_t depth = 0;
	json_t *whole = jsonc_get(text, (const char *const[]){ NULL });
	bool is_valid = whole || is_blank(text);
	json_decref(whole);
	if (!is_valid)
		return refuse("this file is no longer valid JSON, with or without comments", err);
	while (edit->path[depth])
		depth++;
	int result = edit->kind == EDIT_SET ? undo_member(arena, edit, before, &text, err)
	                                    : undo_element(arena, edit, depth, &text, err);
	if (result == 0 &&
	    remove_empty(arena, edit, edit->kind == EDIT_SET ? depth - 1 : depth, before, &text, err) < 0)
		return -1;
	/* A file that cordon made, and nobody has put anything into. */
	*ret_text = !before && is_empty(text) ? NULL : text;
	return result;
}

/* ---- TOML: whole lines
 * ------------------------------------------------------------------------------------------------- */

static int parse(struct arena *arena, const struct edit *edit, const char *text, const struct toml_value **ret_root,
                 struct cordon_error *err)
{
	return toml_parse(arena, edit->file, text, strlen(text), ret_root, err);
}

static const char *text_of(const struct toml_value *table, const char *key)
{
	const struct toml_value *value = table && table->type == TOML_TABLE ? toml_member(table, key) : NULL;
	return value && value->type == TOML_STRING ? value->text : NULL;
}

static const char *line_end(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

static const char *line_of(const char *text, unsigned line)
{
	for (; line > 1; line--)
		text = line_end(text);
	return text;
}

static int replace(struct arena *arena, const char *text, const char *from, const char *to, const char *with,
                   const char **ret_text, struct cordon_error *err)
{
	const char *whole = arena_printf(arena, "%.*s%s%s", (int)(from - text), text, with, to);
	if (!whole)
		return fail_oom(err);
	*ret_text = whole;
	return 0;
}

/* The line as it was before, or none; a comment behind the value is the user's. */
static int undo_key(struct arena *arena, const struct edit *edit, const char *before, const char *text,
                    const char **ret_text, struct cordon_error *err)
{
	const struct toml_value *is, *made, *was;
	if (parse(arena, edit, text, &is, err) < 0 || parse(arena, edit, edit->text, &made, err) < 0)
		return -1;
	is = toml_member(is, edit->path[0]);
	made = toml_member(made, edit->path[0]);
	if (!is || !made)
		return 0;
	if (is->type != made->type ||
	    (is->type == TOML_STRING ? strcmp(is->text, made->text) != 0 : is->boolean != made->boolean))
		return 1;
	const char *line = line_of(text, is->line), *end = line_end(line), *with = "", *mark = strchr(line, '#'), *left;
	if (before && parse(arena, edit, before, &was, err) == 0 && (was = toml_member(was, edit->path[0]))) {
		const char *former = line_of(before, was->line);
		with = arena_strndup(arena, former, (size_t)(line_end(former) - former));
	} else if (mark && mark < end) {
		with = arena_strndup(arena, mark, (size_t)(end - mark));
	}
	if (!with)
		return fail_oom(err);
	if (replace(arena, text, line, end, with, &left, err) < 0)
		return -1;
	if (parse(arena, edit, left, &was, err) < 0)
		return refuse(OTHER_FORM, err);
	*ret_text = left;
	return 0;
}

static const char *program_of(const struct toml_value *table)
{
	const char *program = text_of(table, "program");
	return program ? program : text_of(table, "command");
}

/* The table of the edit's path: the element with this id of a list, or the member of this name. */
static const struct toml_value *find_table(const struct toml_value *root, const struct edit *edit)
{
	const struct toml_value *list = toml_member(root, edit->path[0]);
	if (list && list->type == TOML_TABLE && edit->path[1])
		return toml_member(list, edit->path[1]);
	for (size_t i = 0; list && list->type == TOML_ARRAY && edit->path[1] && i < list->count; i++) {
		const char *id = text_of(list->items[i], "id");
		if (id && !strcmp(id, edit->path[1]))
			return list->items[i];
	}
	return NULL;
}

static bool is_header(const char *line)
{
	return line[strspn(line, " \t")] == '[';
}

/* Is this the header of a table in that whose header is `of`? */
static bool is_header_within(const char *line, const char *of)
{
	line += strspn(line, " \t[");
	of += strspn(of, " \t[");
	size_t length = strcspn(of, " \t]");
	return !strncmp(line, of, length) && line[length + strspn(line + length, " \t")] == '.';
}

/* Comments before a header belong to that, and blank lines to what follows. */
static const char *section_end(const char *header)
{
	const char *end = line_end(header);
	for (const char *line = end; *line && !is_header(line); line = line_end(line))
		if (!strchr("#\r\n", line[strspn(line, " \t")]))
			end = line_end(line);
	return end;
}

/* Nothing of it is left but what holds `gone`. */
static bool holds_only(const struct toml_value *value, const struct toml_value *gone)
{
	if (value == gone)
		return true;
	if ((value->type != TOML_TABLE && value->type != TOML_ARRAY) || !value->count)
		return false;
	for (size_t i = 0; i < value->count; i++)
		if (!holds_only(value->items[i], gone))
			return false;
	return true;
}

static bool is_same_scalar(const struct toml_value *one, const struct toml_value *other)
{
	if (one->type == TOML_STRING || one->type == TOML_DATETIME)
		return !strcmp(one->text, other->text);
	return one->integer == other->integer && one->boolean == other->boolean && !(one->number < other->number) &&
	       !(one->number > other->number);
}

/* Is `now` what `was` is without `gone`? */
static bool is_rest(const struct toml_value *was, const struct toml_value *now, const struct toml_value *gone)
{
	size_t at = 0;
	if (was->type != now->type)
		return false;
	if (was->type != TOML_TABLE && was->type != TOML_ARRAY)
		return is_same_scalar(was, now);
	for (size_t i = 0; i < was->count; i++) {
		const struct toml_value *old = was->items[i], *left = at < now->count ? now->items[at] : NULL;
		bool there = left && old != gone && (was->type == TOML_ARRAY || !strcmp(old->key, left->key));
		if (there ? !is_rest(old, left, gone) : !holds_only(old, gone))
			return false;
		at += there;
	}
	return at == now->count;
}

static int undo_block(struct arena *arena, const struct edit *edit, const char *text, const char **ret_text,
                      struct cordon_error *err)
{
	const struct toml_value *root, *made, *is, *rest;
	if (parse(arena, edit, text, &root, err) < 0 || parse(arena, edit, edit->text, &made, err) < 0)
		return -1;
	is = find_table(root, edit);
	made = find_table(made, edit);
	const char *program = program_of(is), *own = program_of(made);
	if (!is || !own)
		return 0;
	if (!program || !calls(program, own))
		return 1;
	const char *header = line_of(text, is->line), *from = header, *left = NULL;
	if (!is_header(header))
		return refuse(OTHER_FORM, err);
	const char *end = section_end(header);
	for (const char *line = end; *line && (!is_header(line) || is_header_within(line, header));
	     line = line_end(line))
		if (is_header(line))
			end = section_end(line);
	/* The empty line that was put before it. */
	if (from - text >= 2 && from[-1] == '\n' && from[-2] == '\n')
		from--;
	if (replace(arena, text, from, end, "", &left, err) < 0)
		return -1;
	if (parse(arena, edit, left, &rest, err) < 0 || !is_rest(root, rest, is))
		return refuse(OTHER_FORM, err);
	*ret_text = left;
	return 0;
}

static int undo_toml(struct arena *arena, const struct edit *edit, const char *before, const char *text,
                     const char **ret_text, struct cordon_error *err)
{
	*ret_text = text;
	int result = edit->kind == EDIT_TOML_KEY ? undo_key(arena, edit, before, text, ret_text, err) :
	             undo_block(arena, edit, text, ret_text, err);
	if (result == 0 && !before && is_blank(*ret_text))
		*ret_text = NULL;
	return result;
}

/* ---- any
 * --------------------------------------------------------------------------------------------------------------- */

int setup_edit_undo(struct arena *arena, const struct edit *edit, const char *before, const char *text,
                    const char **ret_text, struct cordon_error *err)
{
	*ret_text = text;
	if (!text)
		return 0;
	if (edit->kind == EDIT_SET || edit->kind == EDIT_APPEND)
		return undo_json(arena, edit, before, text, ret_text, err);
	if (edit->kind != EDIT_FILE)
		return undo_toml(arena, edit, before, text, ret_text, err);
	if (strcmp(text, edit->text) != 0)
		return refuse("this file of cordon's was changed since setup wrote it", err);
	*ret_text = NULL;
	return 0;
}
