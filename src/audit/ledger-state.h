/* What the files of the ledger's writer share: ledger.c, which writes rows, ledger-settle.c, which looks before
 * that whether all is as it was left, and ledger-room.c, which reserves room for rows to come. */
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include "audit/ledger-files.h"
#include "audit/ledger.h"

struct opened {
	int fd;                         /* -1 until needed */
	dev_t device;
	ino_t inode;
};

/* The slots of `reserve` that this process has locked, in ascending order; the first `used` of them, by number, are
 * some command's. */
struct ledger_slots {
	uint32_t *numbers;
	size_t count, used;
};

struct ledger {
	pthread_mutex_t mutex;          /* flock() does not separate threads */
	struct ledger_files files;
	pid_t owner;                    /* who opened `head`: a lock is shared with forked children */
	struct opened head, day, reserve;
	char day_name[DAY_NAME_SIZE];   /* of what `day` has open */
	struct seal_key key;
	bool keyed;                     /* `key` was read */
	bool known;                     /* the next three hold, unless the head or the file has changed */
	char stored[SEAL_HEAD_SIZE];    /* the head, byte by byte */
	struct tip stored_tip;          /* what it says */
	struct tip tip;                 /* where the file ends: with sync_disk, ahead of the head for a while */
	struct ledger_slots slots;
	uint64_t allocated;             /* up to where `day` has space, as far as that is known */
	bool in_reserve_file;           /* the file system allocates nothing ahead */
	struct ledger_room *room;       /* of the command whose row is being written; or NULL */
	int64_t today_number;
	char today[DAY_NAME_SIZE];
};

int ledger_open_named(struct ledger *ledger, const char *name, int flags, struct opened *opened, struct stat *ret_st,
                      struct cordon_error *err) must_check;
bool ledger_still_named(struct ledger *ledger, const char *name, const struct opened *opened, struct stat *ret_st);

/* Seals `row` and puts it at the end of the day's file, after a newline if the file ends within a line. */
int ledger_put_row(struct ledger *ledger, const char *row, size_t length, bool in_line, struct cordon_error *err)
	must_check;
/* Best effort: the rows are in place, and the next writer makes up for what is not written now. */
void ledger_store_head(struct ledger *ledger, const struct tip *tip);
void ledger_store_signed(struct ledger *ledger, const struct tip *tip);

/* With the lock held. Afterwards the day's file is open, ends in a whole line, and `tip` is its end. */
int ledger_settle(struct ledger *ledger, struct cordon_error *err) must_check;

/* ---- ledger-room.c, with the lock held --------------------------------------------------------------------------- */

/* Is this what system calls say where there is no space? */
bool ledger_is_full(int os_errno);
/* Room for `bytes` is counted as reserved from here on; ledger_secure() makes sure that there is space for it. */
int ledger_take_room(struct ledger *ledger, size_t bytes, struct ledger_room *ret_room, struct cordon_error *err)
	must_check;
/* Needs no lock but the mutex. */
void ledger_give_room(struct ledger *ledger, struct ledger_room *room);
/* The directory, or the process, is another. */
void ledger_forget_slots(struct ledger *ledger);
/* How many bytes all processes have reserved. */
uint64_t ledger_reserved(struct ledger *ledger);
/* Makes sure that the day's file may grow to `end` and so much is left then. -1 and errno: there is not. */
int ledger_secure(struct ledger *ledger, uint64_t end, uint64_t reserved) must_check;
/* A row of a running command did not fit: frees space for it. False: there is none to free. */
bool ledger_release_space(struct ledger *ledger, size_t length);
/* Frees what is allocated behind the end of a file to which no row comes any more. */
void ledger_trim(struct ledger *ledger, const char *name);
