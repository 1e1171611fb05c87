/* Project quotas: see quota.h. By the calls that came with XFS, which other filesystems answer as well. */
#include "driver/linux/quota.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compat.h"
#include "driver/linux/disk-walk.h"

/* One for each inode number, far above those that are given out by hand. */
#define FIRST_PROJECT UINT32_C(0x40000000)
#define UNIT_BYTES 512
/* Of empty files there may be as many as the watch lets be, less what their names take. */
#define NAMES_SHARE 64

struct project {
	int fd;
	uint32_t id;
};

static bool ask(const struct project *project, int command, void *answer)
{
	return syscall(SYS_quotactl_fd, project->fd, QCMD(command, PRJQUOTA), project->id, answer) == 0;
}

static bool is_enforced(const struct project *project)
{
	struct fs_quota_stat state = { 0 };
	return ask(project, Q_XGETQSTAT, &state) && (state.qs_flags & FS_QUOTA_PDQ_ENFD);
}

/* An id without any use has no figures yet. */
static struct fs_disk_quota figures(const struct project *project)
{
	struct fs_disk_quota found = { 0 };
	if (!ask(project, Q_XGETQUOTA, &found))
		memset(&found, 0, sizeof(found));
	return found;
}

static bool is_empty(int fd)
{
	bool empty = true;
	DIR *listing = fdopendir(fd);
	if (!listing) {
		close(fd);
		return false;
	}
	for (const struct dirent *entry; empty && (entry = readdir(listing));)
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(listing);
	return empty;
}

/* It is our project already, or becomes one. A new directory may have the inode number of a removed one, whose files
 * are still open: then the project is not empty. */
static bool claim(const struct project *project)
{
	struct fsxattr attributes;
	if (ioctl(project->fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return false;
	if (attributes.fsx_projid)
		return attributes.fsx_projid == project->id && (attributes.fsx_xflags & FS_XFLAG_PROJINHERIT);
	const struct fs_disk_quota others = figures(project);
	if (others.d_bcount || others.d_icount ||
	    !is_empty(openat(project->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
		return false;
	attributes.fsx_projid = project->id;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(project->fd, FS_IOC_FSSETXATTR, &attributes) == 0;
}

static bool limit(const struct project *project, uint64_t most_bytes)
{
	const uint64_t units = most_bytes / UNIT_BYTES;
	const uint64_t inodes = (most_bytes - most_bytes / NAMES_SHARE) / DISK_INODE_BYTES;
	const struct fs_disk_quota now = figures(project);
	struct fs_disk_quota wanted = {
		.d_version = FS_DQUOT_VERSION, .d_flags = FS_PROJ_QUOTA, .d_id = project->id,
		.d_fieldmask = FS_DQ_BHARD | FS_DQ_IHARD, .d_blk_hardlimit = units, .d_ino_hardlimit = inodes,
	};
	return (now.d_blk_hardlimit == units && now.d_ino_hardlimit == inodes) || ask(project, Q_XSETQLIM, &wanted);
}

static int open_project(int dir_fd, struct project *ret_project)
{
	struct stat info;
	auto_close int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0)
		return -1;
	*ret_project = (struct project){ take_fd(&fd), FIRST_PROJECT | (uint32_t)(info.st_ino % FIRST_PROJECT) };
	return 0;
}

bool quota_hold(int dir_fd, uint64_t most_bytes)
{
	struct project project;
	if (geteuid() != 0 || open_project(dir_fd, &project) < 0)
		return false;
	bool holds = is_enforced(&project) && claim(&project) && limit(&project, most_bytes);
	close(project.fd);
	return holds;
}

bool quota_used(int dir_fd, uint64_t *ret_bytes)
{
	struct project project;
	if (open_project(dir_fd, &project) < 0)
		return false;
	const struct fs_disk_quota found = figures(&project);
	close(project.fd);
	*ret_bytes = found.d_bcount * UNIT_BYTES;
	return found.d_id == project.id;
}
