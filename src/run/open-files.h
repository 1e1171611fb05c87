/* Descriptors for many commands at a time. */
#pragma once

/* Raises the process's soft limit to the hard one. What a command gets is set for it, whatever this is. */
void open_files_raise(void);
