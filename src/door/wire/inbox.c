/* What the daemon says: see inbox.h. */
#include "door/wire/inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"

#define INBOX_SIZE (WIRE_BODY_MAX + sizeof(struct wire_head))

void inbox_free(struct inbox *inbox)
{
	free(inbox->bytes);
}

static bool make_room(struct inbox *inbox)
{
	struct wire_head head;
	size_t used = inbox->to - inbox->from, size = INBOX_SIZE;
	if (used >= sizeof(head)) {
		memcpy(&head, inbox->bytes + inbox->from, sizeof(head));
		if (sizeof(head) + head.length > size)
			size = sizeof(head) + head.length;
	}
	if (used)
		memmove(inbox->bytes, inbox->bytes + inbox->from, used);
	inbox->from = 0;
	inbox->to = used;
	if (size <= inbox->size)
		return true;
	char *grown = realloc(inbox->bytes, size);
	if (!grown)
		return false;
	inbox->bytes = grown;
	inbox->size = size;
	return true;
}

int inbox_receive(struct inbox *inbox, int fd, bool *ret_any, struct cordon_error *err)
{
	if (!make_room(inbox))
		return fail_oom(err);
	ssize_t length = recv(fd, inbox->bytes + inbox->to, inbox->size - inbox->to, MSG_DONTWAIT);
	if (length > 0) {
		inbox->to += (size_t)length;
	} else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
		inbox->is_reset |= length < 0 && errno == ECONNRESET;
		inbox->is_closed = true;
	}
	*ret_any = length > 0;
	return 0;
}

int inbox_next(const struct inbox *inbox, struct wire_frame *ret_frame, struct cordon_error *err)
{
	enum wire_state state = wire_next(inbox->bytes + inbox->from, inbox->to - inbox->from, false, ret_frame);
	if (state == WIRE_WHOLE)
		return 1;
	if (state == WIRE_PARTIAL && !inbox->is_closed)
		return 0;
	fail(err, CORDON_E_INTERNAL, 0, WIRE_SOCKET, state == WIRE_BROKEN ? "what the daemon says makes no sense"
	                                                            : "the daemon went away, and the command with it");
	return fail_remedy(err, "run it again; without a daemon by --no-daemon");
}

void inbox_drop(struct inbox *inbox, const struct wire_frame *frame)
{
	inbox->from += frame->size;
}
