/* One call of a file tool, in two halves: its paths are opened and judged; then, once it is permitted and recorded, the tool acts on
 * what was opened. */
#pragma once
#include "cordon.h"
#include "files/place.h"

struct files_tool;
/* The tool of this name, or NULL; *ret_nearest is then the name closest to it, or NULL. */
const struct files_tool *files_tool_find(const char *name, const char **ret_nearest);
const char *files_tool_name(const struct files_tool *tool);
bool files_tool_writes(const struct files_tool *tool);
/* There may be nothing yet where it acts; it has a second path. */
bool files_tool_may_miss(const struct files_tool *tool);
bool files_tool_renames(const struct files_tool *tool);

struct files_call {
	const struct files_tool *tool;
	const struct cordon_file *arguments;
	const char *audit_id;
	struct files_place place, to;           /* `to` only of rename */
};

struct files_result {
	char *json;                             /* to be free()d */
	void *data;                             /* of read and send; to be free()d */
	size_t length;
};

/* files->tool is set by it. Release with files_call_close(), also where it failed. */
int files_call_open(struct files *files, const struct files_tool *tool, const struct cordon_file *arguments, const char *audit_id,
                    struct files_call *ret_call, struct cordon_error *err) must_check;
int files_call_act(const struct files *files, const struct files_call *call, struct files_result *ret_result, struct cordon_error *err) must_check;
void files_call_close(struct files_call *call);
