#pragma once
struct utsname {
	char sysname[16], nodename[256], release[64], machine[32];
};
int uname(struct utsname *ret_names);
