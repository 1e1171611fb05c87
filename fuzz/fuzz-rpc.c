/* Any bytes as a line of JSON-RPC: a call has what its users count on, and the answer to whatever it is can be read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "door/rpc/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_call call;
	const char *why = NULL;
	size_t length;
	enum rpc_code code = rpc_parse((const char *)data, size, &call, &why);
	must((code == RPC_OK) == (call.whole != NULL) && strlen(call.id) < RPC_ID_MAX);
	if (code == RPC_OK)
		must(call.method && json_is_object(call.params));
	char *line = rpc_error(call.id, code, why ? why : "", NULL, &length);
	json_t *said = json_loadb(line, length, 0, NULL);
	must(said && line[length - 1] == '\n' && !memchr(line, '\n', length - 1));
	json_decref(said);
	free(line);
	json_decref(call.whole);
	return 0;
}
