/* Which library this is. */
#include "cordon-internal.h"

const char *cordon_version(void)
{
	return CORDON_VERSION;
}

int cordon_api(void)
{
	return CORDON_API;
}
