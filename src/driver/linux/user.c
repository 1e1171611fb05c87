/* The caller's half of user.h. */
#include "driver/linux/user.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "driver/linux/await.h"
#include "driver/linux/control.h"
#include "driver/linux/launch.h"
#include "driver/linux/receive.h"
#include "driver/linux/order.h"

/* A caller with root's user id owns the files as well. */
bool user_is_needed(const struct launch *launch)
{
	return launch->uid_map && !launch->become && geteuid() != 0 && prctl(PR_GET_DUMPABLE) != 1;
}

static int start(int control_fd, int *ret_pidfd, struct cordon_error *err)
{
	struct launch maker = {
		.group_fd = -1,
		.group_joins = { -1, -1, -1 },
		.cwd_fd = -1,
		.stdio = { -1, -1, -1 },
		.pass = { -1 },
		.init_mode = INIT_USER,
		.control_fd = control_fd,
		.init_socket_fd = -1,
		.report_fd = -1,
		.ready_fd = -1,
		.go_fd = -1,
	};
	maker.init_fd = launch_init_fd(err);
	if (maker.init_fd < 0 || launch_start(&maker, err) < 0)
		return -1;
	*ret_pidfd = maker.pidfd;
	return 0;
}

static int take(int socket_fd, int *ret_fd, struct cordon_error *err)
{
	struct reply reply = { 0 };
	ssize_t length = receive_with(socket_fd, &reply, sizeof(reply), 0, ret_fd);
	if (length == sizeof(reply) && reply.kind == REPLY_FAILED) {
		const struct cordon_error *told = &reply.error;
		fail(err, told->class, told->os_errno, told->subject, "%s", told->reason);
		fail_boundary(err, told->boundary);
		return fail_remedy(err, "%s", told->remediation);
	}
	if (length > 0 && *ret_fd >= 0)
		return 0;
	return fail(err, CORDON_E_INTERNAL, length > 0 ? EMFILE : length < 0 ? errno : 0, "clone",
	            "the process that makes the command's user namespace did not hand it out");
}

int user_make(const struct launch *launch, int *ret_fd, struct cordon_error *err)
{
	int sockets[2];
	struct user_maps maps = { 0 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair",
		            "cannot make a socket for the command's user namespace");
	auto_close int ours = sockets[0], theirs = sockets[1], pidfd = -1;
	snprintf(maps.uid_map, sizeof(maps.uid_map), "%s", launch->uid_map);
	snprintf(maps.gid_map, sizeof(maps.gid_map), "%s", launch->gid_map);
	if (send(ours, &maps, sizeof(maps), MSG_NOSIGNAL) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "send",
		            "cannot read the id maps of the command's user namespace");
	if (start(theirs, &pidfd, err) < 0)
		return -1;
	/* Without this its end would not be seen. */
	close_fd(&theirs);
	int result = take(ours, ret_fd, err);
	await_gone(pidfd, true);
	return result;
}
