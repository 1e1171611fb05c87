/* Where no program names its loader: see loader.h. On macOS it is part of the system's own view. */
#include "host/loader.h"

void loader_of(int fd, const unsigned char *head, size_t length, char *ret_path)
{
	(void)fd;
	(void)head;
	(void)length;
	ret_path[0] = '\0';
}
