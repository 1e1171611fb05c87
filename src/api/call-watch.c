/* Methods about watched directories: see watch.h. A watch is known by its id until it is taken away. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "api/watch.h"
#include "base/clock.h"
#include "base/error.h"
#include "walk.h"

#define SETTLE_MS 20 /* what belongs together is told together */
#define SLICE_MS 200 /* whether it was taken away is looked at so often */

/* ---- its life -------------------------------------------------------------------------------------------------- */

static void watch_free(struct watch *watch)
{
	while (watch->count)
		free(watch->directories[--watch->count].path);
	free(watch->directories);
	free(watch->path);
	cordon_request_unref(watch->request);
	cleanup_close(&watch->fd);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

void watches_free(struct watch *watches)
{
	for (struct watch *next; watches; watches = next) {
		next = watches->next;
		watch_free(watches);
	}
}

static int refuse_missing(const char *id, struct cordon_error *err)
{
	fail(err, CORDON_E_NOT_FOUND, 0, id, "there is no such watch here");
	return fail_remedy(err, "fs.watch begins one");
}

static int take(struct cordon *cordon, const char *id, struct watch **ret_watch, struct cordon_error *err)
{
	pthread_mutex_lock(&cordon->jobs_lock);
	struct watch *watch = cordon->watches;
	while (watch && strcmp(watch->id, id) != 0)
		watch = watch->next;
	if (watch)
		watch->users++;
	pthread_mutex_unlock(&cordon->jobs_lock);
	*ret_watch = watch;
	return watch ? 0 : refuse_missing(id, err);
}

static void give_back(struct cordon *cordon, struct watch *watch)
{
	pthread_mutex_lock(&cordon->jobs_lock);
	bool last = !--watch->users && watch->removed;
	pthread_mutex_unlock(&cordon->jobs_lock);
	if (last)
		watch_free(watch);
}

static bool is_removed(struct cordon *cordon, const struct watch *watch)
{
	pthread_mutex_lock(&cordon->jobs_lock);
	bool removed = watch->removed;
	pthread_mutex_unlock(&cordon->jobs_lock);
	return removed;
}

static int add(struct cordon *cordon, struct watch *watch, struct cordon_error *err)
{
	size_t count = 0;
	pthread_mutex_lock(&cordon->jobs_lock);
	for (const struct watch *each = cordon->watches; each; each = each->next)
		count++;
	if (count < WATCHES_MAX) {
		watch->next = cordon->watches;
		cordon->watches = watch;
	}
	pthread_mutex_unlock(&cordon->jobs_lock);
	if (count < WATCHES_MAX)
		return 0;
	fail(err, CORDON_E_RESOURCE_EXHAUSTED, 0, watch->path, "%d directories are watched already", WATCHES_MAX);
	return fail_remedy(err, "end one: fs.unwatch");
}

/* ---- the methods ----------------------------------------------------------------------------------------------- */

int call_fs_watch(struct call *call, struct cordon_error *err)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	char *json;
	if (!watch)
		return fail_oom(err);
	pthread_mutex_init(&watch->lock, NULL);
	id_make(watch->id);
	watch->depth = call_count(call, "depth", 0);
	watch->path = strdup(call_text(call, "path"));
	watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (!watch->path)
		fail_oom(err);
	else if (watch->fd < 0)
		fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, watch->path, "no descriptor to watch with");
	else if (call_request(call, false, &watch->request, err) == 0 &&
		 file_watch_call(call->cordon, watch->request, watch->path, watch, &json, err) == 0) {
		if (add(call->cordon, watch, err) == 0)
			return call_take_text(call, json, err);
		free(json);
	}
	watch_free(watch);
	return -1;
}

/* True: there is something to tell. */
static bool await(struct call *call, const struct watch *watch)
{
	const json_t *timeout = json_object_get(call->params, "timeout_ms");
	int64_t until = timeout ? clock_ms() + json_integer_value(timeout) : INT64_MAX, left;
	struct pollfd ready = { .fd = watch->fd, .events = POLLIN };
	do {
		left = until - clock_ms();
		poll(&ready, 1, left <= 0 ? 0 : left < SLICE_MS ? (int)left : SLICE_MS);
	} while (!ready.revents && left > 0 && !is_removed(call->cordon, watch));
	if (ready.revents)
		poll(NULL, 0, SETTLE_MS);
	return ready.revents;
}

/* A tree that is gone ends its watch, and is no error. */
static int tell(struct call *call, struct watch *watch, struct cordon_error *err)
{
	char *text;
	if (file_watch_call(call->cordon, watch->request, watch->path, watch, &text, err) == 0) {
		int result = call_take_text(call, text, err);
		value_exact(call->result);
		return result;
	}
	if (err->class != CORDON_E_NOT_FOUND)
		return -1;
	watch->ended = "the directory is not there any more";
	return call_take(call,
			 json_pack("{s:s, s:[], s:b, s:b, s:s, s:s}", "watch", watch->id, "changes", "missed", false,
				   "ended", true, "why", watch->ended, "audit_id", err->audit_id),
			 err);
}

int call_fs_changes(struct call *call, struct cordon_error *err)
{
	struct watch *watch;
	if (take(call->cordon, call_text(call, "watch"), &watch, err) < 0)
		return -1;
	int result;
	pthread_mutex_lock(&watch->lock);
	if (watch->ended || !await(call, watch))
		result = call_take(call,
				   json_pack("{s:s, s:[], s:b, s:b, s:s?}", "watch", watch->id, "changes", "missed",
					     false, "ended", watch->ended != NULL, "why", watch->ended),
				   err);
	else
		result = tell(call, watch, err);
	pthread_mutex_unlock(&watch->lock);
	if (is_removed(call->cordon, watch) && result == 0) {
		json_decref(call->result);
		call->result = NULL;
		result = refuse_missing(watch->id, err);
	}
	give_back(call->cordon, watch);
	return result;
}

int call_fs_unwatch(struct call *call, struct cordon_error *err)
{
	struct watch *watch;
	if (take(call->cordon, call_text(call, "watch"), &watch, err) < 0)
		return -1;
	pthread_mutex_lock(&call->cordon->jobs_lock);
	struct watch **at = &call->cordon->watches;
	while (*at && *at != watch)
		at = &(*at)->next;
	if (*at)
		*at = watch->next;
	watch->removed = true;
	pthread_mutex_unlock(&call->cordon->jobs_lock);
	give_back(call->cordon, watch);
	return 0;
}
