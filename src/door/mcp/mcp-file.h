/* The tools for files: read_file, write_file, edit_file, list_directory, find_files, grep. */
#pragma once
#include "door/mcp/mcp.h"

/* Which of them is call->tool. */
int mcp_file(struct mcp_call *call, char **ret_json, bool *ret_failed, struct cordon_error *err);
