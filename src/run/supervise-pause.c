/* A command that stands still because its session is paused: see supervise-parts.h. Whether it is to is asked now and then, and
 * never of a command that has just begun. What it takes is the control group's (cgroup.h); a little of it is done at a time, since
 * whoever has the supervision may have others. Init goes on: it ends everything should we be gone. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "run/control.h"
#include "run/pidfd.h"
#include "run/supervise-parts.h"

#define LOOK_MS 200
#define ROUND_MS 1                      /* before those who came meanwhile are looked for */
#define ROUNDS_POLITE 20                /* then nobody can start another until all stand still... */
#define POLITE_MS 200                   /* ...nor where whoever has the supervision comes to it seldom */

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
	ssize_t sent = sendmsg(supervision->control_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	struct rlimit before, high;
	/* What the command has under way is counted with ours, against the soft limit: that must not keep it from standing still. */
	if (sent < 0 && errno == ETOOMANYREFS && getrlimit(RLIMIT_NOFILE, &before) == 0) {
		high = (struct rlimit){ before.rlim_max, before.rlim_max };
		setrlimit(RLIMIT_NOFILE, &high);
		sent = sendmsg(supervision->control_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
		setrlimit(RLIMIT_NOFILE, &before);
	}
	return sent == sizeof(message);
}

static void count(struct supervision *supervision)
{
	supervision->still = false;
	supervision->rounds = 0;
	supervision->still_ms += (uint64_t)(clock_ms() - supervision->still_since_ms);
}

/* False: it goes on standing still, until that can be changed. */
static bool go_on(struct supervision *supervision)
{
	if (!cgroup_thaw(supervision->options.group, pidfd_number(supervision->pidfd)))
		return false;
	count(supervision);
	return true;
}

static bool begin(struct supervision *supervision)
{
	const struct cgroup_search here = { 0 };
	int release[2];
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
	/* Asked anew each time: once it is gone, its number may be another process's. */
	pid_t init = pidfd_number(supervision->pidfd);
	if (!supervision->rounds || !init)
		return;
	bool refuse = supervision->rounds > ROUNDS_POLITE || clock_ms() - supervision->still_since_ms > POLITE_MS;
	int left = cgroup_freeze(supervision->options.group, init, refuse);
	supervision->rounds = left > 0 ? supervision->rounds + 1 : 0;
	if (left < 0 && !go_on(supervision))
		supervision->rounds = 1;
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
