/* The calling thread's current session, so that a tool deep in a call chain need not carry the id. A stack: leaving one
 * returns to the one before. */
#pragma once
#include "base/cleanup.h"
#include "cordon-internal.h"

#define CURRENT_DEPTH_MAX 64

/* Copies the id; borrows the cordon until the session is left. */
int current_enter(struct cordon *cordon, const char *id, struct cordon_error *err) must_check;
/* Where there is none, nothing happens. */
void current_leave(void);

/* The id, valid until it is left; or NULL. It applies to requests of any `struct cordon`: a request made inside a
 * session must not run outside of it because the library was opened once more. */
const char *current_session(void);
struct cordon *current_cordon(void);
