/* init of a slot whose command is a shell that waits for its line: see shell-park.h. */
#include <sys/socket.h>

#include "run/control.h"
#include "run/shell-park.h"
#include "run/slot.h"
#include "run/sys.h"

static void tell(int kind, long value)
{
	struct control_message message = { .kind = kind, .value = (int32_t)value };
	sys6(SYS_sendto, CONTROL_FD, (long)&message, sizeof(message), MSG_NOSIGNAL, 0, 0);
}

bool init_park(long command)
{
	static struct {
		struct control_message message;
		char line[SHELL_LINE_MAX + 1];
	} told;
	static struct parked_shell shell;
	tell(CONTROL_PARKING, 0);
	long result = shell_park(command, &shell);
	tell(CONTROL_PARKED, result);
	if (result < 0)
		return false;
	long length = sys6(SYS_recvfrom, CONTROL_FD, (long)&told, sizeof(told), 0, 0, 0);
	if (length < (long)sizeof(told.message) || told.message.kind != CONTROL_LINE)
		return false;
	return shell_go(&shell, told.line, (size_t)length - sizeof(told.message)) == 0;
}
