/* A client of the daemon's JSON-RPC, for one question whose answer is short. */
#pragma once
#include <jansson.h>

/* The result of a method that takes an id, or nothing where that is NULL, of the daemon at `host` (NULL: the one of
 * this environment); NULL where there is no daemon, or it has none, or does not answer within two seconds. To be
 * released with json_decref(). */
json_t *ask_daemon(const char *host, const char *method, const char *id);
