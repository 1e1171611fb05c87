/* For tests only (cordon-unwalled): a profile with walls left out, to see that an attempt succeeds without them. */
#pragma once
#ifdef CORDON_UNWALL
#include "profile/profile.h"

/* `names` is a list of wall names separated by commas, or NULL. */
void profile_unwall(struct profile *profile, const char *names);
/* The walls named there, as 1 << enum cordon_wall. */
uint32_t profile_unwalled(const char *names);
#endif
