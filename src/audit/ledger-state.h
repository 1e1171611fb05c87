/* What the two files of the ledger's writer share: ledger.c, which writes rows, and ledger-settle.c, which looks before
 * that whether all is as it was left. */
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

struct ledger {
	pthread_mutex_t mutex;          /* flock() does not separate threads */
	struct ledger_files files;
	pid_t owner;                    /* who opened `head`: a lock is shared with forked children */
	struct opened head, day;
	char day_name[DAY_NAME_SIZE];   /* of what `day` has open */
	struct seal_key key;
	bool keyed;                     /* `key` was read */
	bool known;                     /* the next three hold, unless the head or the file has changed */
	char stored[SEAL_HEAD_SIZE];    /* the head, byte by byte */
	struct tip stored_tip;          /* what it says */
	struct tip tip;                 /* where the file ends: with sync_disk, ahead of the head for a while */
	int64_t today_number;
	char today[DAY_NAME_SIZE];
};

int ledger_open_named(struct ledger *ledger, const char *name, int flags, struct opened *opened, struct stat *ret_st,
                      struct cordon_error *err) must_check;
bool ledger_still_named(struct ledger *ledger, const char *name, const struct opened *opened, struct stat *ret_st);

/* Seals `row` and puts it at the end of the day's file, after a newline if the file ends within a line. */
int ledger_put_row(struct ledger *ledger, const char *row, size_t length, bool in_line, struct cordon_error *err)
	must_check;
/* Best effort: the rows are in place, and what is not written now is made up for by whoever comes next. */
void ledger_store_head(struct ledger *ledger, const struct tip *tip);
void ledger_store_signed(struct ledger *ledger, const struct tip *tip);

/* With the lock held. Afterwards the day's file is open, ends in a whole line, and `tip` is its end. */
int ledger_settle(struct ledger *ledger, struct cordon_error *err) must_check;
