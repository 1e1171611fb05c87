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
#include "base/error.h"
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

static bool place_of(const char *host, struct daemon_place *ret_place)
{
	if (!host)
		return daemon_place(ret_place);
	*ret_place = (struct daemon_place){ .address.sun_family = AF_UNIX, .directory_fd = -1 };
	if (strlen(host) >= sizeof(ret_place->address.sun_path))
		return false;
	memcpy(ret_place->address.sun_path, host, strlen(host));
	return true;
}

int hello_connect_to(const char *host, int *ret_fd, struct cordon_error *err)
{
	auto_close int fd = hello_connect(host);
	if (fd < 0) {
		fail(err, CORDON_E_NOT_FOUND, 0, host, "host: no daemon of this user listens there");
		return fail_remedy(err, "start one: cordon serve");
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

int hello_connect(const char *host)
{
	struct daemon_place place;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || !place_of(host, &place))
		return -1;
	int connected = connect(fd, (const struct sockaddr *)&place.address, sizeof(place.address));
	cleanup_close(&place.directory_fd);
	/* Another user's process that listens there would get our environment, and could answer anything. And a socket
	 * outlives a killed daemon as long as one of its children has it. */
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
