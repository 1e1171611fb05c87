/* Finding the daemon: see hello.h. */
#include "door/wire/hello.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "door/daemon/daemon-place.h"
#include "door/wire/wire.h"

bool hello_wanted(const struct options *options)
{
	static const char *const without[] = { "tty", "config", "no-daemon" };
	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		if (options_flag(options, without[i]))
			return false;
	return options_flag(options, "session");
}

int hello_connect(void)
{
	struct daemon_place place;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || !daemon_place(&place))
		return -1;
	int connected = connect(fd, (const struct sockaddr *)&place.address, sizeof(place.address));
	cleanup_close(&place.directory_fd);
	/* Whoever else listens there would get our environment, and could say that anything has happened. And a socket outlives
	 * who was killed as long as a child of it has it. */
	if (connected < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != geteuid() ||
	    peer.pid <= 0 || (kill(peer.pid, 0) < 0 && errno == ESRCH))
		return -1;
	return take_fd(&fd);
}

static size_t size_of(char **strings, uint32_t *ret_count)
{
	size_t size = 0;
	uint32_t count = 0;
	for (; strings[count] && size <= WIRE_HELLO_MAX; count++)
		size += strlen(strings[count]) + 1;
	*ret_count = count;
	return size;
}

static char *put(char *at, char **strings)
{
	for (; *strings; strings++)
		at = stpcpy(at, *strings) + 1;
	return at;
}

static uint32_t own_umask(void)
{
	mode_t mask = umask(0);
	umask(mask);
	return mask;
}

bool hello_send(struct sink *out, uint32_t flags, const char *command, char **words)
{
	char cwd[PATH_MAX];
	char *const first[] = { (char *)(uintptr_t)command, NULL }, *const directory[] = { cwd, NULL };
	char **const parts[] = { (char **)first, words, environ, (char **)directory };
	uint32_t counts[ARRAY_SIZE(parts)];
	size_t length = sizeof(struct wire_hello);
	if (!getcwd(cwd, sizeof(cwd)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		length += size_of(parts[i], &counts[i]);
	struct wire_head head = { .kind = WIRE_HELLO, .length = (uint32_t)length };
	struct wire_hello hello = { WIRE_VERSION, flags, counts[0] + counts[1], counts[2], own_umask() };
	/* In one piece: the daemon wakes up once. */
	auto_free char *frame = length <= WIRE_HELLO_MAX ? malloc(sizeof(head) + length) : NULL;
	if (!frame)
		return false;
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + sizeof(head), &hello, sizeof(hello));
	char *at = frame + sizeof(head) + sizeof(hello);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		at = put(at, parts[i]);
	sink_live(out, frame, sizeof(head) + length);
	return true;
}
