/* What is in force without any file. The rows say the same (include/cordon-config.def), and a test compares the two; but
 * reading them is most of what a start of the program would spend on its configuration. */
#include "policy/config-store.h"

#define APPROVAL_TIMEOUT_MS 120000
#define DENIALS_TO_PAUSE 3
#define JOB_MS 3600000

int config_plain(struct arena *arena, struct config *ret_config)
{
	struct capability_set set;
	struct config config = {
		.enabled = true,
		.walls = WALLS_WARM,
		.network = { .connections = 256, .total_connections = 10000, .connect_ms = 10000, .idle_ms = 300000,
		             .header_bytes = 64 << 10 },
		.approval = { .timeout_ms = APPROVAL_TIMEOUT_MS, .denials_to_pause = DENIALS_TO_PAUSE },
	};
	if (capability_baseline(arena, true, &set) < 0 || capability_normalise(arena, &set, &config.baseline, NULL) < 0)
		return -1;
	const struct limits *all = &config.baseline.limits;
	config.usual.wall_ms = all->wall_ms;
	config.usual.job_ms = JOB_MS;
	config.usual.stdout_bytes = all->stdout_bytes;
	config.usual.stderr_bytes = all->stderr_bytes;
	*ret_config = config;
	return 0;
}
