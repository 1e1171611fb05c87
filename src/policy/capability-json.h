/* Capability sets as JSON: for the session's record, the ledger, the cards that people see. */
#pragma once
#include <jansson.h>

#include "policy/capability.h"

struct json;

/* Writes an object with a key for every list that is not empty, the network, spawn and every limit that is set. */
void capability_write_json(struct json *json, const struct capability_set *set);
/* The reverse; strings are copied. 0, or -1 where it is not what the writer writes or memory is short. */
int capability_read_json(struct arena *arena, const json_t *object, struct capability_set *ret_set) must_check;
