/* Any bytes as a ring that somebody else wrote: reading it stays within what was asked for. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "session/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char buffer[256];
	uint64_t from = 0;
	if (size < sizeof(from))
		return 0;
	memcpy(&from, data, sizeof(from));
	auto_close int fd = memfd_create("ring", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + sizeof(from), size - sizeof(from)) < 0)
		return 0;
	struct ring_part part;
	if (ring_read(fd, from, buffer, sizeof(buffer), &part) == 0 &&
	    (part.length > sizeof(buffer) || part.from + part.length > part.end))
		abort();
	return 0;
}
