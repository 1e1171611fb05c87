/* The starter: the process that starts the commands of a session's sandbox. It is sealed (Landlock, seccomp, no
 * capability) before it begins, so that all commands are in one domain. It is the program cordon-init in another role.
 *
 *     init (pid 1) ── starter ── reaper ── the command
 *                         └───── reaper ── another command
 *
 * For each order (order.h) it forks a reaper. That adopts what the command leaves behind, executes the command, passes
 * signals on, and reports when nothing of it is left: it is to its command what init is to a command with a sandbox of
 * its own, and speaks the same protocol with the supervisor (control.h). Starter and reapers are not dumpable: a
 * command can kill or stop them, but neither trace nor read them. */
#pragma once

#define STARTER_INIT_FD 4       /* where a starter is executed from */
#define STARTER_MASK_FD 5       /* what masks are made of: a file, and after it a directory; or nothing */

#define STARTER_NAME "cordon-starter"   /* as ps(1) shows it */
#define REAPER_NAME "cordon-reaper"     /* the same; not longer */

/* In cordon-init: serves orders until the library closes the socket. `name` is its first argument. */
void starter_serve(char *name) __attribute__((noreturn));
/* In init.c: reaps, obeys the supervisor, and reports the end of the command. `mode` as in control.h. */
void init_serve(const char *mode, long command) __attribute__((noreturn));
