/* Init's half of user.h. Its memory has nothing of the caller's in it. */
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "driver/linux/control.h"
#include "driver/linux/launch.h"
#include "driver/linux/order.h"
#include "driver/linux/sys.h"
#include "driver/linux/user.h"

static long make(struct launch *launch)
{
	long result = sys_1(SYS_unshare, CLONE_NEWUSER);
	if (result < 0)
		return launch_fail(launch, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, result, "user_namespaces", "unshare",
		                   "the kernel does not let this user make namespaces",
		                   "allow unprivileged user namespaces, or choose --driver landlock");
	sys_5(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (launch_map_identity(launch) < 0)
		return -1;
	result = sys_4(SYS_openat, AT_FDCWD, "/proc/self/ns/user", O_RDONLY | O_CLOEXEC, 0);
	return result < 0 ? launch_unavailable(launch, result, "user_namespaces", "/proc/self/ns/user",
	                                       "cannot keep a namespace") :
	                    result;
}

void user_serve(void)
{
	struct user_maps maps;
	struct launch launch = { .uid_map = maps.uid_map, .gid_map = maps.gid_map };
	if (sys6(SYS_recvfrom, CONTROL_FD, (long)&maps, sizeof(maps), 0, 0, 0) != (long)sizeof(maps))
		sys_exit(1);
	long fd = make(&launch);
	if (fd >= 0)
		reply_with(CONTROL_FD, &(int){ (int)fd }, 1);
	else
		reply_failure(&launch, CONTROL_FD);
	sys_exit(fd < 0);
}
