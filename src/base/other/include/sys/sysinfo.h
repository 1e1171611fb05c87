/* Of the machine only how much memory it has. */
#pragma once

struct sysinfo {
	unsigned long long totalram;
	unsigned mem_unit;
};
int sysinfo(struct sysinfo *ret_info);
