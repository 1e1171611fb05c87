/* A session's record as text. */
#pragma once
#include "session/registry.h"

/* To be free()d; NULL when memory is short. */
char *record_write(const struct session_record *record);

/* The reverse; everything is copied into the arena. 0, or -1 where it is not what this version writes, and *ret_why
 * then says in which way; borrowed from the arena or constant. */
int record_read(struct arena *arena, const char *text, size_t length, struct session_record *ret_record,
                const char **ret_why) must_check;
