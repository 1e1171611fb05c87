/* Systems that are not Windows: see wsl.h. */
#include "driver/wsl/wsl.h"

static int refuse(struct cordon_error *err)
{
	return fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, "wsl",
	            "the Windows Subsystem for Linux is a part of Windows, and this is not Windows");
}

int wsl_set_up(const char *data_dir, const struct wsl_setup *setup, struct cordon_error *err)
{
	(void)data_dir;
	(void)setup;
	return refuse(err);
}

int wsl_status(struct arena *arena, const char *data_dir, struct wsl_status *ret_status, struct cordon_error *err)
{
	(void)arena;
	(void)data_dir;
	(void)ret_status;
	return refuse(err);
}

int wsl_reset(const char *data_dir, const char *name, struct cordon_error *err)
{
	(void)data_dir;
	(void)name;
	return refuse(err);
}
