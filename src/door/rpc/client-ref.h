/* What clients of the agents' protocols call a request by: their ids of tool calls and traces. They go to the ledger,
 * so that a row is found from the client's own records; nothing else is done with them. */
#pragma once
#include <jansson.h>

/* The members of `from` that have these names (the list ends with NULL), as a JSON object for the setting `client-ref`:
 * to be free()d. A member that is no short text or number, nor an object of these, is left out, and so is one with a
 * control character and one that does not fit. NULL: nothing is left. */
char *client_ref_make(json_t *from, const char *const *names);
