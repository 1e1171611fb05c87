/* Files in memory: see blob.h. */
#include "run/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/compat.h"

int blob_open(const char *name, const unsigned char *bytes, size_t size)
{
	/* Kernels before 6.3 do not know MFD_EXEC; later ones may be told to want it. */
	auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || fchmod(fd, 0111) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return take_fd(&fd);
}
