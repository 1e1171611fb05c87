/* process/start: a request made of what the client says, and decided in a thread of its own, since a human may be asked
 * meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "door/exec/exec-process.h"
#include "door/exec/exec-task.h"
#include "door/rpc/client-ref.h"

/* ---- the request ----------------------------------------------------------------------------------------------- */

static void leave_out(struct exec_process *process, const char *name)
{
	size_t used = strlen(process->left_out), room = sizeof(process->left_out) - used;
	if ((size_t)snprintf(process->left_out + used, room, "%s%s", used ? ", " : "", name) >= room)
		process->left_out[used] = '\0';
}

/* Variables for the command. What cordon refuses from everybody is left out and said: the client sends its whole
 * environment. */
static int set_variables(struct exec_process *process, json_t *variables, struct cordon_error *err)
{
	const char *name;
	json_t *value;
	json_object_foreach(variables, name, value) {
		struct arena arena = { 0 };
		struct cordon_error refused;
		const char *text = json_string_value(value),
			   *pair = text ? arena_printf(&arena, "%s=%s", name, text) : NULL;
		bool is_refused = cordon_variable_check(name, &refused) < 0;
		bool is_set = is_refused || (pair && cordon_request_set(process->request, "env", pair, &refused) == 0);
		arena_free(&arena);
		if (!text || strlen(text) != json_string_length(value))
			return fail(err, CORDON_E_INVALID_REQUEST, 0, name, "the value of this variable is no text");
		if (!is_set)
			return fail(err, CORDON_E_INVALID_REQUEST, 0, name, "this variable cannot be set");
		if (is_refused)
			leave_out(process, name);
	}
	return 0;
}

/* What it says of variables that are inherited is kept in any case: a command inherits none of this process's. */
static int check_policy(json_t *policy, struct cordon_error *err)
{
	static const char *const names[] = { "inherit", "ignoreDefaultExcludes", "exclude", "includeOnly", "set" };
	const char *name;
	json_t *value;
	if (policy && !json_is_null(policy) && !json_is_object(policy))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "envPolicy", "is no object");
	json_object_foreach(policy, name, value) {
		size_t row = 0;
		while (row < ARRAY_SIZE(names) && strcmp(names[row], name) != 0)
			row++;
		if (row == ARRAY_SIZE(names))
			return fail(err, CORDON_E_INVALID_REQUEST, 0, name,
			            "cordon does not know this member of envPolicy");
	}
	value = json_object_get(policy, "set");
	if (value && !json_is_null(value) && !json_is_object(value))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, "envPolicy.set", "is no object");
	return 0;
}

static int set_environment(struct exec_process *process, json_t *params, struct cordon_error *err)
{
	json_t *policy = json_object_get(params, "envPolicy"), *variables = json_object();
	int result = check_policy(policy, err);
	if (result == 0) {
		json_object_update(variables, json_object_get(policy, "set"));
		json_object_update(variables, json_object_get(params, "env"));
		result = set_variables(process, variables, err);
	}
	json_decref(variables);
	return result;
}

/* A program is started by the name that it is found by. */
static int check_name(json_t *params, struct cordon_error *err)
{
	const char *name = exec_text(params, "arg0"),
		   *program = json_string_value(json_array_get(json_object_get(params, "argv"), 0));
	json_t *given = json_object_get(params, "arg0");
	if (!given || json_is_null(given) || (name && program && !strcmp(name, program)))
		return 0;
	fail(err, CORDON_E_INVALID_REQUEST, 0, name ? name : "arg0",
	     "arg0: cordon starts a program by no other name than its own");
	return fail_remedy(err, "leave arg0 out");
}

static int set_command(struct exec_process *process, json_t *params, struct cordon_error *err)
{
	json_t *list = json_object_get(params, "argv"), *each;
	size_t index, count = json_array_size(list);
	struct arena arena = { 0 };
	const char **argv = arena_alloc(&arena, (count + 1) * sizeof(*argv));
	int result = argv ? 0 : fail_oom(err);
	if (argv)
		json_array_foreach(list, index, each) if (!(argv[index] = json_string_value(each)) ||
		                                          strlen(argv[index]) != json_string_length(each)) result =
			fail(err, CORDON_E_INVALID_REQUEST, 0, "argv", "the command is no list of texts");
	if (result == 0)
		result = cordon_request_command(process->request, argv, err);
	arena_free(&arena);
	return result;
}

static int open_input(struct exec_process *process, json_t *params, struct cordon_error *err)
{
	int ends[2];
	if (!process->tty && !json_is_true(json_object_get(params, "pipeStdin")))
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "pipe", "cannot make the command's input");
	process->input_fd = ends[1];
	process->source_fd = ends[0];
	return fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0
	               ? fail(err, CORDON_E_INTERNAL, errno, "pipe", "cannot make the command's input") : 0;
}

static int prepare(struct exec_process *process, json_t *params, struct cordon_error *err)
{
	static const char *const ids[] = { "threadId", "toolCallId", NULL };
	const char *uri = exec_text(params, "cwd");
	auto_free char *cwd = uri ? exec_path_of_uri(uri) : NULL;
	auto_free char *ref = client_ref_make(json_object_get(params, "metadata"), ids);
	if (!cwd)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, uri, "the working directory is no file: URI");
	if (check_name(params, err) < 0 || cordon_request_set(process->request, "cwd", cwd, err) < 0 ||
	    cordon_request_set(process->request, "hand-on", "true", err) < 0 ||
	    (ref && cordon_request_set(process->request, "client-ref", ref, err) < 0) ||
	    (process->tty && cordon_request_set(process->request, "tty", "24x80", err) < 0) ||
	    set_environment(process, params, err) < 0 || set_command(process, params, err) < 0)
		return -1;
	cordon_request_output(process->request, exec_process_output, process);
	cordon_request_stdin(process->request, process->source_fd);
	return 0;
}

/* ---- its thread ------------------------------------------------------------------------------------------------ */

/* Between them only the thread touches it. */
struct exec_starting {
	struct exec_task task;
	struct exec_process *process;
	struct cordon_execution *execution;
	struct cordon_error err;
	bool failed, cancelled;
	int cancel_fd;
};

static void decide(struct exec_task *task)
{
	struct exec_starting *starting = (struct exec_starting *)task;
	const struct exec_process *process = starting->process;
	starting->failed = cordon_execution_start(process->server->cordon, process->request, &starting->execution,
	                                          &starting->err) < 0;
}

int exec_start_fd(const struct exec_process *process)
{
	return process->starting->task.done_fd;
}

void exec_start_cancel(struct exec_process *process)
{
	if (process->state != EXEC_STARTING)
		return;
	process->starting->cancelled = true;
	(void)!eventfd_write(process->starting->cancel_fd, 1);
}

void exec_start_free(struct exec_process *process)
{
	struct exec_starting *starting = process->starting;
	if (!starting)
		return;
	exec_task_join(&starting->task);
	cordon_execution_unref(starting->execution);
	close_fd(&starting->cancel_fd);
	free(starting);
	process->starting = NULL;
}

void exec_start_step(struct exec_process *process)
{
	struct exec_starting *starting = process->starting;
	if (!exec_task_is_done(&starting->task, 0))
		return;
	exec_task_join(&starting->task);
	process->execution = starting->execution;
	starting->execution = NULL;
	process->state = EXEC_RUNNING;
	if (starting->failed)
		exec_process_refused(process, &starting->err);
	else if (starting->cancelled)
		cordon_execution_signal(process->execution, SIGKILL);
	exec_start_free(process);
}

static int start(struct exec_process *process, json_t *params, struct cordon_error *err)
{
	if (prepare(process, params, err) < 0)
		return -1;
	struct exec_starting *starting = calloc(1, sizeof(*starting));
	if (!starting)
		return fail_oom(err);
	starting->process = process;
	starting->task.act = decide;
	starting->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (starting->cancel_fd >= 0)
		cordon_request_approver(process->request, NULL, NULL, starting->cancel_fd, 0);
	if (starting->cancel_fd < 0 || exec_task_begin(&starting->task, err) < 0) {
		if (starting->cancel_fd < 0)
			fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, "eventfd", "cannot start the command");
		close_fd(&starting->cancel_fd);
		free(starting);
		return -1;
	}
	process->starting = starting;
	process->state = EXEC_STARTING;
	/* Most are decided at once. */
	if (exec_task_is_done(&starting->task, EXEC_PATIENCE_MS))
		exec_start_step(process);
	return 0;
}

/* ---- the call -------------------------------------------------------------------------------------------------- */

/* Room for one more: the oldest that has ended goes. */
static bool make_room(struct exec_server *server)
{
	size_t running = 0, ended = 0;
	struct exec_process **oldest = NULL;
	for (struct exec_process **at = &server->processes; *at; at = &(*at)->next) {
		bool has_ended = (*at)->state == EXEC_ENDED;
		running += !has_ended;
		ended += has_ended;
		if (has_ended)
			oldest = at;
	}
	if (ended >= EXEC_PROCESSES_MAX) {
		struct exec_process *gone = *oldest;
		*oldest = gone->next;
		exec_process_free(gone);
	}
	return running < EXEC_PROCESSES_MAX;
}

static void answer_name(struct exec_server *server, const char *id, const char *name)
{
	struct json json;
	exec_result_begin(&json, id);
	json_object_begin(&json);
	json_key_string(&json, "processId", name);
	json_object_end(&json);
	exec_end(server, &json);
}

void exec_start_call(struct exec_server *server, const char *id, json_t *params)
{
	const char *name = exec_text(params, "processId");
	struct cordon_error err;
	if (!name || strlen(name) >= EXEC_NAME_SIZE)
		return exec_refuse(server, id, EXEC_BAD_PARAMS, "processId is missing, or too long");
	if (exec_process_find(server, name))
		return exec_refuse(server, id, EXEC_INVALID, "there is a process of this name");
	if (!make_room(server))
		return exec_refuse(server, id, EXEC_INVALID, "too many processes are running");
	struct exec_process *process = calloc(1, sizeof(*process));
	if (!process)
		return exec_refuse(server, id, EXEC_FAILED, "memory is short");
	process->server = server;
	process->last = &process->chunks;
	process->next_seq = 1;
	process->input_fd = process->source_fd = -1;
	process->state = EXEC_RUNNING;
	process->tty = json_is_true(json_object_get(params, "tty"));
	snprintf(process->name, sizeof(process->name), "%s", name);
	process->next = server->processes;
	server->processes = process;
	bool failed = exec_request(server, &process->request, &err) < 0 || open_input(process, params, &err) < 0;
	answer_name(server, id, name);
	if (failed || start(process, params, &err) < 0)
		exec_process_refused(process, &err);
}
