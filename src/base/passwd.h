/* A user's home directory by /etc/passwd, read directly: the C library would ask whatever services nsswitch.conf
 * names. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define PASSWD_FILE "/etc/passwd"
/* False: the user is not in the file, or has no absolute path there that fits. */
bool passwd_home(const char *file, unsigned uid, char *ret_home, size_t size);
