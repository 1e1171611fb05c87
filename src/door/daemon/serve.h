/* The daemon's parts and who may touch what.
 *
 *     loop (one thread, libevent)                          workers (pool.h)
 *     accepts, reads what clients send, steps      --->    cordon_execution_start(), then the first moments of a
 *     commands that take longer, writes on         <---    command; cordon_execution_result(); all that may wait
 *
 * The loop is itself a task of the pool: a thread that finds a command to start in it hands the loop to an idle one and
 * starts the command, so that no thread has to be woken before it. "In the loop" is still one thread at a time.
 *
 * A run belongs to one thread at a time: handed over by pool_add() and by server_post(), never shared. What may be
 * touched by several is marked below. What is sent to a client goes through client_send(), from any thread. */
#pragma once
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "door/daemon/daemon-place.h"
#include "door/daemon/peer.h"
#include "door/daemon/pool.h"

#define CLIENTS_MAX 1024
#define CLIENT_INPUT_MAX                                                                                               \
	(64u << 20) /* of all clients together, what was received and not yet taken, beyond 64 KiB of each */
#define CALL_INPUT_MAX (128u << 20)     /* of the calls that workers carry out, as they were sent */
#define RUNS_MAX 1024
#define RUN_DESCRIPTORS                                                                                                \
	32 /* of a command that starts, with its client and a place for the next one; then it has half of them */
/* A client that leaves more than this unread is not sent more, but for what comes while its command is looked
 * after... */
#define UNREAD_MAX (256u << 10)
/* ...and has given up beyond this. */
#define UNREAD_GONE (32u << 20)

struct client;
struct served;

/* Something for the loop to do; embedded in what it is about. */
struct post {
	struct post *next;
	void (*act)(struct post *post);
};

struct server {
	struct event_base *base;
	struct cordon *cordon;
	struct pool starts, waits, calls;       /* commands; calls that may wait for a human or an end; other calls */
	struct task lead;                       /* the loop */
	struct task *own;                       /* what the thread that leads is to do when it has handed the loop on */
	pthread_mutex_t end_lock;               /* over the next: */
	pthread_cond_t ended;
	bool has_ended;
	bool is_over;                           /* the loop is to be left; the loop's */
	bool has_config;                        /* a file was named: clients of frames have another */
	struct peer self;                       /* what clients are compared with */
	int wake_fd;
	int interrupt_fd;                       /* readable: it ends, and calls wait for no human any more */
	struct event waking, signals[3], pressed, idle, trim, patience;
	/* Where it listens: serve-listen.c. */
	const char *directory;
	int directory_fd, lock_fd, listen_fd, watch_fd;
	struct daemon_place place;
	struct stat socket;                     /* the socket's identity, if it is ours */
	bool is_handed_over;                    /* systemd's: not to be removed */
	struct event listening, changed, look;
	uint64_t idle_ms;                       /* 0: without a limit */
	struct client *clients;
	size_t client_count, run_count, call_count;
	size_t input_bytes;                     /* of CLIENT_INPUT_MAX */
	size_t call_bytes;                      /* of CALL_INPUT_MAX */
	size_t runs_most;                       /* at a time: RUNS_MAX, or what there are descriptors for */
	uint64_t served_count;
	size_t watch_count;                     /* processes whose events a client gets */
	void *methods;                          /* the library's table, as JSON */
	struct event drain, drained,
		questions; /* the end of a drain; is it done already; looking for what clients are to be told */
	char *asked;                            /* those that wait, when last looked */
	void *asked_list;                       /* the same as JSON */
	bool is_draining;
	bool has_one_client;                    /* it does not listen */
	bool is_hurried;                        /* the loop's: told to end twice */
	atomic_bool is_ending;
	pthread_mutex_t post_lock;              /* over the next: */
	struct post *posted, **last_post;
};

/* From any thread: act() is called in the loop. */
void server_post(struct server *server, struct post *post);
/* Begins to stop: running commands are ended, and the loop ends when all results are sent. A second call: at once. */
void server_end(struct server *server);
/* The same, once nothing runs any more, or after so long. Nothing is begun meanwhile. */
void server_drain(struct server *server, uint64_t drain_ms);
/* Something has ended. */
void server_settle(struct server *server);
/* How many of the library's processes run, also of clients that have left. */
size_t server_processes(const struct server *server);
/* A client was freed: its memory goes back to the system in a second, together with that of others that leave. */
void server_trim(struct server *server);
/* From the loop: a worker is to do this, at best the thread that found it. */
void server_start(struct server *server, struct task *task);
/* Work was given to a pool. */
void server_press(struct server *server);

/* ---- where it listens (serve-listen.c) --------------------------------------------------------------------------- */

/* `directory` is borrowed. What was opened is closed by listen_close(), also after a failure. */
int listen_open(struct server *server, const char *directory, struct cordon_error *err) must_check;
/* Once there is a loop. */
void listen_begin(struct server *server);
void listen_end(struct server *server);
void listen_close(struct server *server);

/* ---- a connection (serve-client.c) ------------------------------------------------------------------------------- */

struct client_kind {
	/* Takes what it can of client->in. False: it makes no sense, or is too much; the client is dropped. */
	bool (*take)(struct client *client);
	/* There is no room for the rest of what it has begun to send: says so and passes over it. NULL: the client is
	 * dropped. */
	void (*skip)(struct client *client);
	size_t in_max;
	bool may_half_close;                    /* who says no more may still want the answers */
};
extern const struct client_kind client_frames, client_rpc;

struct client {
	struct server *server;
	struct client *next, **previous;
	const struct client_kind *kind;         /* NULL until the first byte */
	int fd;
	pid_t pid;
	struct event readable, writable;
	struct post arm;
	char *in;
	size_t in_from, in_to, in_size;
	size_t in_looked;                       /* from in_from on, where no end of a line is */
	bool skips;                             /* what comes up to the end of the line is passed over */
	struct served *runs;
	struct watch *watches;                  /* serve-rpc-watch.c */
	size_t process_count;                   /* of these, those that end with it */
	struct work *works;                     /* calls that workers carry out: serve-rpc.c */
	struct subscriptions *subscriptions;    /* serve-rpc-subscribe.c; or NULL */
	atomic_uint follow_number;              /* of its audit.follow that counts: serve-rpc-follow.c */
	size_t pending;                         /* runs and calls under way */
	bool is_gone, greeted;
	bool is_compared;                       /* with the daemon, for JSON-RPC */
	pthread_mutex_t lock;                   /* over the next: */
	struct evbuffer *out;
	bool is_half_closed;                    /* it says no more */
	bool is_broken, is_armed, is_posted;    /* `writable` is waited for, or will be; `arm` is on its way */
};

void client_accept(struct server *server, int fd);
void client_send(struct client *client, const struct iovec *parts, int count);
/* How much it has not read yet. */
size_t client_unread(struct client *client);
/* The client is gone: its runs are ended. */
void client_drop(struct client *client);
/* Its client has read on, or is gone (serve-rpc-watch.c). */
void watches_go_on(struct client *client);
void watches_end(struct client *client);
/* Is there an event that it may still want? */
bool watches_are_wanted(const struct client *client);
/* Is nobody there any more, or only for the answers to what was asked? From any thread. */
bool client_has_left(struct client *client);
/* One of its runs or calls is over. May free it. */
void client_settle(struct client *client);

/* ---- a command (serve-run.c) ------------------------------------------------------------------------------------- */

struct served_kind {
	/* In a worker, first, and before the command is started. False: the daemon does not run it, and has said so. */
	bool (*admit)(struct served *run);
	/* By the owner of the run: */
	void (*started)(struct served *run);
	void (*output)(struct served *run, enum cordon_stream stream, const char *data, size_t length);
	void (*conclude)(struct served *run);
	/* From any thread. False: it was not asked. True: and is answered by run_answer(). */
	bool (*ask)(struct served *run, const struct cordon_card *card);
	void (*settled)(struct served *run);
	void (*room)(struct served *run, size_t length);       /* so many bytes of input were taken */
	void (*free)(struct served *run);                      /* in the loop, last */
};

struct served {
	struct task task;
	struct post post;
	struct server *server;
	struct client *client;
	struct served *next, **previous;        /* of the client's */
	const struct served_kind *kind;
	struct cordon_request *request;
	struct cordon_execution *execution;
	struct cordon_result *result;
	struct cordon_error err;
	bool failed, in_loop;
	bool ends_with_us;                      /* it was ended because the daemon ends */
	char *note;                             /* of its result, if it is ours */
	bool takes_input, can_ask;
	bool is_long;                           /* it belongs in the loop from its start */
	bool is_job;                            /* it is over once it has started, and `job` is what it is */
	char *job;
	struct event ready, grace;
	bool is_stalled;
	/* Requests of the loop to the owner of the run: */
	atomic_ullong signals;                  /* bits of those not yet delivered */
	atomic_int end_by;                      /* the signal that it is to be ended by, as run_end() has it; or 0 */
	atomic_bool started, is_told;           /* set once, by the worker; `is_told`: to its client it is over */
	int interrupt_fd;                       /* readable: the answer is no longer waited for */
	pthread_mutex_t lock;                   /* over the next: */
	int answer_fd;                          /* while a question is open; or -1 */
	char card[40], hash[80], reason[256];
	enum cordon_answer answer;
	/* The command's input; the loop's. */
	struct {
		int read_fd, write_fd;
		struct event writable;
		struct evbuffer *waiting;
		size_t wanted, taken;           /* asked of the client and not come yet; come, and not yet asked for
		                                   anew */
		bool is_watched, has_ended;
		atomic_int error;               /* why the client could not read it to its end, or 0 */
	} input;
};

/* Takes the run, which is zero but for what the kind has filled in: the request, or an error. */
void run_begin(struct served *run, struct client *client, const struct served_kind *kind);
/* A signal for the command, now or once it runs. */
void run_signal(struct served *run, int signal);
/* An answer to what kind->ask() asked. */
void run_answer(struct served *run, const char *card, const char *hash, unsigned answer, const char *reason);
/* It is to end: its client is gone (SIGHUP), the daemon ends (SIGTERM), or must at once (SIGKILL), which the others
 * become in a second. */
void run_end(struct served *run, int signal);
/* Its client has read on. */
void run_go_on(struct served *run);

/* serve-stdin.c. Open in a worker; the rest in the loop. */
int stdin_open(struct served *run, struct cordon_error *err) must_check;
void stdin_put(struct served *run, const char *data, size_t length);
void stdin_end(struct served *run);
void stdin_close(struct served *run);
