/* The append-only record: JSON Lines, one file per UTC day, `<data_dir>/ledger/YYYY-MM-DD.jsonl`; each row is
 * chained to the one before it and sealed (audit/seal.h). No row, no run: whatever goes wrong is
 * CORDON_E_AUDIT_UNAVAILABLE, with the reason and what to do about it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cordon-internal.h"

#define LEDGER_LINE_MAX ((size_t)1 << 20)

struct ledger;

/* Touches nothing yet: the directories, the key and the day's file are made by the first row. `data_dir` is absolute,
 * copied. With `sync_disk` a row is on the disk when its append returns; without, it survives every process but not the
 * loss of power. */
int ledger_open(const char *data_dir, bool sync_disk, struct ledger **ret_ledger, struct cordon_error *err) must_check;
void ledger_unref(struct ledger *ledger);
void ledger_set_sync(struct ledger *ledger, bool sync_disk);

/* One row: a JSON object of at least one member, without newlines and without the members `prev` and `mac`, which
 * are added; shorter than LEDGER_LINE_MAX. Either the whole line is in the file afterwards, or nothing of it. From
 * any thread, in any number of processes. */
int ledger_append(struct ledger *ledger, const char *line, size_t length, struct cordon_error *err) must_check;

/* Room that is reserved for the rows of one command; all zero: none. */
struct ledger_room {
	size_t slots;
	size_t left;                    /* bytes that its rows may still take of it */
};

/* The same for the row with which a command begins: afterwards `bytes` are reserved for the rows that it will cause,
 * so that those can be written when the file system is full. It is an error (ENOSPC) if there is no space for that;
 * nothing is written then. To be released. */
int ledger_append_reserving(struct ledger *ledger, const char *line, size_t length, size_t bytes,
                            struct ledger_room *ret_room, struct cordon_error *err) must_check;
/* The same for a row of that command: takes from `room`, as far as that goes, if there is no space otherwise. */
int ledger_append_in(struct ledger *ledger, struct ledger_room *room, const char *line, size_t length,
                     struct cordon_error *err) must_check;
/* `room` is all zero then, and may have been. */
void ledger_release(struct ledger *ledger, struct ledger_room *room);

/* Whether a row could be written now, as far as that can be told without writing one; makes what the first row would
 * make, and notes what was found damaged. */
int ledger_check(struct ledger *ledger, struct cordon_error *err) must_check;

/* Signs the head of an existing ledger; it is an error if the head does not match the ledger. */
int ledger_sign(struct ledger *ledger, struct cordon_error *err) must_check;
