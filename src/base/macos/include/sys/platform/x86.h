/* What the processor can, as the kernel says. */
#pragma once
#include <stdbool.h>
#include <sys/sysctl.h>

static inline bool system_has(const char *name)
{
	int has = 0;
	size_t size = sizeof(has);
	return sysctlbyname(name, &has, &size, NULL, 0) == 0 && has;
}
#define CPU_FEATURE_ACTIVE(feature) system_has("hw.optional." SYSTEM_##feature)
#define SYSTEM_AVX2 "avx2_0"
#define SYSTEM_SHA "sha"                /* there is none of that name: not used */
#define SYSTEM_SSE4_1 "sse4_1"
#define SYSTEM_SSSE3 "supplementalsse3"
