/* The seal on macOS: see seal.h. The process is in the system's sandbox from its first instruction on, by the profile
 * that seatbelt_render_proxy() writes and that the driver starts it with: no file but the system's own, no program, no
 * child. What is left for the process itself are limits, and root's identity. */
#include "proxy/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <unistd.h>

#define SANDBOX_ID 65530        /* as on Linux */
#define RESOLVER_DESCRIPTORS 64 /* of its threads */
#define DESCRIPTORS_MAX 10240   /* OPEN_MAX: more cannot be set */

void seal_prepare(int socket_fd)
{
	int count = getdtablesize();
	for (int fd = socket_fd + 1; fd < count; fd++)
		close(fd);
	setsid();
}

int seal_enter_network(int fd, bool is_in_user)
{
	(void)fd;
	(void)is_in_user;
	errno = ENOSYS;
	return -1;
}

const char *seal_drop_root(void)
{
	if (geteuid() != 0)
		return NULL;
	if (setgroups(0, NULL) < 0 || setgid(SANDBOX_ID) < 0 || setuid(SANDBOX_ID) < 0)
		return "cannot become another user than root";
	return geteuid() == SANDBOX_ID && setuid(0) < 0 ? NULL : "is still root";
}

const char *seal_raise(uint64_t *descriptors, bool offline)
{
	static const int none[] = { RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_NPROC };
	struct rlimit files;
	(void)offline;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (setrlimit(none[i], &(struct rlimit){ 0, 0 }) < 0)
			return "cannot limit resources";
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return "cannot limit descriptors";
	rlim_t most = *descriptors + RESOLVER_DESCRIPTORS;
	most = files.rlim_max < most ? files.rlim_max : most;
	most = most < DESCRIPTORS_MAX ? most : DESCRIPTORS_MAX;
	files = (struct rlimit){ most, most };
	if (most <= RESOLVER_DESCRIPTORS || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return "cannot limit descriptors";
	*descriptors = most - RESOLVER_DESCRIPTORS;
	return NULL;
}
