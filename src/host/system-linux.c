/* Linux: see system.h. */
#include "host/system.h"

#include <stddef.h>

const char *const host_system_view[] = {
	"/usr",   "/bin",    "/sbin", "/lib",       "/lib32",
	"/lib64", "/libx32", "/opt",  "/nix/store", "/var/lib/ca-certificates", /* SUSE: what /etc/ssl/certs leads to */
	NULL,
};
