/* Files in memory: see blob.h. */
#include "driver/linux/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/compat.h"

int blob_open(const char *name, const unsigned char *bytes, size_t size)
{
	/* Going beyond it would end the caller. */
	struct rlimit most;
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size)
		return -EFBIG;
	/* Kernels before 6.3 do not know MFD_EXEC; later ones may be told to want it. */
	auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	/* A limit on the size of files cuts it off without an error, and what follows has one. */
	for (size_t at = 0; at < size;) {
		ssize_t written = write(fd, bytes + at, size - at);
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		at += (size_t)written;
	}
	if (fchmod(fd, 0111) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return take_fd(&fd);
}
