/* A descriptor that is readable once the latch is set, and stays so. latch.c is Linux's; for other systems there is base/other/latch.c. */
#pragma once
#include "base/cleanup.h"

struct latch {
	int fd;                         /* to be waited for; -1: it is not open */
	int other;                      /* where it takes another descriptor to set it */
};
#define LATCH_NONE { -1, -1 }

/* -1 and errno. */
int latch_open(struct latch *ret_latch) must_check;
void latch_set(struct latch *latch);
/* One that is not open is allowed. */
void latch_close(struct latch *latch);
