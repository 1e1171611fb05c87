/* See driver/machine.h. */
#include "driver/machine.h"

#include <linux/landlock.h>
#include <stdio.h>
#include <unistd.h>

#include "base/compat.h"
#include "driver/linux/cgroup.h"
#include "driver/linux/disk.h"
#include "driver/linux/idmap.h"
#include "driver/linux/linger.h"

const char *driver_probe_program(void)
{
	return "/bin/true";
}

const char *driver_temporary_directory(void)
{
	return "/tmp";
}

int driver_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi > 0 ? (int)abi : 0;
}

uint32_t driver_inside_uid(void)
{
	return geteuid() == 0 ? IDMAP_INSIDE : geteuid();
}

uint32_t driver_inside_gid(void)
{
	return geteuid() == 0 ? IDMAP_INSIDE : getegid();
}

void driver_groups_look(const char *directory, struct driver_groups *ret_groups)
{
	const struct cgroup_search search = { .directory = directory };
	struct cgroup_place place;
	cgroup_look(&search, &place);
	*ret_groups = (struct driver_groups){ place.ops ? place.ops->name : NULL, place.offers,
		                              place.ops && place.ops->freeze, "", "" };
	snprintf(ret_groups->path, sizeof(ret_groups->path), "%s", place.path);
	snprintf(ret_groups->why, sizeof(ret_groups->why), "%s", place.why);
}

const char *driver_groups_fix(void)
{
	return geteuid() == 0 ? "mount the cgroup filesystem so that it can be written: in a container, with a cgroup "
				"namespace of its own "
				"and /sys/fs/cgroup writable; or name a directory in it: limits.cgroup"
			      : "start it from a delegated group: `systemd-run --user --scope -p Delegate=yes cordon "
				"...`; where no user "
				"manager runs, `loginctl enable-linger` first; without systemd, let root make a "
				"directory in the cgroup2 "
				"tree, give it and its cgroup.procs, cgroup.threads and cgroup.subtree_control to this "
				"user, and start "
				"cordon in a group beneath it";
}

void driver_groups_sweep(const char *directory)
{
	cgroup_sweep_now(&(struct cgroup_search){ .directory = directory });
}

bool driver_groups_show(const char *path, int known_fd)
{
	return cgroup_shows(path, known_fd);
}

void driver_sweep(const char *data_dir)
{
	(void)data_dir;
}

void driver_settle(void)
{
	disk_forget();
	linger_settle();
	cgroup_forget();
}
