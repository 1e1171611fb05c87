/* What is where on this system: a file for each system. */
#pragma once

/* Directories of the base view, ended by NULL; of /etc there is what etc.h finds besides. */
extern const char *const host_system_view[];
