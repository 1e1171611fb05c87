/* One edit in the text of one file: done, and looked for. */
#include <string.h>

#include "base/error.h"
#include "base/toml.h"
#include "door/setup/jsonc.h"
#include "door/setup/setup.h"

/* ---- TOML: whole lines
 * ------------------------------------------------------------------------------------------------ */

static int parse_toml(struct arena *arena, const struct edit *edit, const char *text,
                      const struct toml_value **ret_root, struct cordon_error *err)
{
	return toml_parse(arena, edit->file, text, strlen(text), ret_root, err);
}

/* The line where a value's key is; lines count from 1. */
static const char *line_of(const char *text, unsigned line)
{
	for (; line > 1; line--)
		text = strchr(text, '\n') + 1;
	return text;
}

static size_t line_length(const char *line)
{
	size_t length = strcspn(line, "\n");
	return length + (line[length] == '\n');
}

static int replace(struct arena *arena, const char *text, const char *from, size_t length, const char *with,
                   const char **ret_text, struct cordon_error *err)
{
	*ret_text = arena_printf(arena, "%.*s%s%s", (int)(from - text), text, with, from + length);
	return *ret_text ? 0 : fail_oom(err);
}

static int apply_key(struct arena *arena, const struct edit *edit, const char *text, const char **ret_text,
                     struct cordon_error *err)
{
	const struct toml_value *root, *value;
	if (parse_toml(arena, edit, text, &root, err) < 0)
		return -1;
	value = toml_member(root, edit->path[0]);
	if (!value)
		return replace(arena, text, text, 0, edit->text, ret_text, err);
	const char *line = line_of(text, value->line);
	/* A value of several lines is one that is written in a way of its own. */
	if ((value->type != TOML_STRING && value->type != TOML_BOOLEAN) || strstr(line, "\"\"\"") ||
	    strstr(line, "'''")) {
		fail(err, CORDON_E_CONFIG_INVALID, 0, NULL, "cordon cannot change the value of %s", edit->path[0]);
		return fail_remedy(err, "remove it, and run setup again");
	}
	return replace(arena, text, line, line_length(line), edit->text, ret_text, err);
}

/* Of an array of tables: is there one whose id is the block's name? */
static bool has_id(const struct toml_value *root, const struct edit *edit)
{
	const struct toml_value *list = toml_member(root, edit->path[0]);
	for (size_t i = 0; list && list->type == TOML_ARRAY && i < list->count; i++) {
		const struct toml_value *each = list->items[i],
					*id = each->type == TOML_TABLE ? toml_member(each, "id") : NULL;
		if (id && id->type == TOML_STRING && edit->path[1] && !strcmp(id->text, edit->path[1]))
			return true;
	}
	return false;
}

static int apply_block(struct arena *arena, const struct edit *edit, const char *text, const char **ret_text,
                       struct cordon_error *err)
{
	const struct toml_value *root;
	size_t length = strlen(text);
	if (parse_toml(arena, edit, text, &root, err) < 0)
		return -1;
	if (!strstr(text, edit->text) && has_id(root, edit)) {
		fail(err, CORDON_E_CONFIG_INVALID, 0, NULL,
		     "it has an entry of cordon's name that cordon did not write");
		return fail_remedy(err, "give that entry another id, or remove it, and run setup again");
	}
	*ret_text = strstr(text, edit->text)
	                    ? text
	                    : arena_printf(arena, "%s%s%s%s", text, length && text[length - 1] != '\n' ? "\n" : "",
	                                   length ? "\n" : "", edit->text);
	if (!*ret_text)
		return fail_oom(err);
	if (parse_toml(arena, edit, *ret_text, &root, err) == 0)
		return 0;
	return fail_remedy(err,
	                   "it has an entry of cordon's name, or of another form: remove that, and run setup again");
}

/* ---- any
 * --------------------------------------------------------------------------------------------------------------- */

bool setup_edit_holds(const struct edit *edit, const char *text)
{
	size_t index;
	json_t *value, *each;
	bool holds = false;
	if (!text)
		return false;
	if (edit->kind == EDIT_FILE)
		return !strcmp(text, edit->text);
	if (edit->kind == EDIT_TOML_KEY || edit->kind == EDIT_TOML_BLOCK)
		return strstr(text, edit->text) != NULL;
	value = jsonc_get(text, edit->path);
	if (edit->kind == EDIT_SET)
		holds = json_equal(value, edit->value);
	else
		json_array_foreach(value, index, each)
			holds = holds || json_equal(each, edit->value);
	json_decref(value);
	return holds;
}

int setup_edit_apply(struct arena *arena, const struct edit *edit, const char *text, const char **ret_text,
                     struct cordon_error *err)
{
	switch (edit->kind) {
	case EDIT_SET:
		return jsonc_set(arena, text, edit->path, edit->value, ret_text, err);
	case EDIT_APPEND:
		return jsonc_append(arena, text, edit->path, edit->value, ret_text, err);
	case EDIT_TOML_KEY:
		return apply_key(arena, edit, text ? text : "", ret_text, err);
	case EDIT_TOML_BLOCK:
		return apply_block(arena, edit, text ? text : "", ret_text, err);
	case EDIT_FILE:
		break;
	}
	if (text && strcmp(text, edit->text) != 0) {
		fail(err, CORDON_E_CONFIG_INVALID, 0, edit->file, "there is another file of this name");
		return fail_remedy(err, "move it away, and run setup again");
	}
	*ret_text = edit->text;
	return 0;
}
