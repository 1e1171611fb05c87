/* The daemon's loop, from its start to its end: see server.h. SIGTERM, SIGINT and SIGHUP end it, and the commands it
 * runs: they get SIGTERM, SIGKILL a second later, and their callers get the result. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <jansson.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cordon-internal.h"
#include "door/cli/job-text.h"
#include "door/cli/json-read.h"
#include "door/daemon/serve.h"
#include "door/daemon/server.h"

#define PRESSED_MS 20
#define DRAINED_MS 100
/* The time for commands to end and for clients to read their results. */
#define PATIENCE_S 5
#define TRIM_S 1
#define PROCESS_GRACE_MS 1000
#define STARTS_FEW 5    /* one of them is the loop */
#define STARTS_MOST (RUNS_MAX + STARTS_FEW)     /* each may wait for a human, and others are not to wait with it */
#define WAITS_MOST 1024
#define CALLS_FEW 1
#define CALLS_MOST 8

static struct timeval interval(uint64_t ms)
{
	return (struct timeval){ .tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000) };
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

void server_post(struct server *server, struct post *post)
{
	uint64_t one = 1;
	pthread_mutex_lock(&server->post_lock);
	bool first = !server->posted;
	post->next = NULL;
	*server->last_post = post;
	server->last_post = &post->next;
	pthread_mutex_unlock(&server->post_lock);
	if (first)
		(void)!write(server->wake_fd, &one, sizeof(one));
}

static void on_posted(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	uint64_t count;
	(void)what;
	(void)!read(fd, &count, sizeof(count));
	pthread_mutex_lock(&server->post_lock);
	struct post *post = server->posted;
	server->posted = NULL;
	server->last_post = &server->posted;
	pthread_mutex_unlock(&server->post_lock);
	while (post) {
		struct post *next = post->next; /* what is done may free it */
		post->act(post);
		post = next;
	}
}

void server_start(struct server *server, struct task *task)
{
	if (!server->own) {
		server->own = task;
		event_base_loopbreak(server->base);
		return;
	}
	pool_add(&server->starts, task);
	server_press(server);
}

/* The loop, until it is over, or another thread has it. */
static void lead(struct task *task)
{
	struct server *server = (struct server *)((char *)task - offsetof(struct server, lead));
	while (!server->is_over) {
		event_base_loop(server->base, EVLOOP_NO_EXIT_ON_EMPTY);
		struct task *own = server->own;
		server->own = NULL;
		if (own && !server->is_over && pool_hand(&server->starts, &server->lead))
			return own->act(own);
		if (own)
			pool_add(&server->starts, own);
		server_press(server);
	}
	pthread_mutex_lock(&server->end_lock);
	server->has_ended = true;
	pthread_cond_signal(&server->ended);
	pthread_mutex_unlock(&server->end_lock);
}

static void leave_loop(struct server *server)
{
	server->is_over = true;
	event_base_loopbreak(server->base);
}

static int begin_loop(struct server *server, struct cordon_error *err)
{
	server->lead.act = lead;
	pool_add(&server->starts, &server->lead);
	if (pool_has_threads(&server->starts))
		return 0;
	fail(err, CORDON_E_RESOURCE_EXHAUSTED, EAGAIN, NULL, "no thread can be started");
	err->retriable = true;
	return fail_remedy(err, "try again when fewer processes run, or raise what keeps them few (ulimit -u)");
}

/* Signals come to this thread, and libevent hands them to the thread that leads. */
static void await_end(struct server *server)
{
	pthread_mutex_lock(&server->end_lock);
	while (!server->has_ended)
		pthread_cond_wait(&server->ended, &server->end_lock);
	pthread_mutex_unlock(&server->end_lock);
}

void server_press(struct server *server)
{
	struct timeval soon = interval(PRESSED_MS);
	if (!evtimer_pending(&server->pressed, NULL) &&
	    (pool_is_pressed(&server->starts) || pool_is_pressed(&server->waits) ||
	     pool_is_pressed(&server->calls)))
		evtimer_add(&server->pressed, &soon);
}

static void on_pressed(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	(void)fd, (void)what;
	pool_relieve(&server->starts);
	pool_relieve(&server->waits);
	pool_relieve(&server->calls);
	server_press(server);
}

static bool is_told(struct server *server)
{
	for (struct client *client = server->clients; client; client = client->next)
		if (client_unread(client))
			return false;
	return true;
}

void server_settle(struct server *server)
{
	if (atomic_load(&server->is_ending)) {
		if (!server->run_count && !server->call_count && !server->watch_count &&
		    (server->is_hurried || is_told(server)))
			leave_loop(server);
		return;
	}
	struct timeval later = interval(server->idle_ms);
	if (server->has_one_client && !server->client_count)
		return server_end(server);
	if (server->is_draining && !server->run_count && !server->watch_count)
		evtimer_add(&server->drained, &(struct timeval){ 0 });
	if (!server->idle_ms)
		return;
	if (server->client_count || server->run_count)
		evtimer_del(&server->idle);
	else
		evtimer_add(&server->idle, &later);
}

/* Those of the library's, also those that no client watches. */
static void end_processes(struct server *server, int grace_ms)
{
	char params[48];
	struct cordon_value *done;
	struct cordon_error err;
	snprintf(params, sizeof(params), "{\"grace_ms\":%d}", grace_ms);
	if (cordon_call(server->cordon, "stop", params, &done, &err) == 0)
		cordon_value_unref(done);
}

void server_end(struct server *server)
{
	/* A second time: slow readers are not waited for, but killed commands get their rows. */
	server->is_hurried = atomic_exchange(&server->is_ending, true);
	if (!server->is_hurried) {
		uint64_t one = 1;
		(void)!write(server->interrupt_fd, &one, sizeof(one));
		if (!server->is_draining && !server->has_one_client)
			listen_end(server);
		evtimer_add(&server->patience, &(struct timeval){ .tv_sec = PATIENCE_S });
	}
	for (struct client *client = server->clients; client; client = client->next)
		for (struct served *run = client->runs; run; run = run->next)
			run_end(run, server->is_hurried ? SIGKILL : SIGTERM);
	end_processes(server, server->is_hurried ? 0 : PROCESS_GRACE_MS);
	server_settle(server);
}

static void on_drained(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	(void)fd, (void)what;
	if (!atomic_load(&server->is_ending))
		server_end(server);
}

void server_drain(struct server *server, uint64_t drain_ms)
{
	struct timeval later = interval(drain_ms);
	if (server->is_draining)
		return;
	server->is_draining = true;
	if (!server->has_one_client)
		listen_end(server);
	evtimer_add(&server->drain, &later);
	evtimer_add(&server->drained, &(struct timeval){ 0 });
}

size_t server_processes(const struct server *server)
{
	struct cordon_value *status;
	struct cordon_error err;
	if (cordon_call(server->cordon, "status", NULL, &status, &err) < 0)
		return 0;
	int64_t count = cordon_value_int(status, "running");
	cordon_value_unref(status);
	return count > 0 ? (size_t)count : 0;
}

/* Does anything run that no client waits for: a process that is detached, a job? */
static bool runs_alone(const struct server *server)
{
	struct cordon_error err;
	auto_free char *jobs = NULL;
	auto_json json_t *list = cordon_job_list(server->cordon, NULL, &jobs, &err) < 0 ? NULL : json_read(jobs);
	return job_runs_here(list) || server_processes(server);
}

static void on_drained_early(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	struct timeval again = interval(DRAINED_MS);
	(void)fd, (void)what;
	if (atomic_load(&server->is_ending))
		return;
	if (server->run_count || server->watch_count || runs_alone(server))
		evtimer_add(&server->drained, &again);
	else
		server_end(server);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	server_end(arg);
}

/* The C library keeps memory that was freed between blocks that are in use, as buffers of many clients are. */
static void on_trim(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	(void)fd, (void)what;
	int again_ms = cordon_sweep(server->cordon);
	struct timeval again = interval(again_ms < 0 ? 0 : (uint64_t)again_ms);
	if (again_ms >= 0)
		evtimer_add(&server->trim, &again);
	malloc_trim(0);
}

void server_trim(struct server *server)
{
	if (!evtimer_pending(&server->trim, NULL))
		evtimer_add(&server->trim, &(struct timeval){ .tv_sec = TRIM_S });
}

/* Nobody came for long; but who started a job need not come, as long as it runs. */
static void on_idle(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	(void)fd, (void)what;
	if (runs_alone(server))
		server_settle(server);
	else
		server_end(server);
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	(void)fd, (void)what;
	leave_loop(server);
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

/* What does not fit its client runs by itself. */
static size_t runs_most(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= (rlim_t)RUNS_MAX * RUN_DESCRIPTORS)
		return RUNS_MAX;
	return (size_t)limit.rlim_cur / RUN_DESCRIPTORS;
}

static int open_server(struct server *server, struct cordon_error *err)
{
	static const int ending[] = { SIGTERM, SIGINT, SIGHUP };
	signal(SIGPIPE, SIG_IGN);
	/* A place of its own for each thread's memory would keep what a rush has taken, many times over. */
	mallopt(M_ARENA_MAX, 2);
	server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cordon_approver_interrupt(server->cordon, server->interrupt_fd);
	server->base = event_base_new();
	if (!peer_read_self(&server->self) || server->wake_fd < 0 || server->interrupt_fd < 0 || !server->base)
		return fail(err, CORDON_E_INTERNAL, errno, NULL, "the loop of the daemon cannot be made");
	server->runs_most = runs_most();
	pool_open(&server->starts, STARTS_FEW, STARTS_MOST);
	pool_open(&server->waits, CALLS_FEW, WAITS_MOST);
	pool_open(&server->calls, CALLS_FEW, CALLS_MOST);
	server->last_post = &server->posted;
	event_assign(&server->waking, server->base, server->wake_fd, EV_READ | EV_PERSIST, on_posted, server);
	evtimer_assign(&server->pressed, server->base, on_pressed, server);
	evtimer_assign(&server->idle, server->base, on_idle, server);
	evtimer_assign(&server->trim, server->base, on_trim, server);
	evtimer_assign(&server->drain, server->base, on_drained, server);
	evtimer_assign(&server->drained, server->base, on_drained_early, server);
	evtimer_assign(&server->patience, server->base, on_patience, server);
	event_add(&server->waking, NULL);
	if (!server->has_one_client)
		listen_begin(server);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
		evsignal_assign(&server->signals[i], server->base, ending[i], on_signal, server);
		event_add(&server->signals[i], NULL);
	}
	return 0;
}

/* The remaining clients get no message. */
static void close_server(struct server *server)
{
	while (server->clients) {
		struct client *client = server->clients;
		client_drop(client);
		if (server->clients == client)
			break;
	}
	pool_close(&server->starts);
	pool_close(&server->waits);
	pool_close(&server->calls);
	json_decref(server->methods);
	json_decref(server->asked_list);
	free(server->asked);
	event_base_free(server->base);
	cleanup_close(&server->wake_fd);
}

/* Nobody may be there to read it: not for that does a daemon end as one that failed. */
static void tell_place(const struct server *server)
{
	dprintf(STDOUT_FILENO, "cordon: listening at %s/%s\n", server->directory,
	        strrchr(server->place.address.sun_path, '/') + 1);
}

static int serve(struct server *server, const char *directory, int client_fd, struct cordon_error *err)
{
	int result = server->has_one_client ? 0 : listen_open(server, directory, err);
	if (result == 0 && (result = open_server(server, err)) == 0) {
		if (server->has_one_client)
			client_accept(server, client_fd);
		server_settle(server);
		result = begin_loop(server, err);
		if (result == 0) {
			if (!server->has_one_client)
				tell_place(server);
			await_end(server);
		}
		close_server(server);
	}
	if (!server->has_one_client)
		listen_close(server);
	return result;
}

/* Hundreds of commands may run at a time, each with descriptors here. What a command itself gets is set for it. */
static void raise_open_files(void)
{
	struct rlimit limit;
	if (prlimit(0, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		prlimit(0, RLIMIT_NOFILE, &limit, NULL);
	}
}

int serve_run(const struct serve_options *options, struct cordon_error *err)
{
	struct server server = { .listen_fd = -1,
		                 .wake_fd = -1,
		                 .interrupt_fd = -1,
		                 .directory_fd = -1,
		                 .lock_fd = -1,
		                 .watch_fd = -1,
		                 .place.directory_fd = -1,
		                 .post_lock = PTHREAD_MUTEX_INITIALIZER,
		                 .end_lock = PTHREAD_MUTEX_INITIALIZER,
		                 .ended = PTHREAD_COND_INITIALIZER,
		                 .idle_ms = options->idle_ms,
		                 .has_config = options->config,
		                 .has_one_client = options->client_fd };
	const char *directory;
	raise_open_files();
	int status = cordon_open(&(struct cordon_options){ .config = options->config }, &server.cordon, err) < 0 ||
	                             cordon_data_dir(server.cordon, &directory, err) < 0 ||
	                             serve(&server, directory, options->client_fd, err) < 0 ? -1 : 0;
	cordon_unref(server.cordon);
	cleanup_close(&server.interrupt_fd);
	return status;
}
