/* The library's handle: opening and closing it, and what is common to all calls with it. */
#include <stdlib.h>

#include "audit/ledger.h"
#include "base/host-watch.h"
#include "config/store.h"
#include "driver/linux/kernel-mounts.h"
#include "driver/linux/linger.h"
#include "host/tools.h"
#include "host/view.h"
#include "paths/index/names.h"
#include "session/workspace.h"
#include "walk.h"

int cordon_open(const struct cordon_options *options, struct cordon **ret_cordon, struct cordon_error *err)
{
	if (call_check(err, ret_cordon) < 0)
		return -1;
	struct cordon *cordon = calloc(1, sizeof(*cordon));
	if (!cordon)
		return fail_oom(err);
	cordon->owner = getpid();
	cordon->approver.interrupt_fd = -1;
	pthread_mutex_init(&cordon->jobs_lock, NULL);
	if (!(cordon->host_watch = host_watch_new()) || !(cordon->view = host_view_new(cordon->host_watch)) ||
	    !(cordon->tools = host_tools_new(cordon->host_watch)) || !(cordon->names = names_memory_new(cordon->host_watch))) {
		cordon_unref(cordon);
		return fail_oom(err);
	}
	/* A program that runs one command and ends has nothing of what is watched, and would wait some 20 ms for the end of it. */
	host_watch_pause(cordon->host_watch, true);
	if (workspace_data_dir(&cordon->arena, options ? options->data_dir : NULL, &cordon->data_dir, &cordon->data_named, err) < 0 ||
	    ledger_open(cordon->data_dir, false, &cordon->ledger, err) < 0 ||
	    config_store_open(cordon->data_dir, options ? options->config : NULL, &cordon->config, err) < 0 ||
	    config_store_watch(cordon->config, cordon->host_watch, err) < 0) {
		cordon_unref(cordon);
		return -1;
	}
	*ret_cordon = cordon;
	return 0;
}

int handle_check(const struct cordon *cordon, struct cordon_error *err)
{
	if (cordon->owner == getpid())
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, "cordon_open", "this handle was opened before fork(), by process %d", (int)cordon->owner);
	fail_boundary(err, "request");
	return fail_remedy(err, "open one in the process that uses it, or use it in the process that opened it");
}

/* What is in it is of the process that opened it: its threads, its children, what it has locked. */
void cordon_unref(struct cordon *cordon)
{
	if (!cordon || handle_check(cordon, NULL) < 0)
		return;
	job_end_all(cordon);
	pthread_mutex_destroy(&cordon->jobs_lock);
	disk_forget();
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
	linger_settle();
	cgroup_forget();
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
