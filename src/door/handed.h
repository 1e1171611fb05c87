/* What the program's first code (src/entry) began and the whole program has to finish. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENTRY_BYTES (64u << 10)

enum entry_what {
	ENTRY_NOTHING = 0,      /* nothing was begun */
	ENTRY_DECLINED,         /* the daemon will not have it: run it here */
	ENTRY_GOES_ON,          /* the conversation is the whole program's from here on */
	ENTRY_WRITE_FAILED,     /* the command has ended, its output could not be written */
};

/* All zero where there is no such code. */
struct entry_handed {
	enum entry_what what;
	int fd;                         /* GOES_ON: the socket, whose HELLO was sent */
	int error;                      /* WRITE_FAILED: the errno */
	bool no_stdin;                  /* GOES_ON: it was told that there is none, or all of it was sent */
	uint32_t wanted;                /* GOES_ON: so many bytes of stdin may be sent */
	uint32_t signals;               /* GOES_ON: a bit for each that was sent to the command: 1 << number */
	uint32_t from, to;              /* GOES_ON: what was received and not handled: begins with a frame */
	char bytes[ENTRY_BYTES];
};
extern struct entry_handed entry_handed __attribute__((visibility("hidden")));

/* Where nothing is left but to report it: does so, and tells the exit status. */
bool handed_is_over(bool json, int *ret_status);
