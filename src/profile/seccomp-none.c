/* In the place of seccomp.c and ioctls.c where the kernel has no seccomp: no call is filtered, and a profile says
 * so. */
#include "base/json.h"
#include "profile/seccomp.h"

const uint32_t seccomp_native_arch = 0;

unsigned seccomp_device_option(const char *path)
{
	(void)path;
	return 0;
}

void seccomp_listing(struct json *json, uint32_t audit_arch, unsigned options)
{
	(void)audit_arch;
	(void)options;
	json_text(json, "none");
}
