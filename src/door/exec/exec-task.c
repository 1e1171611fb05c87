/* See exec-task.h. */
#include "door/exec/exec-task.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

static void *work(void *arg)
{
	struct exec_task *task = arg;
	task->act(task);
	(void)!eventfd_write(task->done_fd, 1);
	return NULL;
}

int exec_task_begin(struct exec_task *task, struct cordon_error *err)
{
	sigset_t all, before;
	task->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (task->done_fd < 0)
		return fail(err, CORDON_E_RESOURCE_EXHAUSTED, errno, "eventfd", "cannot make a thread");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int number = pthread_create(&task->thread, NULL, work, task);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	task->begun = number == 0;
	if (number)
		close_fd(&task->done_fd);
	return number ? fail(err, CORDON_E_RESOURCE_EXHAUSTED, number, "pthread_create", "cannot make a thread") : 0;
}

bool exec_task_is_done(const struct exec_task *task, int timeout_ms)
{
	struct pollfd fd = { .fd = task->done_fd, .events = POLLIN };
	return poll(&fd, 1, timeout_ms) > 0;
}

void exec_task_join(struct exec_task *task)
{
	if (!task->begun)
		return;
	pthread_join(task->thread, NULL);
	close_fd(&task->done_fd);
	task->begun = false;
}
