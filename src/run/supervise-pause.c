/* A command that stands still because its session is paused: see supervise-parts.h. Whether it is to is asked now and then, and
 * never of a command that has just begun. What it takes is the control group's (cgroup.h); a little of it is done at a time, since
 * whoever has the supervision may have others. Init goes on: it ends everything should we be gone. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "run/control.h"
#include "run/processes.h"
#include "run/supervise-parts.h"

#define LOOK_MS 200
#define ROUND_MS 1                      /* before those who came meanwhile are looked for */
#define ROUNDS_POLITE 20                /* then nobody can start another until all stand still */

/* What init needs to end everything by itself. */
static bool hand_over(struct supervision *supervision, const int release[2])
{
	struct control_message message = { .kind = CONTROL_FREEZER };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	memcpy(CMSG_DATA(&control.header), release, 2 * sizeof(int));
	return sendmsg(supervision->control_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(message);
}

static void count(struct supervision *supervision)
{
	supervision->still = false;
	supervision->rounds = 0;
	supervision->still_ms += (uint64_t)(clock_ms() - supervision->still_since_ms);
}

static void go_on(struct supervision *supervision)
{
	cgroup_thaw(supervision->options.group, supervision->init);
	count(supervision);
}

static bool begin(struct supervision *supervision)
{
	const struct cgroup_search here = { 0 };
	int release[2];
	if (!supervision->init && !(supervision->init = processes_of_pidfd(supervision->pidfd)))
		return false;
	if (!cgroup_freeze_ready(supervision->options.group, &here, release))
		return false;
	supervision->still = true;
	supervision->rounds = 1;
	supervision->still_since_ms = clock_ms();
	bool told = release[0] < 0 || hand_over(supervision, release);
	close_fd(&release[0]);
	close_fd(&release[1]);
	if (!told)
		go_on(supervision);
	return told;
}

/* What cannot be done now is tried again with the next look. */
static void stand_still(struct supervision *supervision)
{
	if (!supervision->still && !begin(supervision))
		return;
	if (!supervision->rounds)
		return;
	int left = cgroup_freeze(supervision->options.group, supervision->init, supervision->rounds > ROUNDS_POLITE);
	supervision->rounds = left > 0 ? supervision->rounds + 1 : 0;
	if (left < 0)
		go_on(supervision);
}

uint64_t pause_look(struct supervision *supervision)
{
	const struct supervise_options *options = &supervision->options;
	if (!options->wish || !options->group || !options->group->ops)
		return 0;
	switch (options->wish(options->wish_arg)) {
	case SUPERVISE_STAND_STILL:
		stand_still(supervision);
		break;
	case SUPERVISE_GO_ON:
		if (supervision->still)
			go_on(supervision);
		break;
	case SUPERVISE_END:
		/* Else it goes on to its end, as it always did. */
		if (supervision->still)
			supervise_kill(supervision);
		break;
	}
	return supervision->rounds ? ROUND_MS : LOOK_MS;
}

void pause_end(struct supervision *supervision)
{
	if (!supervision->still)
		return;
	count(supervision);
	/* Nothing is left to kill where init has told so. */
	if (!supervision->reported)
		cgroup_kill(supervision->options.group);
}
