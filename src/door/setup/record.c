/* The record of an agent's setup: what was written where, and what was there before. See setup.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "door/setup/file.h"
#include "door/setup/setup.h"

static const char *const kind_names[] = {
	[EDIT_SET] = "set",   [EDIT_APPEND] = "append", [EDIT_TOML_KEY] = "toml-key", [EDIT_TOML_BLOCK] = "toml-block",
	[EDIT_FILE] = "file",
};

const char *setup_record_path(struct arena *arena, enum agent_id agent, const char *home)
{
	const char *state = getenv("XDG_STATE_HOME");
	return state && *state == '/' ? arena_printf(arena, "%s/cordon/setup/%s.json", state, agents[agent].name) :
	       arena_printf(arena, "%s/.local/state/cordon/setup/%s.json", home, agents[agent].name);
}

int setup_record(struct arena *arena, const char *path, json_t **ret_record, struct cordon_error *err)
{
	const char *text;
	*ret_record = NULL;
	if (setup_read(arena, path, NULL, &text, err) < 0)
		return -1;
	json_t *record = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (!text || json_is_array(json_object_get(record, "files"))) {
		*ret_record = record;
		return 0;
	}
	json_decref(record);
	fail(err, CORDON_E_CONFIG_INVALID, 0, path, "cordon's record of what it wrote is damaged");
	return fail_remedy(err, "remove it, and cordon's entries by hand: see cordon setup AGENT --dry-run");
}

json_t *setup_edit_to_json(const struct edit *edit)
{
	json_t *path = json_array(), *made = json_object();
	for (size_t i = 0; edit->path[i]; i++)
		json_array_append_new(path, json_string(edit->path[i]));
	json_object_set_new(made, "kind", json_string(kind_names[edit->kind]));
	json_object_set_new(made, "path", path);
	if (edit->value)
		json_object_set(made, "value", edit->value);
	if (edit->text)
		json_object_set_new(made, "text", json_string(edit->text));
	return made;
}

/* False: it is none. All is borrowed from the record. */
bool setup_edit_recorded(json_t *made, const char *file, struct edit *ret_edit)
{
	const char *kind = json_string_value(json_object_get(made, "kind"));
	json_t *path = json_object_get(made, "path"), *each;
	struct edit edit = { .file = file,
		             .value = json_object_get(made, "value"),
		             .text = json_string_value(json_object_get(made, "text")) };
	size_t index, number = 0;
	while (kind && number < ARRAY_SIZE(kind_names) && strcmp(kind_names[number], kind) != 0)
		number++;
	if (!kind || number == ARRAY_SIZE(kind_names) || json_array_size(path) >= EDIT_PATH_MAX ||
	    (!edit.value && !edit.text) || (number > EDIT_APPEND && !edit.text) ||
	    (number <= EDIT_APPEND && (!edit.value || !json_array_size(path))))
		return false;
	edit.kind = (enum edit_kind)number;
	json_array_foreach(path, index, each)
		if (!(edit.path[index] = json_string_value(each)))
			return false;
	if (edit.kind == EDIT_TOML_KEY && !edit.path[0])
		return false;
	*ret_edit = edit;
	return true;
}

/* The project that a recorded file lies in; NULL: in none. */
const char *setup_beneath_of(json_t *recorded, const char *path)
{
	const char *beneath = json_string_value(json_object_get(recorded, "beneath"));
	size_t length = beneath ? strlen(beneath) : 0;
	return beneath && path && *beneath == '/' && !strncmp(path, beneath, length) && path[length] == '/' ? beneath
	                                                                                                    : NULL;
}
