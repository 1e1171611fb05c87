/* Where the daemon listens: see daemon-place.h. An address has room for 107 bytes; what is longer goes by way of a
 * descriptor of the directory. */
#include "door/daemon/daemon-place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "door/wire/wire.h"

bool daemon_place_in(const char *directory, struct daemon_place *ret_place)
{
	struct daemon_place place = { .address.sun_family = AF_UNIX, .directory_fd = -1 };
	size_t size = sizeof(place.address.sun_path);
	if ((size_t)snprintf(place.address.sun_path, size, "%s/" WIRE_SOCKET, directory) >= size) {
		place.directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (place.directory_fd < 0)
			return false;
		snprintf(place.address.sun_path, size, "/proc/self/fd/%d/" WIRE_SOCKET, place.directory_fd);
	}
	*ret_place = place;
	return true;
}

bool daemon_place(struct daemon_place *ret_place)
{
	const char *data_home = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	bool by_home = !data_home || *data_home != '/';
	char directory[4096];
	if (by_home && (!home || *home != '/'))
		return false;
	int length = snprintf(directory, sizeof(directory), by_home ? "%s/.local/share/cordon" : "%s/cordon",
	                      by_home ? home : data_home);
	return length > 0 && (size_t)length < sizeof(directory) && daemon_place_in(directory, ret_place);
}
