/* One attempt: a function of the words a row gives. It answers whether it got out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum answer {
	ESCAPED,        /* it worked */
	CONTAINED,      /* it was refused, or reached nothing that it should not */
	BROKEN,         /* it could not be tried, which proves nothing */
};

#define ATTEMPT(name, least, function) enum answer function(char **arguments);
#include "attempts.def"
#undef ATTEMPT

/* Said in the line that reports the attempt. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
enum answer broken(const char *what);           /* notes errno as well */
enum answer escaped_if(bool escaped);           /* notes errno where it was refused */
enum answer escaped_if_fd(int fd);              /* closes it */
enum answer escaped_if_made(long pid); /* ends the child where that is what it is called in, and waits for it */

extern pid_t init_pid;          /* the parent of the program that makes the attempts: cordon's init */
extern const char *self_path;   /* how this program can be executed */
bool fd_contains(int fd, const char *text);
enum answer run_child(int (*function)(void *), void *argument);        /* its status is the answer */
pid_t fork_quietly(void);
