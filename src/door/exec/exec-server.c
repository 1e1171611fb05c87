/* Lines in, lines out, and the methods that only tell: see exec.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "door/exec/exec.h"
#include "door/sweep.h"

#define READ_SIZE 65536

uint64_t exec_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- what is said ---------------------------------------------------------------------------------------------- */

static void send_line(struct exec_server *server, const char *line, size_t length)
{
	pthread_mutex_lock(&server->out_lock);
	while (length && !server->broken) {
		ssize_t written = write(STDOUT_FILENO, line, length);
		if (written > 0) {
			line += written;
			length -= (size_t)written;
		} else if (errno == EAGAIN) {
			poll(&(struct pollfd){ .fd = STDOUT_FILENO, .events = POLLOUT }, 1, 1000);
		} else if (errno != EINTR) {
			server->broken = true;
		}
	}
	pthread_mutex_unlock(&server->out_lock);
}

void exec_result_begin(struct json *json, const char *id)
{
	json_init(json);
	json_object_begin(json);
	json_key(json, "id");
	json_verbatim(json, id);
	json_key(json, "result");
}

void exec_notice_begin(struct json *json, const char *method)
{
	json_init(json);
	json_object_begin(json);
	json_key_string(json, "method", method);
	json_key(json, "params");
}

void exec_end(struct exec_server *server, struct json *json)
{
	json_object_end(json);
	size_t length = json->length;
	auto_free char *text = json_take(json);
	/* Without memory an answer would be missing, and the client would wait for it for ever. */
	if (!text) {
		server->broken = true;
		return;
	}
	text[length] = '\n';
	send_line(server, text, length + 1);
}

void exec_refuse(struct exec_server *server, const char *id, enum exec_code code, const char *message)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, "id");
	json_verbatim(&json, id);
	json_key(&json, "error");
	json_object_begin(&json);
	json_key_int(&json, "code", code);
	json_key_string(&json, "message", message);
	json_object_end(&json);
	exec_end(server, &json);
}

void exec_refuse_error(struct exec_server *server, const char *id, const struct cordon_error *err)
{
	char message[2048];
	bool failed = err->class == CORDON_E_INTERNAL || err->class == CORDON_E_RESOURCE_EXHAUSTED;
	bool missing = err->class == CORDON_E_NOT_FOUND || err->os_errno == ENOENT || err->os_errno == ENOTDIR;
	/* A model reads it: no word of what the policy hides. */
	if (!strcmp(err->boundary, "masked_names"))
		snprintf(message, sizeof(message), "cordon: this cannot be read (%s)", err->subject);
	else
		snprintf(message, sizeof(message), "cordon: %s%s%s%s%s%s", err->reason, *err->subject ? " (" : "",
		         err->subject, *err->subject ? ")" : "", *err->remediation ? "; " : "", err->remediation);
	exec_refuse(server, id,
	            missing ? EXEC_NOT_FOUND : failed ? EXEC_FAILED : EXEC_INVALID,
	            message);
}

/* ---- methods --------------------------------------------------------------------------------------------------- */

const char *exec_text(json_t *params, const char *key)
{
	json_t *value = json_object_get(params, key);
	const char *text = json_string_value(value);
	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

int exec_request(struct exec_server *server, struct cordon_request **ret_request, struct cordon_error *err)
{
	struct cordon_request *request;
	if (cordon_request_new(&request, err) < 0)
		return -1;
	if (cordon_request_set(request, "session", server->session, err) < 0) {
		cordon_request_unref(request);
		return -1;
	}
	cordon_request_approver(request, NULL, NULL, server->ending_fd, 0);
	*ret_request = request;
	return 0;
}

static void put_info(struct exec_server *server, struct json *json)
{
	auto_free char *cwd = exec_uri_of_path(server->cwd);
	json_object_begin(json);
	json_key(json, "shell");
	json_verbatim(json, "{\"name\":\"bash\",\"path\":\"/bin/bash\"}");
	json_key_string(json, "cwd", cwd);
	json_key(json, "capabilities");
	json_verbatim(json, "{}");
	json_object_end(json);
}

/* Plugins and skills beneath a root: none is told. */
static void put_no_roots(struct json *json, json_t *params)
{
	size_t index;
	json_t *each;
	json_object_begin(json);
	json_key(json, "roots");
	json_array_begin(json);
	json_array_foreach(json_object_get(params, "roots"), index, each) {
		json_object_begin(json);
		json_key_string(json, "id", exec_text(each, "id"));
		json_key_string(json, "path", exec_text(each, "path"));
		json_key(json, "plugin");
		json_nil(json);
		json_key(json, "skills");
		json_verbatim(json, "[]");
		json_key(json, "namespaceManifests");
		json_verbatim(json, "[]");
		json_key(json, "warnings");
		json_verbatim(json, "[]");
		json_key_string(json, "error", "cordon does not look for plugins");
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static bool tell(struct exec_server *server, const char *method, const char *id, json_t *params)
{
	struct json json;
	exec_result_begin(&json, id);
	const char *resumed = exec_text(params, "resumeSessionId");
	if (!strcmp(method, "initialize") && resumed && strcmp(resumed, server->client) != 0) {
		json_free(&json);
		exec_refuse(server, id, EXEC_INVALID,
		            "resumeSessionId: there is no such session here; connect without it");
		return true;
	}
	if (!strcmp(method, "initialize")) {
		json_object_begin(&json);
		json_key_string(&json, "sessionId", server->client);
		json_object_end(&json);
	} else if (!strcmp(method, "environment/info")) {
		put_info(server, &json);
	} else if (!strcmp(method, "environment/status")) {
		json_verbatim(&json, "{\"status\":\"ready\"}");
	} else if (!strcmp(method, "capabilityRoots/discoverV1")) {
		put_no_roots(&json, params);
	} else {
		json_free(&json);
		return false;
	}
	exec_end(server, &json);
	return true;
}

static void take_call(struct exec_server *server, json_t *whole)
{
	json_t *id = json_object_get(whole, "id"), *params = json_object_get(whole, "params");
	const char *method = exec_text(whole, "method");
	/* Notifications, and answers to questions that were never asked. */
	if (!id || json_object_get(whole, "result") || json_object_get(whole, "error"))
		return;
	auto_free char *text =
		json_is_string(id) || json_is_integer(id) ? json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	if (!text || strlen(text) >= RPC_ID_MAX)
		return exec_refuse(server, "null", EXEC_INVALID,
		                   "the id must be a string or a whole number, and not long");
	if (!method)
		return exec_refuse(server, text, EXEC_INVALID, "the method is missing");
	if (params && !json_is_null(params) && !json_is_object(params))
		return exec_refuse(server, text, EXEC_BAD_PARAMS, "the parameters must be an object");
	if (!tell(server, method, text, params) && !exec_process_call(server, method, text, params) &&
	    !exec_file_call(server, method, text, params))
		exec_refuse(server, text, EXEC_NO_METHOD, "cordon has no such method");
}

static void take_line(struct exec_server *server, const char *line, size_t length)
{
	json_t *whole = json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (json_is_object(whole))
		take_call(server, whole);
	else
		exec_refuse(server, "null", EXEC_INVALID, "this is no JSON object");
	json_decref(whole);
}

/* ---- the loop -------------------------------------------------------------------------------------------------- */

struct inlet {
	char *buffer;
	size_t length, capacity;
};

/* False: the end. */
static bool take_input(struct exec_server *server, struct inlet *inlet)
{
	size_t from = 0;
	if (inlet->capacity - inlet->length < READ_SIZE) {
		char *larger =
			inlet->length > EXEC_LINE_MAX ? NULL : realloc(inlet->buffer, inlet->capacity * 2 + READ_SIZE);
		if (!larger) {
			exec_refuse(server, "null", EXEC_INVALID, "the line is too long");
			return false;
		}
		inlet->buffer = larger;
		inlet->capacity = inlet->capacity * 2 + READ_SIZE;
	}
	ssize_t got = read(STDIN_FILENO, inlet->buffer + inlet->length, inlet->capacity - inlet->length);
	if (got <= 0)
		return got < 0 && (errno == EINTR || errno == EAGAIN);
	size_t searched = inlet->length;
	inlet->length += (size_t)got;
	for (char *end; (end = memchr(inlet->buffer + searched, '\n', inlet->length - searched)); searched = from) {
		size_t size = (size_t)(end - inlet->buffer) - from;
		if (size)
			take_line(server, inlet->buffer + from, size);
		from = (size_t)(end + 1 - inlet->buffer);
	}
	memmove(inlet->buffer, inlet->buffer + from, inlet->length - from);
	inlet->length -= from;
	return true;
}

static void serve(struct exec_server *server)
{
	struct pollfd fds[1 + 2 * EXEC_PROCESSES_MAX];
	struct inlet inlet = { 0 };
	struct sweep sweep = { 0 };
	for (bool open = true; open && !server->broken;) {
		fds[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
		size_t count = 1 + exec_process_poll(server, fds + 1);
		if (poll(fds, count, sweep_wait_ms(&sweep, exec_process_timeout(server))) < 0 && errno != EINTR)
			break;
		if (fds[0].revents) {
			open = take_input(server, &inlet);
			sweep_begin(&sweep);
		}
		sweep_step(&sweep, server->cordon, count > 1);
		exec_process_step_all(server);
		exec_file_step_all(server);
	}
	free(inlet.buffer);
}

int exec_serve(struct cordon *cordon, const char *session, const char *cwd, struct cordon_error *err)
{
	struct exec_server server = {
		.cordon = cordon,
		.session = session,
		.cwd = cwd,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.out_lock = PTHREAD_MUTEX_INITIALIZER,
		.ending_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	if (server.ending_fd < 0)
		return fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, "eventfd", "the server cannot be started");
	if (sodium_init() < 0)
		return fail(err, CORDON_E_INTERNAL, 0, NULL, "there is no source of random numbers");
	signal(SIGPIPE, SIG_IGN);
	id_make(server.client);
	serve(&server);
	(void)!eventfd_write(server.ending_fd, 1);
	exec_process_end_all(&server);
	exec_file_close_all(&server);
	close_fd(&server.ending_fd);
	return 0;
}
