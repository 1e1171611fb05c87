/* The ledger's directory, `<data_dir>/ledger`, and the files in it:
 *     YYYY-MM-DD.jsonl   the rows, a file per day
 *     head               how far they reach; whoever writes holds its lock
 *     signed             the same with a signature, now and then
 *     reserve            who has reserved room for rows to come (ledger-room.c)
 *     key, key.pub       what seals and signs, and what the signature is checked with
 * Files to be written are opened through the data directory's descriptor, never through a symbolic link; what is not
 * ours, or what others may write to, is no ledger. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

#include "audit/seal.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

#define LEDGER_DIRECTORY "ledger"
#define LEDGER_HEAD "head"
#define LEDGER_SIGNED "signed"
#define LEDGER_RESERVE "reserve"
#define LEDGER_KEY "key"
#define LEDGER_PUBLIC "key.pub"

struct ledger_files {
	char *data_dir;
	int data_fd;            /* -1 until needed */
	bool sync_disk;
};

/* Fills `err` as the ledger's refusal and returns -1. `name` is in the ledger's directory; "" is the directory itself,
 * NULL the data directory. */
int ledger_refuse(const struct ledger_files *files, int os_errno, const char *name, const char *what,
                  struct cordon_error *err);

/* Makes the directories where they are missing. `name` without a slash. */
int ledger_files_open(struct ledger_files *files, const char *name, int flags, int *ret_fd, struct stat *ret_st,
                      struct cordon_error *err) must_check;
/* The file of this name, as it is now. */
int ledger_files_stat(const struct ledger_files *files, const char *name, struct stat *ret_st) must_check;
/* Removes a file that has no rows. */
void ledger_files_remove(const struct ledger_files *files, const char *name);
/* Puts a small file in the place of whatever has this name: whole or not at all. Its length on the disk is `size`. */
int ledger_files_replace(struct ledger_files *files, const char *name, const char *bytes, size_t size,
                         struct cordon_error *err) must_check;
/* The same for a file that is replaced often and is not secret: it alternates with the previous file, kept as
 * NAME.new, because freeing a file can take long on a busy disk. Readers hold the lock of the head meanwhile. */
int ledger_files_alternate(struct ledger_files *files, const char *name, const char *bytes, size_t size,
                           struct cordon_error *err) must_check;
/* Writing up to this size would raise SIGXFSZ in the program that uses the library. */
bool ledger_files_fit(uint64_t size);

/* 1 and the key; 0 if there is none. */
int ledger_key_load(struct ledger_files *files, struct seal_key *ret_key, struct cordon_error *err) must_check;
/* A new key in the place of any other, once all that must be there before it is: signed, head and key.pub. `head_fd`
 * is the open head, which is written to in place. */
int ledger_key_make(struct ledger_files *files, int head_fd, const struct tip *tip, int64_t now,
                    struct seal_key *ret_key, struct cordon_error *err) must_check;

/* ---- For whoever only reads ------------------------------------------------------------------------------------- */

/* -1 and errno where there is none. */
int ledger_open_directory(const char *data_dir);
/* A regular file, for reading; -1 and errno otherwise. */
int ledger_open_readable(int directory, const char *name);
/* Waits until no process writes, for a moment at most: `head` is then locked for reading as long as it is open. */
void ledger_await_writer(int head);
/* The key's 32 bytes in hex and a newline, or the public key's: true if the file holds just that. */
bool ledger_read_hex(int fd, char ret_hex[SEAL_PUBLIC_HEX]);

/* The names of the day files, in order; to be free()d. */
struct days {
	char (*names)[DAY_NAME_SIZE];
	size_t count;
};
bool day_name_valid(const char *name);
/* 0, or -1 and errno. */
int days_list(int directory, struct days *ret_days) must_check;
