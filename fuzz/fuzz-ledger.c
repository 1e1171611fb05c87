/* Any bytes as a ledger: two day files, a head and a signed head, separated by the byte 0x1e, with a key that is
 * known so that what was sealed with it can be among them. Verifying and reading end, and what they say is proper
 * JSON; the scanner takes whatever a parser takes. */
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/ledger-files.h"
#include "audit/ocsf.h"
#include "audit/read.h"
#include "audit/verify.h"
#include "base/json.h"
#include "base/remove.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PART_MARK 0x1e

static const char *const parts[] = { "2026-01-30.jsonl", "2026-01-31.jsonl", LEDGER_HEAD, LEDGER_SIGNED };
static char root[] = "/tmp/cordon-fuzz-ledger.XXXXXX";
static int directory = -1;

static void put(const char *name, const void *bytes, size_t size)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void clean_up(void)
{
	close(directory);
	remove_tree(AT_FDCWD, root);
}

static void set_up(void)
{
	struct seal_key key;
	unsigned char seed[32];
	char path[64], hex[SEAL_PUBLIC_HEX];
	memset(seed, 0x42, sizeof(seed));
	if (!mkdtemp(root))
		abort();
	atexit(clean_up);
	snprintf(path, sizeof(path), "%s/" LEDGER_DIRECTORY, root);
	if (mkdir(path, 0700) < 0 || (directory = ledger_open_directory(root)) < 0)
		abort();
	seal_key_from_seed(seed, &key);
	seal_public_hex(&key, hex);
	hex[SEAL_PUBLIC_HEX - 1] = '\n';
	put(LEDGER_PUBLIC, hex, sizeof(hex));
	memset(hex, '2', sizeof(hex));
	for (size_t i = 0; i < 64; i += 2)
		hex[i] = '4';
	hex[SEAL_PUBLIC_HEX - 1] = '\n';
	put(LEDGER_KEY, hex, sizeof(hex));
}

static int check_row(void *arg, const char *text, size_t length)
{
	(void)arg;
	json_t *row = json_loadb(text, length, JSON_ALLOW_NUL, NULL);
	if (!json_is_object(row))
		abort();
	json_decref(row);
	return 0;
}

static void verify(void)
{
	struct cordon_error err;
	struct json json;
	bool intact;
	json_init(&json);
	if (verify_ledger(root, &json, &intact, &err) < 0)
		abort();
	char *text = json_take(&json);
	json_t *report = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	if (!report || json_is_true(json_object_get(report, "intact")) != intact)
		abort();
	json_decref(report);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cordon_audit_filter filters[] = {
		{ 0 },
		{ .format = "ocsf" },
		{ .last = 3 },
		{ .last = 2, .session = "one" },
		{ .decision = "denied", .since = "2026-01-30" },
	};
	struct cordon_error err;
	if (directory < 0)
		set_up();
	const char *at = (const char *)data, *end = at + size;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const char *mark = at < end ? memchr(at, PART_MARK, (size_t)(end - at)) : NULL;
		const char *stop = mark && i + 1 < ARRAY_SIZE(parts) ? mark : end;
		put(parts[i], at, (size_t)(stop - at));
		at = stop < end ? stop + 1 : end;
	}
	verify();
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		if (ledger_read(root, &filters[i], check_row, NULL, &err) < 0)
			abort();
	return 0;
}
