/* Kept texts: see keep.h. Names are derived from a hash of the file's path: HASH.toml is the last valid text,
 * HASH.said a hash of what was reported. Files come into place by rename; reading and replacing takes a lock. */
#include "config/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/toml.h"

#define DIRECTORY "config"
#define LOCK_ATTEMPTS 50                /* a stopped process that holds the lock must not stop others for long */
#define STALE_S 10
#define HEX_SIZE (2 * crypto_hash_sha256_BYTES + 1)

struct name {
	char text[HEX_SIZE + 8];
};

static void hash_hex(const void *const *parts, const size_t *lengths, size_t count, char ret_hex[HEX_SIZE])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;
	crypto_hash_sha256_init(&state);
	for (size_t i = 0; i < count; i++)
		sha256_update(&state, parts[i], lengths[i]);
	sha256_final(&state, hash);
	sodium_bin2hex(ret_hex, HEX_SIZE, hash, sizeof(hash));
}

static struct name name_of(const char *path, const char *suffix)
{
	char hex[HEX_SIZE];
	struct name name;
	hash_hex((const void *[]){ path }, (size_t[]){ strlen(path) }, 1, hex);
	hex[32] = '\0';
	snprintf(name.text, sizeof(name.text), "%s%s", hex, suffix);
	return name;
}

/* The directory, locked while it is open; or -1. */
static int open_directory(const char *data_dir, bool make)
{
	struct stat info;
	char path[CONFIG_KEPT_PATH_SIZE];
	if ((size_t)snprintf(path, sizeof(path), "%s/" DIRECTORY, data_dir) >= sizeof(path))
		return -1;
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && make && (mkdir(path, 0700) == 0 || errno == EEXIST))
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0 || info.st_uid != geteuid() || info.st_mode & (S_IWGRP | S_IWOTH))
		return -1;
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0 && i < LOCK_ATTEMPTS; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	return take_fd(&fd);
}

/* At most TOML_SIZE_MAX bytes, to be free()d; NULL where it is not there or not what was written here. */
static char *read_kept(int directory_fd, const struct name *name, size_t *ret_length)
{
	struct stat info;
	auto_close int fd = openat(directory_fd, name->text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
	    info.st_size > (off_t)TOML_SIZE_MAX)
		return NULL;
	size_t size = (size_t)info.st_size;
	char *text = malloc(size + 1);
	if (!text || read(fd, text, size) != (ssize_t)size) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	*ret_length = size;
	return text;
}

static bool is_kept(int directory_fd, const struct name *name, const char *text, size_t length)
{
	size_t kept_length = 0;
	auto_free char *kept = read_kept(directory_fd, name, &kept_length);
	return kept && kept_length == length && !memcmp(kept, text, length);
}

/* The temporary file of a killed process is removed by the next one. */
static int open_temporary(int directory_fd, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	struct stat info;
	int fd = openat(directory_fd, name, flags, 0600);
	if (fd < 0 && errno == EEXIST && fstatat(directory_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (info.st_ctime < time(NULL) - STALE_S || info.st_ctime > time(NULL) + STALE_S)) {
		unlinkat(directory_fd, name, 0);
		fd = openat(directory_fd, name, flags, 0600);
	}
	return fd;
}

static void write_kept(int directory_fd, const struct name *name, const char *text, size_t length)
{
	char temporary[sizeof(name->text) + 4];
	snprintf(temporary, sizeof(temporary), "%s.new", name->text);
	auto_close int fd = open_temporary(directory_fd, temporary);
	if (fd < 0)
		return;
	if (write(fd, text, length) != (ssize_t)length ||
	    renameat(directory_fd, temporary, directory_fd, name->text) < 0)
		unlinkat(directory_fd, temporary, 0);
}

void config_keep_good(const char *data_dir, const char *path, const char *text, size_t length)
{
	const struct name good = name_of(path, ".toml"), said = name_of(path, ".said");
	auto_close int fd = open_directory(data_dir, text != NULL);
	if (fd < 0)
		return;
	unlinkat(fd, said.text, 0);
	if (!text)
		unlinkat(fd, good.text, 0);
	else if (!is_kept(fd, &good, text, length))
		write_kept(fd, &good, text, length);
}

char *config_keep_load(const char *data_dir, const char *path, size_t *ret_length,
                       char kept_path[CONFIG_KEPT_PATH_SIZE])
{
	const struct name good = name_of(path, ".toml");
	auto_close int fd = open_directory(data_dir, false);
	int length = snprintf(kept_path, CONFIG_KEPT_PATH_SIZE, "%s/" DIRECTORY "/%s", data_dir, good.text);
	return fd < 0 || length >= CONFIG_KEPT_PATH_SIZE ? NULL : read_kept(fd, &good, ret_length);
}

bool config_keep_is_news(const char *data_dir, const char *path, const char *text, size_t length, const char *reason,
                         bool mark)
{
	char hex[HEX_SIZE];
	const struct name said = name_of(path, ".said");
	hash_hex((const void *[]){ reason, text ? text : "" }, (size_t[]){ strlen(reason) + 1, text ? length : 0 }, 2,
	         hex);
	auto_close int fd = open_directory(data_dir, mark);
	if (fd < 0)
		return true;
	if (is_kept(fd, &said, hex, HEX_SIZE - 1))
		return false;
	if (mark)
		write_kept(fd, &said, hex, HEX_SIZE - 1);
	return true;
}
