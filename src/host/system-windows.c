/* Windows: see system.h. Its driver cannot hide anything from reading: this is what a profile shows, and no wall. */
#include "host/system.h"

#include <stddef.h>

const char *const host_system_view[] = {
	"/c/Windows",
	"/c/Program Files",
	"/c/Program Files (x86)",
	NULL,
};
