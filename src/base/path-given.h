/* A path as people write it on this system, in words and in configuration. */
#pragma once
#include <stddef.h>

/* As cordon writes it, which may be in `room`: one that does not say where it begins does not begin with '/'. NULL: it
 * cannot be a path here, for the reason *ret_why. Nothing is looked at. */
#ifdef SYSTEM_PATH_GIVEN
const char *path_given(const char *text, char *room, size_t size, const char **ret_why);
#else
static inline const char *path_given(const char *text, char *room, size_t size, const char **ret_why)
{
	(void)room;
	(void)size;
	*ret_why = "";
	return text;
}
#endif
