/* A command that is frozen because its session is paused: see supervise-parts.h. The session's state is checked now
 * and then, and not of a command that has just begun. Freezing is done by the control group (cgroup.h). Init is not
 * frozen: it ends everything if the supervisor dies. */
#include "base/clock.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/supervise-parts.h"

#define LOOK_MS 200

static void count(struct supervision *supervision)
{
	supervision->still = false;
	supervision->still_ms += (uint64_t)(clock_ms() - supervision->still_since_ms);
}

/* What cannot be thawed now is tried again with the next look. */
static void go_on(struct supervision *supervision)
{
	if (cgroup_thaw(supervision->options.group, pidfd_number(supervision->pidfd)))
		count(supervision);
}

/* What cannot be done now is tried again with the next look. */
static void stand_still(struct supervision *supervision)
{
	/* Asked anew each time: once it is gone, its number may be another process's. */
	pid_t init = pidfd_number(supervision->pidfd);
	if (supervision->still || !init || !cgroup_freeze(supervision->options.group, init))
		return;
	supervision->still = true;
	supervision->still_since_ms = clock_ms();
}

uint64_t pause_look(struct supervision *supervision)
{
	const struct supervise_options *options = &supervision->options;
	if (!options->wish || !options->group || !options->group->ops || !options->group->ops->freeze)
		return 0;
	switch (options->wish(options->wish_arg)) {
	case COMMAND_STAND_STILL:
		stand_still(supervision);
		break;
	case COMMAND_GO_ON:
		if (supervision->still)
			go_on(supervision);
		break;
	case COMMAND_END:
		/* Otherwise it runs to its end, as without a pause. */
		if (supervision->still)
			supervise_kill(supervision);
		break;
	}
	return LOOK_MS;
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
