/* The supervisor's half of a parked shell: see slot.h and shell-park.h. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compat.h"
#include "run/await.h"
#include "run/control.h"
#include "run/shell-park.h"
#include "run/slot.h"

#define PARK_MS 10000                   /* far more than a shell takes to start */

static int await(int control_fd, int kind, struct cordon_error *err)
{
	struct control_message message = { .kind = 0 };
	struct pollfd news = { .fd = control_fd, .events = POLLIN };
	int count;
	do
		count = poll(&news, 1, PARK_MS);
	while (count < 0 && errno == EINTR);
	ssize_t length = count <= 0 ? -1 : recv(control_fd, &message, sizeof(message), MSG_DONTWAIT);
	if (length == sizeof(message) && message.kind == kind && message.value >= 0)
		return 0;
	return fail(err, CORDON_E_SESSION_BUSY, message.kind == kind ? -message.value : EPROTO, "shell",
	            "the shell that was kept for the session is gone");
}

int slot_park(struct slot *slot, const struct launch *launch, struct cordon_error *err)
{
	const struct control_message park = { .kind = CONTROL_PARK };
	uncleared char place[SHELL_PLACE_MAX];
	memset(place, 'x', SHELL_PLACE_MAX - 1);
	place[SHELL_PLACE_MAX - 1] = '\0';
	const char *const argv[] = { launch->argv[0], launch->argv[1], place, NULL };
	struct launch shell = *launch;
	shell.argv = argv;
	shell.traced = true;
	/* Only when init waits for it may the command stop: that of a slot which holds its program does. */
	if (send(slot->control_fd, &park, sizeof(park), MSG_NOSIGNAL) != sizeof(park) ||
	    (!slot->held && await(slot->control_fd, CONTROL_PARKING, err) < 0))
		return fail(err, CORDON_E_INTERNAL, errno, "slot", "the place that was made for a shell is gone");
	if (slot_order(slot, &shell, err) < 0 || (!slot->held && slot_go(slot, slot->control_fd, NULL, err) < 0))
		return -1;
	slot->held = false;
	const struct patience patience = { await_now_us() + PARK_MS * 1000, -1 };
	int there = slot_await_program(slot, &patience, err);
	if (there > 0)
		return fail(err, CORDON_E_SESSION_BUSY, ETIMEDOUT, "shell", "the shell is not there in time");
	return there < 0 ? -1 : await(slot->control_fd, CONTROL_PARKED, err);
}

int slot_write_line(const struct slot *slot, const char *line, struct cordon_error *err)
{
	struct control_message message = { .kind = CONTROL_LINE, .value = sched_getcpu() };
	struct iovec parts[] = { { &message, sizeof(message) }, { (void *)(uintptr_t)line, strlen(line) } };
	struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };
	if (sendmsg(slot->control_fd, &header, MSG_NOSIGNAL) < 0)
		return fail(err, CORDON_E_SESSION_BUSY, errno, "slot", "the shell that was kept for the session is gone");
	return 0;
}

int slot_run_line(int control_fd, struct cordon_error *err)
{
	const struct control_message go = { .kind = CONTROL_GO };
	if (await(control_fd, CONTROL_WRITTEN, err) < 0)
		return -1;
	if (send(control_fd, &go, sizeof(go), MSG_NOSIGNAL) != sizeof(go))
		return fail(err, CORDON_E_SESSION_BUSY, errno, "slot", "the shell that was kept for the session is gone");
	return 0;
}
