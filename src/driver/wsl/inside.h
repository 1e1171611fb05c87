/* What setup.c, status.c and sandbox.c share of the distro: see wsl.h. */
#pragma once
#include "driver/wsl/wsl.h"

#define WSL_MARK "/etc/cordon-distro"
#define WSL_OWNER "64817:64817"

struct wsl_record {
	char id[WSL_ID_SIZE], rootfs[WSL_SUM_SIZE], program[WSL_SUM_SIZE];
};
bool wsl_record_read(const char *data_dir, struct wsl_record *ret_record);
/* Executes a program in the distro; `user` NULL: the distro's own default user. `more`: input and time, or NULL. */
int wsl_inside(struct arena *arena, const char *user, const char *const *words, const struct wsl_call *more,
               struct wsl_answer *ret_answer, struct cordon_error *err) must_check;
int wsl_list(struct arena *arena, bool *ret_there, unsigned *ret_version, struct cordon_error *err) must_check;
/* Does it have the record's mark? */
bool wsl_is_ours(struct arena *arena, const struct wsl_record *record, struct cordon_error *err) must_check;
