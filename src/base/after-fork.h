/* What a forked child begins anew. It has none of its parent's other threads: one of them may have held a lock, which
 * it never gives back here, and what that guards may be half done. */
#pragma once
#include <pthread.h>

/* `begin_anew` is called in the child, before fork() returns there. What it forgets is the parent's. */
#define AFTER_FORK(begin_anew) \
	__attribute__((constructor)) static void call_after_fork(void) \
	{ \
		pthread_atfork(NULL, NULL, begin_anew); \
	} \
	struct base_after_fork_ends_with_a_semicolon
