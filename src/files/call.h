/* One call of a file tool, in two halves: its paths are opened and judged; then, once it is permitted and recorded,
 * the tool acts on what was opened. */
#pragma once
#include "cordon-internal.h"
#include "files/place.h"

struct files_tool;
/* The tool of this name, or NULL; *ret_nearest is then the name closest to it, or NULL. */
const struct files_tool *files_tool_find(const char *name, const char **ret_nearest);
bool files_tool_writes(const struct files_tool *tool);
/* There may be nothing yet where it acts; it has a second path; of the first it only reads. */
bool files_tool_may_miss(const struct files_tool *tool);
bool files_tool_has_to(const struct files_tool *tool);
bool files_tool_reads_first(const struct files_tool *tool);
/* It returns names of files, and nothing of what is in them. */
bool files_tool_returns_names(const struct files_tool *tool);

struct files_call {
	const struct files_tool *tool;
	const struct cordon_file *arguments;
	const char *audit_id;
	struct files_place place, to;           /* `to` only of rename and copy */
	/* Of watch, set once it is open; or NULL. */
	int (*watch)(void *arg, const struct files *files, const struct files_place *place, struct json *json,
	             struct cordon_error *err);
	void *watch_arg;
};

struct files_result {
	char *json;                             /* to be free()d */
	void *data;                             /* of read, send and export; to be free()d */
	size_t length;
};

/* files->tool is set by it. Release with files_call_close(), also where it failed. */
int files_call_open(struct files *files, const struct files_tool *tool, const struct cordon_file *arguments,
                    const char *audit_id, struct files_call *ret_call, struct cordon_error *err) must_check;
int files_call_act(const struct files *files, const struct files_call *call, struct files_result *ret_result,
                   struct cordon_error *err) must_check;
void files_call_close(struct files_call *call);
