/* The system base view: what of it this host has. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/place.h"
#include "base/host-watch.h"

/* What was found, cached between commands; shared by threads. NULL when memory is short. It is as current as the
 * events that host_watch has read; `mounts` is the version of the mounts. */
struct host_view;
struct host_view *host_view_new(struct host_watch *host_watch);
void host_view_free(struct host_view *view);

/* What of the system base view is here, and whether it is a directory, a file or a link. `extra`: paths that
 * sandbox.etc adds (etc.h). */
int host_base_view(struct arena *arena, struct host_view *view, const struct strings *extra, uint64_t mounts,
                   struct host_entries *ret_entries, struct cordon_error *err) must_check;

/* host_user_name(), read anew only where the file changed. */
const char *host_view_user(struct arena *arena, struct host_view *view, uint64_t mounts, unsigned uid);
