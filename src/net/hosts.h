/* A hosts file: names that this machine knows by itself. Read once and kept as text, so that a process which may open
 * no file later can still look in it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "policy/address.h"

#define HOSTS_PATH "/etc/hosts"
#define HOSTS_SIZE_MAX ((size_t)8 << 20)

struct hosts {
	char *text;             /* NULL where there is no such file */
	size_t length;
};

/* A file that is not there is an empty one; one that is larger than HOSTS_SIZE_MAX is refused. */
int hosts_read(const char *path, struct hosts *ret_hosts, struct cordon_error *err) must_check;
void hosts_free(struct hosts *hosts);

/* How many addresses a name has there, of which the first `max` are filled in. The name is in lower case and without a
 * trailing dot. Lines that are not understood are skipped. */
size_t hosts_find(const struct hosts *hosts, const char *name, struct address *ret_addresses, size_t max);

/* `localhost`, or what ends in it: this machine, whatever files and servers say (RFC 6761). */
bool hosts_is_localhost(const char *name);
