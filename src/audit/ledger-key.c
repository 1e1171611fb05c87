/* The key that seals and signs: 32 random bytes in `key`, created on first use, readable by its owner only.
 *
 * The key is put in place last, after the two heads and the public key. So if there is a key there is also a head,
 * unless the head was removed; and a ledger without a key and without rows was never begun. */
#include <fcntl.h>
#include <sodium/utils.h>
#include <string.h>
#include <sys/random.h>

#include "audit/ledger-files.h"
#include "base/error.h"

bool ledger_read_hex(int fd, char ret_hex[SEAL_PUBLIC_HEX])
{
	char text[SEAL_PUBLIC_HEX + 1];
	if (pread(fd, text, sizeof(text), 0) != SEAL_PUBLIC_HEX || text[SEAL_PUBLIC_HEX - 1] != '\n')
		return false;
	for (size_t i = 0; i < SEAL_PUBLIC_HEX - 1; i++)
		if (!memchr("0123456789abcdef", text[i], 16))
			return false;
	memcpy(ret_hex, text, SEAL_PUBLIC_HEX - 1);
	ret_hex[SEAL_PUBLIC_HEX - 1] = '\0';
	sodium_memzero(text, sizeof(text));
	return true;
}

int ledger_key_load(struct ledger_files *files, struct seal_key *ret_key, struct cordon_error *err)
{
	struct stat st;
	unsigned char seed[sizeof(ret_key->seed)];
	char hex[SEAL_PUBLIC_HEX];
	auto_close int fd = -1;
	if (ledger_files_stat(files, LEDGER_KEY, &st) < 0 && errno == ENOENT)
		return 0;
	if (ledger_files_open(files, LEDGER_KEY, O_RDONLY, &fd, &st, err) < 0)
		return -1;
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return ledger_refuse(files, EPERM, LEDGER_KEY, "the ledger's key can be read by other users", err);
	if (!ledger_read_hex(fd, hex))
		return ledger_refuse(files, EKEYREJECTED, LEDGER_KEY, "this is not a key of cordon's", err);
	sodium_hex2bin(seed, sizeof(seed), hex, sizeof(hex) - 1, NULL, NULL, NULL);
	seal_key_from_seed(seed, ret_key);
	sodium_memzero(seed, sizeof(seed));
	sodium_memzero(hex, sizeof(hex));
	return 1;
}

int ledger_key_make(struct ledger_files *files, int head_fd, const struct tip *tip, int64_t now,
                    struct seal_key *ret_key, struct cordon_error *err)
{
	unsigned char seed[sizeof(ret_key->seed)];
	char head[SEAL_HEAD_SIZE], public[SEAL_PUBLIC_HEX], secret[SEAL_PUBLIC_HEX];
	struct seal_key key;
	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return ledger_refuse(files, errno, LEDGER_KEY, "there is no randomness for the ledger's key", err);
	seal_key_from_seed(seed, &key);
	sodium_bin2hex(secret, sizeof(secret), seed, sizeof(seed));
	secret[SEAL_PUBLIC_HEX - 1] = '\n';
	seal_public_hex(&key, public);
	public[SEAL_PUBLIC_HEX - 1] = '\n';
	seal_sign(&key, tip, now, head);
	int status = ledger_files_replace(files, LEDGER_SIGNED, head, sizeof(head), err);
	/* Twice: the two files that take turns are there before the disk can be full. */
	if (!status)
		status = ledger_files_alternate(files, LEDGER_SIGNED, head, sizeof(head), err);
	seal_head(&key, tip, now, head);
	if (!status && (pwrite(head_fd, head, sizeof(head), 0) != sizeof(head) ||
	                (files->sync_disk && fdatasync(head_fd) < 0)))
		status = ledger_refuse(files, errno, LEDGER_HEAD, "the ledger's head cannot be written", err);
	if (!status)
		status = ledger_files_replace(files, LEDGER_PUBLIC, public, sizeof(public), err);
	if (!status)
		status = ledger_files_replace(files, LEDGER_KEY, secret, sizeof(secret), err);
	if (!status)
		*ret_key = key;
	sodium_memzero(seed, sizeof(seed));
	sodium_memzero(secret, sizeof(secret));
	sodium_memzero(&key, sizeof(key));
	return status;
}
