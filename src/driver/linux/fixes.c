/* What to do where a wall does not hold: `cordon doctor` says it. See driver/driver.h. */
#include "driver/linux/plan.h"

#include "base/cleanup.h"

static const struct {
	enum cordon_wall wall;
	const char *fix;
} fixes[] = {
	{ CORDON_WALL_FILESYSTEM,
	  "use the namespaces driver, or a kernel with Landlock (5.13 or later, landlock in lsm=)" },
	{ CORDON_WALL_FILESYSTEM_SECOND,
	  "boot with landlock in the kernel's lsm= list; the first layer holds without it" },
	{ CORDON_WALL_MASKED, "needs a private root: use the namespaces or bwrap driver" },
	{ CORDON_WALL_PROC, "needs a pid namespace: use the namespaces or bwrap driver" },
	{ CORDON_WALL_HOSTNAME, "needs a uts namespace: use the namespaces or bwrap driver" },
	{ CORDON_WALL_CGROUP_VIEW, "needs a mount namespace: use the namespaces or bwrap driver" },
	{ CORDON_WALL_IDENTITY, "call cordon as an ordinary user" },
	{ CORDON_WALL_LIFETIME, "needs a pid namespace, or Landlock ABI 6 (Linux 6.12) to keep signals from init" },
	{ CORDON_WALL_LIMIT_PROCESSES, "needs a control group, or the namespaces driver and an unprivileged user" },
	{ CORDON_WALL_LIMIT_MEMORY, "needs a control group, or any driver but disabled" },
	{ CORDON_WALL_LIMIT_CPU, "needs a control group; commands run without it unless limits.required has it" },
};

const char *linux_fix(enum cordon_wall wall)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixes); i++)
		if (fixes[i].wall == wall)
			return fixes[i].fix;
	return "use the namespaces driver";
}
