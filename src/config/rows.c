/* The tables: see rows.h. */
#include "config/rows.h"

#include <string.h>

const char *const config_type_texts[] = {
#define CONFIG_TYPE(id, must_be) must_be,
#include "cordon-config.def"
};

const char *const config_section_names[] = {
#define CONFIG_SECTION(name, in_session, help, example) #name,
#include "cordon-config.def"
};

const bool config_section_in_session[] = {
#define CONFIG_SECTION(name, in_session, help, example) in_session,
#include "cordon-config.def"
};

const struct config_row config_rows[] = {
#define CONFIG(section, key, type, values, least, most, fallback, example, narrows, project, reload, help, more) \
	{ SECTION_##section, #key, #section "." #key, CONFIG_TYPE_##type, values, least, most, fallback, example, \
	  NARROWS_##narrows, project, RELOAD_##reload },
#include "cordon-config.def"
};

const struct config_limit config_limits[] = {
	{ "memory", CORDON_WALL_LIMIT_MEMORY },
	{ "processes", CORDON_WALL_LIMIT_PROCESSES },
	{ "cpu", CORDON_WALL_LIMIT_CPU },
	{ "disk", CORDON_WALL_LIMIT_DISK },
	{ NULL, 0 },
};

int config_row_words(struct arena *arena, const struct config_row *row, struct strings *ret_words)
{
	struct strings words = { 0 };
	for (const char *at = row->values; *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (strings_add(arena, &words, arena_strndup(arena, at, length)) < 0)
			return -1;
		at += length;
	}
	*ret_words = words;
	return 0;
}

const char *config_where(struct arena *arena, const struct config_value *value)
{
	if (!value->file)
		return "default";
	return arena_printf(arena, "%s:%u:%u%s%s", value->file, value->at->line, value->at->column,
	                    value->also ? ", " : "", value->also ? value->also : "");
}
