/* Of what a test has a function of its own in the place of, the one that it would have had: see calls.c. */
#pragma once
#define RTLD_NEXT NULL
void *dlsym(void *library, const char *name);
