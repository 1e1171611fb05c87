/* Stands in for all that step 5 calls, and for the driver, whose calls are told apart by name. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "walk.h"

extern char taken[512];                 /* what was called, in its order */
extern const char *failing[3];          /* the calls that fail; or NULL */
extern bool lost;                       /* the sandbox does not answer */
extern bool shares;                     /* the session has a sandbox that the command may be in */
extern enum sandbox_end left_as;        /* how the command left it */
extern unsigned watched;                /* the descriptors that its start was to watch */
extern const char *token;               /* that the command has to show; or NULL */

extern const struct driver on_loopback; /* its proxy listens on this machine's loopback */
extern const struct driver one_by_one;  /* a sandbox per command */
extern const struct driver keeps;       /* one that can stay for a session */
