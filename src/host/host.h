/* Facts about this host that the views are made from. Reads, changes nothing. */
#pragma once
#include "base/arena.h"
#include "base/place.h"
#include "session/beneath.h"

/* What the kernel starts to run `program` (its ELF loader, or what its #! line names, and that one's loader), and the
 * directories that programs of this system map their libraries from. */
int host_program_parts(struct arena *arena, const char *program, struct places *interpreters,
                       struct cordon_error *err) must_check;
int host_library_directories(struct arena *arena, struct strings *ret_directories, struct cordon_error *err) must_check;

#define HOST_PASSWD "/etc/passwd"
#define HOST_USER_MAX 32
/* A user's name, from /etc/passwd; "user" where it is not there or too long. NULL when memory is short. */
const char *host_user_name(struct arena *arena, unsigned uid);
