/* Capability sets as JSON: for the session's record, the ledger and the approval cards. */
#pragma once
#include <jansson.h>

#include "base/place.h"
#include "policy/capability.h"

struct json;

/* Writes an object with a key for every list that is not empty, the network, spawn and every limit that is set. */
void capability_write_json(struct json *json, const struct capability_set *set);
/* The reverse; strings are copied. `open`: members that are not known are passed over, because the record says that
 * they may be. 0, or -1 where it is not what the writer writes or memory is short. */
int capability_read_json(struct arena *arena, const json_t *object, bool open,
                         struct capability_set *ret_set) must_check;
/* Is there a member of this name? */
bool capability_knows(const char *name);

/* Are they written the same? */
bool capability_same(const struct capability_set *a, const struct capability_set *b);

/* A path may have any byte in it, and two that differ must stay different: what is not UTF-8 becomes {"hex":"…"}. */
void path_write_json(struct json *json, const char *path);
/* The same as a member; NULL becomes null. */
void json_key_path(struct json *json, const char *key, const char *path);
/* A copy, or NULL where it is not what the writer writes or memory is short. */
const char *path_read_json(struct arena *arena, const json_t *value);

/* Numbers of which a reader may have only 63 bits: a larger one becomes a string. */
void number_write_json(struct json *json, uint64_t number);
bool number_read_json(const json_t *value, uint64_t *ret_number);

/* What paths were: an array. */
void places_write_json(struct json *json, const struct places *places);
int places_read_json(struct arena *arena, const json_t *array, struct places *ret_places) must_check;
