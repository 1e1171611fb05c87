/* Methods of the file tools: see call.h. What a tool is called is what its method is called after "fs.". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "base/error.h"
#include "walk.h"

static void fill(const struct call *call, struct cordon_file *file)
{
	*file = (struct cordon_file){
		.path = call_text(call, "path"),
		.to = call_text(call, "to"),
		.offset = call_count(call, "offset", 0),
		.limit = call_count(call, "limit", 0),
		.bytes = call_flag(call, "bytes"),
		.numbers = call_flag(call, "numbers"),
		.version = call_text(call, "version"),
		.create = call_flag(call, "create"),
		.all = call_flag(call, "all"),
		.recursive = call_flag(call, "recursive"),
		.replace = call_flag(call, "replace"),
		.pattern = call_text(call, "pattern"),
		.fixed = call_flag(call, "fixed"),
		.ignore_case = call_flag(call, "ignore_case"),
		.names_only = call_flag(call, "names_only"),
		.type = call_text(call, "type"),
		.depth = call_count(call, "depth", 0),
		.skip = call_flag(call, "skip"),
	};
	file->data = call_bytes(call, "data", &file->length);
	file->old = call_bytes(call, "old", &file->old_length);
}

static int tell(struct call *call, const struct cordon_file_result *result, struct cordon_error *err)
{
	json_t *tree = value_parse(result->json);
	value_exact(tree);
	if (tree && result->data)
		json_object_set_new(tree, "data", value_bytes(result->data, result->length));
	return call_take(call, tree, err);
}

/* `data`, where it is given, instead of the parameter. */
static int act(struct call *call, const struct cordon_request *request, const void *data, size_t length,
               struct cordon_error *err)
{
	struct cordon_file file;
	struct cordon_file_result *result = NULL;
	auto_free const char **globs = NULL;
	fill(call, &file);
	int status = call_list(call, "globs", &globs, err);
	if (status == 0) {
		file.globs = *globs ? globs : NULL;
		if (data) {
			file.data = data;
			file.length = length;
		}
		status = cordon_file_do(call->cordon, request, strchr(call->method->name, '.') + 1, &file, &result,
		                        err);
	}
	if (status == 0)
		status = tell(call, result, err);
	cordon_file_result_unref(result);
	return status;
}

int call_fs(struct call *call, struct cordon_error *err)
{
	struct cordon_request *request = NULL;
	int status = call_request(call, false, &request, err) < 0 ? -1 : act(call, request, NULL, 0, err);
	cordon_request_unref(request);
	return status;
}

/* ---- the public call -------------------------------------------------------------------------------------------- */

static int find_tool(const char *tool, const struct method **ret_method, struct cordon_error *err)
{
	char name[64];
	const char *nearest;
	int length = snprintf(name, sizeof(name), "fs.%s", tool);
	*ret_method = length < (int)sizeof(name) ? method_find(name, &nearest) : NULL;
	if (*ret_method)
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, tool, "there is no such file tool");
	return fail_boundary(err, "request");
}

/* What stands beside the parameters is not to be given a second time in them. */
static int check_beside(const json_t *params, const void *data, struct cordon_error *err)
{
	const char *name = json_object_get(params, "settings") ? "settings" :
	                   data && json_object_get(params, "data") ? "data" :
	                   data && json_object_get(params, "data_base64") ? "data_base64" : NULL;
	return name ? fail(err, CORDON_E_INVALID_REQUEST, 0, name, "the parameter %s is an argument of the call", name)
	            : 0;
}

static int check_tool(struct call *call, json_t *params, const void *data, struct cordon_error *err)
{
	bool placed = data && json_is_object(params);
	if (check_beside(params, data, err) < 0)
		return -1;
	/* The table says that it is needed, or that the method has none. */
	if (placed)
		json_object_set_new(params, "data", json_string(""));
	int status = call_params_check(call->method, params, err);
	call->params = params;
	return status;
}

int cordon_file_call(struct cordon *cordon, const struct cordon_request *request, const char *tool, const char *params,
                     const void *data, size_t length, struct cordon_value **ret_result, struct cordon_error *err)
{
	struct call call = { .cordon = cordon };
	if (call_check(err, cordon, request, tool, ret_result) < 0 || handle_check(cordon, err) < 0 ||
	    find_tool(tool, &call.method, err) < 0)
		return -1;
	auto_tree json_t *given = call_params_read(params);
	if (check_tool(&call, given, data, err) < 0 || act(&call, request, data, length, err) < 0) {
		json_decref(call.result);
		return -1;
	}
	return value_take(call.result, ret_result, err);
}
