/* Names that are shown all the same: see shown.h. */
#include "paths/index/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "paths/index/git-index.h"
#include "paths/index/look.h"

#define JUDGED_US 50000                 /* for all of a tree; what is left is hidden */
#define SHORT_SECRET 512                /* a key without any text around it is shorter */

enum lifted { BY_CONTENT_ALONE = 0, BY_NAME = 1 << 0, WITHOUT_KEY = 1 << 1 };

/* The default globs, and what lifts each besides the git index. */
static const struct {
	const char *glob;
	unsigned lifted;
} rows[] = {
	{ "**/.env", BY_CONTENT_ALONE },        { "**/.env.*", BY_NAME },
	{ "**/*.pem", WITHOUT_KEY },            { "**/*.key", WITHOUT_KEY },
	{ "**/id_rsa*", BY_CONTENT_ALONE },     { "**/id_ed25519*", BY_CONTENT_ALONE },
	{ "**/.netrc", BY_CONTENT_ALONE },
};

struct candidate {
	struct name *name;
	unsigned lifted;                        /* by every glob that means it */
	const char *repository;                 /* the directory with `.git` in it, relative to the root, "" for that; or NULL */
	bool has_content;
	unsigned char sha1[SHA1_BYTES], sha256[crypto_hash_sha256_BYTES];       /* as git counts them */
};

struct judging {
	struct arena *arena;
	int root_fd;
	const char *root_path;
	struct glob *globs;                     /* of `deny` */
	const unsigned **lifts;                 /* of each: which row; NULL: somebody's own */
	size_t glob_count;
	uint64_t deadline_us;
	char *content;
};

/* ---- by name ---------------------------------------------------------------------------------------------------- */

static int compile(struct judging *judging, const struct strings *deny)
{
	judging->globs = arena_alloc(judging->arena, (deny->count + 1) * sizeof(*judging->globs));
	judging->lifts = arena_alloc(judging->arena, (deny->count + 1) * sizeof(*judging->lifts));
	if (!judging->globs || !judging->lifts)
		return -1;
	for (size_t i = 0; i < deny->count; i++) {
		if (glob_compile(judging->arena, deny->items[i], 0, &judging->globs[i], NULL) < 0)
			return -1;
		for (size_t j = 0; j < ARRAY_SIZE(rows); j++)
			if (!strcmp(rows[j].glob, deny->items[i]))
				judging->lifts[i] = &rows[j].lifted;
	}
	judging->glob_count = deny->count;
	return 0;
}

/* Do only default globs mean it? *ret_lifted is what lifts all of these. */
static bool is_meant_by_default(const struct judging *judging, const char *path, unsigned *ret_lifted)
{
	char absolute[PATH_MAX];
	bool meant = false;
	unsigned lifted = ~0u;
	if (snprintf(absolute, sizeof(absolute), "%s/%s", judging->root_path, path) >= (int)sizeof(absolute))
		return false;
	for (size_t i = 0; i < judging->glob_count; i++) {
		if (!glob_match(&judging->globs[i], judging->globs[i].absolute ? absolute : path))
			continue;
		if (!judging->lifts[i])
			return false;
		meant = true;
		lifted &= *judging->lifts[i];
	}
	*ret_lifted = lifted;
	return meant;
}

static bool is_example(const char *path)
{
	static const char *const endings[] = { "example", "sample", "template", "dist", "defaults", "schema" };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		if (dot > name && !strcmp(dot + 1, endings[i]))
			return true;
	return false;
}

/* ---- by content ------------------------------------------------------------------------------------------------- */

/* Of a block that begins with -----BEGIN: is it known to be public? */
static bool is_public_block(const char *label, size_t left)
{
	static const char *const labels[] = {
		"CERTIFICATE-----", "TRUSTED CERTIFICATE-----", "X509 CERTIFICATE-----", "X509 CRL-----", "CERTIFICATE REQUEST-----",
		"NEW CERTIFICATE REQUEST-----", "PUBLIC KEY-----", "RSA PUBLIC KEY-----", "DSA PUBLIC KEY-----", "EC PARAMETERS-----",
		"DH PARAMETERS-----", "X9.42 DH PARAMETERS-----", "PKCS7-----", "SSH2 PUBLIC KEY ----",
	};
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		if (left >= strlen(labels[i]) && !memcmp(label, labels[i], strlen(labels[i])))
			return true;
	return false;
}

/* What is not known to be public counts as a key: formats that are not listed, keys without a frame around them, ASN.1 as it stands. */
bool shown_has_private_key(const char *content, size_t length)
{
	static const char *const words[] = { "PRIVATE KEY", "PRIVATE-KEY", "SECRET KEY", "SECRET-KEY", "PRIVATE-LINES", "PRIVATEKEY", "PRIVATE_KEY" };
	bool has_block = false;
	if (!length)
		return false;
	if (memchr(content, 0, length))
		return true;
	for (const char *at = content, *end = content + length; at < end; at++) {
		if (*at == '-' && (size_t)(end - at) >= 11 && !memcmp(at, "-----BEGIN ", 11)) {
			if (!is_public_block(at + 11, (size_t)(end - at) - 11))
				return true;
			has_block = true;
		}
		for (size_t i = 0; (*at == 'P' || *at == 'p' || *at == 'S' || *at == 's') && i < ARRAY_SIZE(words); i++)
			if ((size_t)(end - at) >= strlen(words[i]) && !strncasecmp(at, words[i], strlen(words[i])))
				return true;
	}
	return !has_block;
}

/* As git names the blob of it. */
static void hash_blob(struct candidate *candidate, const char *content, size_t length)
{
	char header[32];
	size_t size = (size_t)snprintf(header, sizeof(header), "blob %zu", length) + 1;
	struct sha1 sha1;
	crypto_hash_sha256_state sha256;
	sha1_init(&sha1);
	sha1_update(&sha1, header, size);
	sha1_update(&sha1, content, length);
	sha1_final(&sha1, candidate->sha1);
	crypto_hash_sha256_init(&sha256);
	sha256_update(&sha256, header, size);
	sha256_update(&sha256, content, length);
	sha256_final(&sha256, candidate->sha256);
	candidate->has_content = true;
}

/* Opens a regular file without following a link, and without effect on what is none. */
static int open_regular(int root_fd, const char *path, struct stat *ret_info)
{
	char link[64];
	auto_close int place = names_open(root_fd, path, O_PATH);
	if (place < 0 || fstat(place, ret_info) < 0)
		return -1;
	if (!S_ISREG(ret_info->st_mode)) {
		errno = EINVAL;
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	return open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* All of it, if that is no more than `max`. */
static bool read_all(int fd, char *buffer, size_t max, size_t *ret_length)
{
	size_t length = 0;
	for (ssize_t got = 1; got && length <= max;) {
		got = read(fd, buffer + length, max + 1 - length);
		if (got < 0 && errno != EINTR)
			return false;
		length += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	*ret_length = length;
	return length <= max;
}

/* By what it is and has in it; the index is asked later, for all of a repository at once. */
static void judge_file(struct judging *judging, struct candidate *candidate)
{
	struct stat info;
	size_t length;
	if (names_now_us() > judging->deadline_us)
		return;
	auto_close int fd = open_regular(judging->root_fd, candidate->name->path, &info);
	if (fd < 0) {
		/* A file tool may make it. */
		candidate->name->is_shown = errno == ENOENT && candidate->lifted & BY_NAME && is_example(candidate->name->path);
		return;
	}
	if (candidate->lifted & BY_NAME && info.st_nlink == 1 && is_example(candidate->name->path)) {
		candidate->name->is_shown = true;
		return;
	}
	if (info.st_size > SHOWN_CONTENT_MAX || !read_all(fd, judging->content, SHOWN_CONTENT_MAX, &length))
		return;
	if (candidate->lifted & WITHOUT_KEY && !shown_has_private_key(judging->content, length))
		candidate->name->is_shown = true;
	else
		hash_blob(candidate, judging->content, length);
}

/* ---- by the index ----------------------------------------------------------------------------------------------- */

/* The nearest directory above it that has a repository in it. */
static int find_repository(struct judging *judging, struct candidate *candidate)
{
	char path[PATH_MAX];
	size_t length = strlen(candidate->name->path);
	while (length) {
		while (length && candidate->name->path[length - 1] != '/')
			length--;
		if (snprintf(path, sizeof(path), "%.*s.git", (int)length, candidate->name->path) >= (int)sizeof(path))
			return 0;
		auto_close int fd = names_open(judging->root_fd, path, O_PATH | O_DIRECTORY);
		if (fd >= 0) {
			candidate->repository = arena_strndup(judging->arena, candidate->name->path, length);
			return candidate->repository ? 0 : -1;
		}
		length -= length > 0;
	}
	return 0;
}

static int by_path(const void *one, const void *other)
{
	const struct git_index_entry *a = one, *b = other;
	return strcmp(a->path, b->path);
}

static bool is_same_blob(const struct candidate *candidate, const struct git_index_entry *entry, size_t hash_size)
{
	return entry->found && !memcmp(entry->hash, hash_size == SHA1_BYTES ? candidate->sha1 : candidate->sha256, hash_size);
}

/* Compares those of one repository with its index. */
static void compare(const char *index, size_t length, const char *repository, struct candidate *candidates, size_t count,
                    struct git_index_entry *entries)
{
	static const size_t hash_sizes[] = { SHA1_BYTES, crypto_hash_sha256_BYTES };
	for (size_t i = 0; i < ARRAY_SIZE(hash_sizes); i++) {
		size_t entry_count = 0;
		for (size_t j = 0; j < count; j++)
			if (candidates[j].has_content && candidates[j].repository && !strcmp(candidates[j].repository, repository))
				entries[entry_count++] = (struct git_index_entry){ .path = candidates[j].name->path + strlen(repository) };
		qsort(entries, entry_count, sizeof(*entries), by_path);
		git_index_find((const unsigned char *)index, length, hash_sizes[i], entries, entry_count);
		for (size_t j = 0; j < count; j++) {
			if (!candidates[j].has_content || !candidates[j].repository || strcmp(candidates[j].repository, repository) != 0)
				continue;
			const struct git_index_entry key = { .path = candidates[j].name->path + strlen(repository) };
			const struct git_index_entry *entry = bsearch(&key, entries, entry_count, sizeof(*entries), by_path);
			if (entry && is_same_blob(&candidates[j], entry, hash_sizes[i]))
				candidates[j].name->is_shown = true;
		}
	}
}

static int judge_repository(struct judging *judging, const char *repository, struct candidate *candidates, size_t count)
{
	char path[PATH_MAX];
	struct stat info;
	size_t length;
	if (names_now_us() > judging->deadline_us || snprintf(path, sizeof(path), "%s.git/index", repository) >= (int)sizeof(path))
		return 0;
	auto_close int fd = open_regular(judging->root_fd, path, &info);
	if (fd < 0 || info.st_size > GIT_INDEX_BYTES_MAX)
		return 0;
	auto_free char *index = malloc((size_t)info.st_size + 1);
	auto_free struct git_index_entry *entries = calloc(count, sizeof(*entries));
	if (!index || !entries)
		return -1;
	if (read_all(fd, index, (size_t)info.st_size, &length))
		compare(index, length, repository, candidates, count, entries);
	return 0;
}

static int judge_repositories(struct judging *judging, struct candidate *candidates, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (candidates[i].has_content && find_repository(judging, &candidates[i]) < 0)
			return -1;
	for (size_t i = 0; i < count; i++) {
		const char *repository = candidates[i].has_content ? candidates[i].repository : NULL;
		bool done = !repository;
		for (size_t j = 0; j < i && !done; j++)
			done = candidates[j].has_content && candidates[j].repository && !strcmp(candidates[j].repository, repository);
		if (!done && judge_repository(judging, repository, candidates, count) < 0)
			return -1;
	}
	return 0;
}

static const char *line_of(struct arena *arena, const struct candidate *candidate, const char *path)
{
	char hex[2 * sizeof(candidate->sha256) + 1];
	return arena_printf(arena, "%s %s", sodium_bin2hex(hex, sizeof(hex), candidate->sha256, sizeof(candidate->sha256)), path);
}

const char *shown_line(struct arena *arena, int root_fd, const char *path)
{
	struct candidate candidate = { .name = NULL };
	struct stat info;
	size_t length;
	auto_close int fd = open_regular(root_fd, path, &info);
	if (fd < 0 || info.st_size > SHOWN_CONTENT_MAX)
		return NULL;
	auto_free char *content = malloc((size_t)info.st_size + 1);
	if (!content || !read_all(fd, content, (size_t)info.st_size, &length))
		return NULL;
	hash_blob(&candidate, content, length);
	return line_of(arena, &candidate, path);
}

static int judge_kept(struct judging *judging, const struct strings *kept, struct candidate *candidates, size_t count)
{
	for (size_t i = 0; kept && kept->count && i < count; i++) {
		if (!candidates[i].has_content || candidates[i].name->is_shown)
			continue;
		const char *line = line_of(judging->arena, &candidates[i], candidates[i].name->path);
		if (!line)
			return -1;
		candidates[i].name->is_shown = strings_find(kept, line) >= 0;
	}
	return 0;
}

int shown_judge(struct arena *arena, int root_fd, const char *root_path, const struct strings *deny, const struct strings *kept,
                struct names *names)
{
	struct judging judging = { .arena = arena, .root_fd = root_fd, .root_path = strcmp(root_path, "/") ? root_path : "",
	                           .deadline_us = names_now_us() + JUDGED_US };
	size_t count = 0, most = 0;
	for (size_t i = 0; i < names->count; i++)
		most += names->items[i].kind == NAME_MASKED && !names->items[i].is_directory && !names->items[i].is_link && !names->items[i].is_fifo;
	if (!most)
		return 0;
	auto_free struct candidate *candidates = calloc(most, sizeof(*candidates));
	auto_free char *content = malloc(SHOWN_CONTENT_MAX + 1);
	judging.content = content;
	if (!candidates || !content || compile(&judging, deny) < 0)
		return -1;
	for (size_t i = 0; i < names->count && count < most; i++) {
		struct name *name = &names->items[i];
		if (name->kind != NAME_MASKED || name->is_directory || name->is_link || name->is_fifo ||
		    !is_meant_by_default(&judging, name->path, &candidates[count].lifted))
			continue;
		candidates[count].name = name;
		judge_file(&judging, &candidates[count++]);
	}
	return judge_repositories(&judging, candidates, count) < 0 ? -1 : judge_kept(&judging, kept, candidates, count);
}
