/* Which entry of a list covers another. A path covers itself and all beneath it; "*.example.com:443" covers every name
 * with one label or more in its place, never the apex, never an address. A sorted list is searched by halves, so that
 * the answer costs the same with ten entries and with a thousand; nothing is allocated. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"

/* Does one of `roots` cover the path? `by_another`: one that is not the very same. A path that is not normalised could
 * say one place and mean another: it is covered by nothing, and covers nothing. */
bool cover_path(const struct strings *roots, const char *path, bool by_another);

/* The same for host:port. Whatever the case, and with or without one trailing dot, it is the same host; what is not in
 * lower case or ends in a dot among the roots is found too, only slower. `by_another`: the roots are normalised. */
bool cover_host(const struct strings *roots, const char *host, bool by_another);

/* In lower case, without one trailing dot. NULL when memory is short. */
char *cover_host_normalise(struct arena *arena, const char *host);
