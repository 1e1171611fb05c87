/* The descriptor of an execution is closed when cordon_execution_unref() returns: nothing of it stays in a set that the
 * caller watches. The commands of a session end in another way than the first of them, so there are several. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "embed.h"

static void check_released(struct cordon *cordon, const struct cordon_request *request, int set)
{
	struct cordon_error err;
	struct cordon_execution *execution;
	struct cordon_result *result = NULL;
	struct epoll_event event = { .events = EPOLLIN };
	bool finished = false;
	MUST(cordon_execution_start(cordon, request, &execution, &err));
	int fd = cordon_execution_fd(execution);
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
	while (!finished) {
		CHECK(epoll_wait(set, &event, 1, PATIENCE_MS) == 1);
		MUST(cordon_execution_step(execution, &finished, &err));
	}
	MUST(cordon_execution_result(execution, &result, &err));
	CHECK(result->exit_code == 0);
	cordon_execution_unref(execution);
	CHECK(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
	CHECK(epoll_wait(set, &event, 1, 0) == 0);
	cordon_result_unref(result);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	struct cordon_request *one = shell("echo out"), *many = shell("echo out");
	int set = epoll_create1(EPOLL_CLOEXEC);
	CHECK(set >= 0);
	MUST(cordon_request_set(many, "session", "released", &err));
	MUST(cordon_open(NULL, &cordon, &err));
	for (int i = 0; i < 4; i++) {
		check_released(cordon, one, set);
		check_released(cordon, many, set);
	}
	cordon_request_unref(one);
	cordon_request_unref(many);
	cordon_unref(cordon);
	close(set);
	puts("fine");
	return 0;
}
