/* The supervisor's half of a parked shell: see slot.h and shell-park.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compat.h"
#include "run/control.h"
#include "run/shell-park.h"
#include "run/slot.h"

#define PARK_MS 10000                   /* far more than a shell takes to start */

static int await(int control_fd, int kind, int *ret_fd, struct cordon_error *err)
{
	struct control_message message = { .kind = 0 };
	struct iovec part = { &message, sizeof(message) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct pollfd news = { .fd = control_fd, .events = POLLIN };
	int count;
	do
		count = poll(&news, 1, PARK_MS);
	while (count < 0 && errno == EINTR);
	ssize_t length = count <= 0 ? -1 : recvmsg(control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *rights = length < 0 ? NULL : CMSG_FIRSTHDR(&header);
	int fd = -1;
	if (rights && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
	auto_close int received = fd;
	if (length != sizeof(message) || message.kind != kind || message.value < 0 || (ret_fd && received < 0))
		return fail(err, CORDON_E_SESSION_BUSY, message.kind == kind ? -message.value : EPROTO, "shell",
		            "the shell that was kept for the session is gone");
	if (ret_fd)
		*ret_fd = take_fd(&received);
	return 0;
}

int slot_park(struct slot *slot, const struct launch *launch, int *ret_pidfd, struct cordon_error *err)
{
	const struct control_message park = { .kind = CONTROL_PARK };
	uncleared char place[SHELL_PLACE_MAX];
	memset(place, 'x', SHELL_PLACE_MAX - 1);
	place[SHELL_PLACE_MAX - 1] = '\0';
	const char *const argv[] = { launch->argv[0], launch->argv[1], place, NULL };
	struct launch shell = *launch;
	shell.argv = argv;
	shell.traced = true;
	/* Only when init waits for it may the command stop. */
	if (send(slot->control_fd, &park, sizeof(park), MSG_NOSIGNAL) != sizeof(park) ||
	    await(slot->control_fd, CONTROL_PARKING, NULL, err) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "slot", "the place that was made for a shell is gone");
	if (slot_order(slot, &shell, err) < 0 || slot_go(slot, slot->control_fd, err) < 0 || slot_await_program(slot, err) < 0)
		return -1;
	return await(slot->control_fd, CONTROL_PARKED, ret_pidfd, err);
}

int slot_write_line(const struct slot *slot, const char *line, struct cordon_error *err)
{
	struct control_message message = { .kind = CONTROL_LINE };
	struct iovec parts[] = { { &message, sizeof(message) }, { (void *)(uintptr_t)line, strlen(line) } };
	struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };
	if (sendmsg(slot->control_fd, &header, MSG_NOSIGNAL) < 0)
		return fail(err, CORDON_E_SESSION_BUSY, errno, "slot", "the shell that was kept for the session is gone");
	return 0;
}

int slot_run_line(int control_fd, int pidfd, struct cordon_error *err)
{
	if (await(control_fd, CONTROL_WRITTEN, NULL, err) < 0)
		return -1;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0) < 0)
		return fail(err, CORDON_E_SESSION_BUSY, errno, "slot", "the shell that was kept for the session is gone");
	return 0;
}
