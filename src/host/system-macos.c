/* macOS: see system.h. What programs need of /System and /Library is in profile/seatbelt.c, by name: beneath these are
 * keychains and settings, too. */
#include "host/system.h"

#include <stddef.h>

const char *const host_system_view[] = { "/usr", "/bin", "/sbin", "/opt", "/nix/store", NULL };
