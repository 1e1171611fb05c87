/* The library's handle: opening and closing it, and what is common to all calls with it. */
#include <stdlib.h>
#include <string.h>

#include "api/refresh.h"
#include "api/watch.h"
#include "audit/ledger.h"
#include "base/host-watch.h"
#include "config/store.h"
#include "driver/machine.h"
#include "host/kernel-mounts.h"
#include "host/tools.h"
#include "host/view.h"
#include "paths/index/names.h"
#include "session/registry.h"
#include "session/session-row.h"
#include "session/workspace.h"
#include "walk.h"

#define SWEEP_MS 5000

/* ---- options ---------------------------------------------------------------------------------------------------- */

/* What of the laid out struct is the text's owner. */
struct owned_options {
	struct cordon_options options;          /* first: it is what the caller has */
	char *data_dir, *config;
};

struct cordon_options *cordon_options_new(void)
{
	struct owned_options *owned = calloc(1, sizeof(*owned));
	return owned ? &owned->options : NULL;
}

void cordon_options_free(struct cordon_options *options)
{
	struct owned_options *owned = (struct owned_options *)(void *)options;
	if (!owned)
		return;
	free(owned->data_dir);
	free(owned->config);
	free(owned);
}

static int take_text(char **owned, const char **ret_text, const char *value, struct cordon_error *err)
{
	char *copy = strdup(value);
	if (!copy)
		return fail_oom(err);
	free(*owned);
	*ret_text = *owned = copy;
	return 0;
}

int cordon_options_set(struct cordon_options *options, const char *key, const char *value, struct cordon_error *err)
{
	if (call_check(err, options, key, value) < 0)
		return -1;
	struct owned_options *owned = (struct owned_options *)(void *)options;
	if (!strcmp(key, "data-dir"))
		return take_text(&owned->data_dir, &options->data_dir, value, err);
	if (!strcmp(key, "config"))
		return take_text(&owned->config, &options->config, value, err);
	bool is_true = !strcmp(value, "true");
	if (strcmp(key, "one-command") != 0) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, key, "there is no such option");
		return fail_remedy(err, "those that there are: data-dir, config, one-command");
	}
	if (!is_true && strcmp(value, "false") != 0)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, value, "one-command is true or false");
	options->one_command = is_true;
	return 0;
}

/* ---- the handle -------------------------------------------------------------------------------------------------- */

int cordon_open(const struct cordon_options *options, struct cordon **ret_cordon, struct cordon_error *err)
{
	if (call_check(err, ret_cordon) < 0)
		return -1;
	struct cordon *cordon = calloc(1, sizeof(*cordon));
	if (!cordon)
		return fail_oom(err);
	cordon->owner = getpid();
	cordon->approver.interrupt_fd = -1;
	cordon->one_command = options && options->one_command;
	pthread_mutex_init(&cordon->jobs_lock, NULL);
	if (!(cordon->host_watch = host_watch_new()) || !(cordon->view = host_view_new(cordon->host_watch)) ||
	    !(cordon->tools = host_tools_new(cordon->host_watch)) ||
	    !(cordon->names = names_memory_new(cordon->host_watch)) || !(cordon->sandboxes = sandboxes_new())) {
		cordon_unref(cordon);
		return fail_oom(err);
	}
	/* A program that runs one command and ends has nothing of what is watched, and would wait some 20 ms for the
	 * end of it. */
	host_watch_pause(cordon->host_watch, true);
	if (workspace_data_dir(&cordon->arena, options ? options->data_dir : NULL, &cordon->data_dir,
	                       &cordon->data_named, err) < 0 ||
	    ledger_open(cordon->data_dir, false, &cordon->ledger, err) < 0 ||
	    config_store_open(cordon->data_dir, options ? options->config : NULL, &cordon->config, err) < 0 ||
	    config_store_watch(cordon->config, cordon->host_watch, err) < 0) {
		cordon_unref(cordon);
		return -1;
	}
	driver_sweep(cordon->data_dir);
	*ret_cordon = cordon;
	return 0;
}

int handle_check(const struct cordon *cordon, struct cordon_error *err)
{
	if (cordon->owner == getpid())
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "cordon_open", "this handle was opened before fork(), by process %d",
	     (int)cordon->owner);
	fail_boundary(err, "request");
	return fail_remedy(err, "open one in the process that uses it, or use it in the process that opened it");
}

/* What is in it is of the process that opened it: its threads, its children, what it has locked. */
void cordon_unref(struct cordon *cordon)
{
	if (!cordon || handle_check(cordon, NULL) < 0)
		return;
	job_end_all(cordon);
	process_end_all(cordon);
	watches_free(cordon->watches);
	sandboxes_free(cordon->sandboxes);
	pthread_mutex_destroy(&cordon->jobs_lock);
	kernel_mounts_forget();
	ledger_unref(cordon->ledger);
	config_store_unref(cordon->config);
	names_memory_free(cordon->names);
	host_tools_free(cordon->tools);
	host_view_free(cordon->view);
	host_watch_free(cordon->host_watch);
	arena_free(&cordon->arena);
	free(cordon);
	/* Last: init is on its way out meanwhile. */
	driver_settle();
}

static bool is_active(void *arg, const char *session_id)
{
	const struct cordon *cordon = arg;
	struct session_look look = { 0 };
	struct cordon_error untold;
	bool ended = registry_look(cordon->data_dir, session_id, &look) == SESSION_ENDED;
	if (!ended && session_is_idle(cordon->data_dir, session_id, look.idle_expiry_s))
		(void)!session_row_end_idle(cordon->ledger, cordon->data_dir, session_id, &ended, &untold);
	return !ended;
}

int cordon_sweep(struct cordon *cordon)
{
	if (!cordon || handle_check(cordon, NULL) < 0)
		return -1;
	refresh_changed(cordon);
	return sandboxes_sweep(cordon->sandboxes, is_active, cordon) ? SWEEP_MS : -1;
}

int cordon_data_dir(struct cordon *cordon, const char **ret_path, struct cordon_error *err)
{
	if (call_check(err, cordon, ret_path) < 0 || handle_check(cordon, err) < 0 ||
	    workspace_make_data_dir(cordon->data_dir, err) < 0)
		return -1;
	*ret_path = cordon->data_dir;
	return 0;
}

uint64_t handle_mounts(struct cordon *cordon, bool again)
{
	if (!again && atomic_exchange(&cordon->asked, true)) {
		atomic_store(&cordon->stays, true);
		host_watch_pause(cordon->host_watch, false);
	}
	/* Where nothing is watched yet, nothing is compared with it either. */
	if (!host_watch_poll(cordon->host_watch) && !atomic_load(&cordon->stays))
		return 0;
	return again ? kernel_mounts_version_again() : kernel_mounts_version();
}
