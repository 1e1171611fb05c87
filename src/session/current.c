/* The current session: see current.h. */
#include "session/current.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct entered {
	struct cordon *cordon;
	char *id;
};

static _Thread_local struct {
	struct entered *entered;        /* freed when it gets empty: a thread that leaves what it entered leaves
	                                   nothing behind */
	size_t count;
} stack;

int current_enter(struct cordon *cordon, const char *id, struct cordon_error *err)
{
	if (stack.count == CURRENT_DEPTH_MAX) {
		fail(err, CORDON_E_LIMIT_EXCEEDED, 0, id,
		     "%d sessions are current in this thread already, one inside the other", CURRENT_DEPTH_MAX);
		return fail_remedy(err, "call cordon_session_leave() for each cordon_session_enter()");
	}
	if (!stack.entered)
		stack.entered = calloc(CURRENT_DEPTH_MAX, sizeof(*stack.entered));
	char *copy = stack.entered ? strdup(id) : NULL;
	if (!copy)
		return fail_oom(err);
	stack.entered[stack.count++] = (struct entered){ cordon, copy };
	return 0;
}

void current_leave(void)
{
	if (!stack.count)
		return;
	free(stack.entered[--stack.count].id);
	if (stack.count)
		return;
	free(stack.entered);
	stack.entered = NULL;
}

const char *current_session(void)
{
	return stack.count ? stack.entered[stack.count - 1].id : NULL;
}

struct cordon *current_cordon(void)
{
	return stack.count ? stack.entered[stack.count - 1].cordon : NULL;
}
