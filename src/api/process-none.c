/* Where no thread of the library follows commands: see process.h. cordon_run() and cordon_execution_start() start them;
 * what has to stay with a process is refused. */
#include "api/process.h"

static int refuse(struct cordon_error *err)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, "cordon_start",
	     "this system has no processes that the library follows by itself");
	return fail_remedy(err, "use cordon_run()");
}

int cordon_start(struct cordon *cordon, struct cordon_request *request, struct cordon_process **ret_process,
                 struct cordon_error *err)
{
	(void)cordon;
	(void)request;
	(void)ret_process;
	return refuse(err);
}

int process_attach(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from,
                   struct cordon_process **ret_handle, struct cordon_error *err)
{
	(void)cordon;
	(void)stdout_from;
	(void)stderr_from;
	(void)ret_handle;
	return fail(err, CORDON_E_NOT_FOUND, 0, id, "there is no such process");
}

int cordon_process_attach(struct cordon *cordon, const char *id, uint64_t stdout_from, uint64_t stderr_from,
                          struct cordon_process **ret_process, struct cordon_error *err)
{
	return process_attach(cordon, id, stdout_from, stderr_from, ret_process, err);
}

void cordon_process_unref(struct cordon_process *process)
{
	(void)process;
}

int cordon_process_detach(struct cordon_process *process, struct cordon_error *err)
{
	(void)process;
	return refuse(err);
}

int cordon_process_fd(const struct cordon_process *process)
{
	(void)process;
	return -1;
}

const char *cordon_process_id(const struct cordon_process *process)
{
	(void)process;
	return "";
}

int cordon_process_next(struct cordon_process *process, struct cordon_value **ret_event, struct cordon_error *err)
{
	(void)process;
	(void)ret_event;
	return refuse(err);
}

int cordon_process_wait(struct cordon_process *process, int64_t timeout_ms, struct cordon_value **ret_result,
                        struct cordon_error *err)
{
	(void)process;
	(void)timeout_ms;
	(void)ret_result;
	return refuse(err);
}

int cordon_process_write(struct cordon_process *process, const void *data, size_t length, size_t *ret_taken,
                         struct cordon_error *err)
{
	(void)process;
	(void)data;
	(void)length;
	(void)ret_taken;
	return refuse(err);
}

int cordon_process_close_stdin(struct cordon_process *process, struct cordon_error *err)
{
	(void)process;
	return refuse(err);
}

int cordon_process_signal(struct cordon_process *process, int number, struct cordon_error *err)
{
	(void)process;
	(void)number;
	return refuse(err);
}

int cordon_process_cancel(struct cordon_process *process, int64_t grace_ms, struct cordon_error *err)
{
	(void)process;
	(void)grace_ms;
	return refuse(err);
}

int cordon_process_resize(struct cordon_process *process, unsigned short rows, unsigned short columns,
                          struct cordon_error *err)
{
	(void)process;
	(void)rows;
	(void)columns;
	return refuse(err);
}

int cordon_process_answer(struct cordon_process *process, const char *card, const char *hash, enum cordon_answer answer,
                          const char *reason, struct cordon_error *err)
{
	(void)process;
	(void)card;
	(void)hash;
	(void)answer;
	(void)reason;
	return refuse(err);
}

/* ---- none is known ----------------------------------------------------------------------------------------------- */

json_t *process_list(struct cordon *cordon)
{
	(void)cordon;
	return json_array();
}

size_t process_count(struct cordon *cordon)
{
	(void)cordon;
	return 0;
}

void process_stop_all(struct cordon *cordon, int64_t drain_ms, int64_t grace_ms)
{
	(void)cordon;
	(void)drain_ms;
	(void)grace_ms;
}

void process_end_all(struct cordon *cordon)
{
	(void)cordon;
}

json_t *process_tell(struct process *process)
{
	(void)process;
	return NULL;
}
