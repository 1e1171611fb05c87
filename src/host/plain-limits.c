/* Plain limits: see plain-limits.h. */
#include "host/plain-limits.h"

#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#define PROCESSES 4096
#define OPEN_FILES 1024
#define UNFILLED_PERCENT 5              /* of what is free on the disk */
#define LEAST_BYTES (UINT64_C(1) << 20)

static uint64_t at_least(uint64_t bytes)
{
	return bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

static uint64_t memory_bytes(void)
{
	struct sysinfo info;
	return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : UINT64_MAX;
}

static uint64_t disk_bytes(int fd)
{
	struct statvfs info;
	if (fd < 0 || fstatvfs(fd, &info) < 0 || !info.f_frsize)
		return UINT64_MAX;
	return at_least((uint64_t)info.f_bavail / 100 * info.f_frsize * (100 - UNFILLED_PERCENT));
}

void plain_limits(int workspace_fd, struct limits *ret_limits)
{
	uint64_t memory = memory_bytes();
	*ret_limits = (struct limits){
		.memory_bytes = memory == UINT64_MAX ? memory : at_least(memory / 4 * 3),
		.cpu_percent = UINT64_MAX,
		.processes = PROCESSES,
		.disk_bytes = disk_bytes(workspace_fd),
		.wall_ms = UINT64_MAX,
		.stdout_bytes = UINT64_MAX,
		.stderr_bytes = UINT64_MAX,
		.open_files = OPEN_FILES,
		.tmp_bytes = memory == UINT64_MAX ? memory : at_least(memory / 4),
	};
}
