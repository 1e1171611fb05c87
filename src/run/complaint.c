/* Complaints: see complaint.h. */
#include "run/complaint.h"

#include <string.h>

/* As libc, shells, Python, Node, Java, Go and Rust say it. */
static const struct {
	const char *words;
	enum complaint complaint;
} complaints[] = {
	{ "oo many open files", COMPLAINT_FILES },
	{ "EMFILE", COMPLAINT_FILES },
	{ "annot fork", COMPLAINT_PROCESSES },
	{ "fork: retry", COMPLAINT_PROCESSES },
	{ "fork failed", COMPLAINT_PROCESSES },
	{ "spawn EAGAIN", COMPLAINT_PROCESSES },
	{ "an't start new thread", COMPLAINT_PROCESSES },
	{ "nable to create native thread", COMPLAINT_PROCESSES },
	{ "pthread_create failed", COMPLAINT_PROCESSES },
	{ "failed to spawn thread", COMPLAINT_PROCESSES },
	{ "esource temporarily unavailable", COMPLAINT_PROCESSES },
	{ "isk quota exceeded", COMPLAINT_SPACE },
	{ "o space left on device", COMPLAINT_SPACE },
	{ "ENOSPC", COMPLAINT_SPACE },
	{ "EDQUOT", COMPLAINT_SPACE },
	{ "annot allocate memory", COMPLAINT_MEMORY },
	{ "MemoryError", COMPLAINT_MEMORY },
	{ "std::bad_alloc", COMPLAINT_MEMORY },
	{ "ut of memory", COMPLAINT_MEMORY },
	{ "ENOMEM", COMPLAINT_MEMORY },
	{ "ead-only file system", COMPLAINT_READ_ONLY },
	{ "EROFS", COMPLAINT_READ_ONLY },
};

enum complaint complaint_find(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(complaints) / sizeof(*complaints) && length; i++)
		if (memmem(text, length, complaints[i].words, strlen(complaints[i].words)))
			return complaints[i].complaint;
	return COMPLAINT_NONE;
}

static const struct {
	const char *words;
	bool is_write;
} file_words[] = {
	{ "o such file or directory", false },   { "ENOENT", false },
	{ "ermission denied", false },           { "EACCES", false },
	{ "ead-only file system", true },        { "EROFS", true },
	{ "irectory nonexistent", true },        { "annot find the path", false },
	{ "ot appear to be a git repo", false }, { "annot connect to the Docker", false },
};

/* What cannot be made, because the directory is not there or must not be written. */
static const char *const making_words[] = { "annot touch", "annot create", "annot mkdir", "annot make" };

static bool is_plain(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       (byte && strchr("/._-+@,~%=", byte));
}

/* A path from the root on, or one that leaves the directory that the command is in. */
static bool is_start(const char *text, size_t length)
{
	return *text == '/' || (length > 3 && !memcmp(text, "../", 3));
}

#define URL_OF_SOCKET "unix://"                 /* a URL has no blank in it */

/* What a path may stand between; "": it ends by itself. */
static const struct {
	const char *before, *after;
} fences[] = {
	{ "'", "'" },
	{ "\"", "\"" },
	{ "`", "'" },
	{ "\xe2\x80\x98", "\xe2\x80\x99" },
	{ "\xe2\x80\x9c", "\xe2\x80\x9d" },
	{ " ", "" },
	{ "(", "" },
	{ "=", "" },
	{ "[", "" },
	{ URL_OF_SOCKET, "" },
};

static bool is_url(const char *line, size_t at)
{
	const size_t size = strlen(URL_OF_SOCKET);
	return at >= size && !memcmp(line + at - size, URL_OF_SOCKET, size);
}

static const char *find_fence(const char *line, size_t at)
{
	for (size_t i = 0; i < sizeof(fences) / sizeof(*fences); i++) {
		size_t size = strlen(fences[i].before);
		if (at >= size && !memcmp(line + at - size, fences[i].before, size))
			return fences[i].after;
	}
	return NULL;
}

/* Where the path ends that begins at `at`; `at` where that cannot be told. One without quotation marks may have a blank
 * in it, and then nobody knows how far it goes. */
static size_t path_end(const char *line, size_t length, size_t at)
{
	const char *after = find_fence(line, at);
	size_t end = at, size = after ? strlen(after) : 0;
	if (!after)
		return at;
	while (size && end < length && (is_plain(line[end]) || line[end] == ' '))
		end++;
	if (size && length - end >= size && !memcmp(line + end, after, size))
		return end;
	for (end = at; end < length && is_plain(line[end]); )
		end++;
	if (end < length && !is_url(line, at) && !(line[end - 1] == ',' && line[end] == ' ') && !strchr(":;)]'\"\r", line[end]))
		return at;
	while (end > at && strchr(",.=", line[end - 1]))
		end--;
	return end;
}

static bool is_about_making(const char *line, size_t length)
{
	for (size_t i = 0; i < sizeof(making_words) / sizeof(*making_words); i++)
		if (memmem(line, length, making_words[i], strlen(making_words[i])))
			return true;
	return false;
}

/* "/bin/sh: 1: cannot create /etc/x: Read-only file system": the program comes first, and the file last. */
static bool last_path(const char *line, size_t length, char *ret_path, size_t size)
{
	bool found = false;
	for (size_t at = 0; at < length; at++) {
		/* At the very beginning of a line there is the program that says it. */
		size_t end = at && is_start(line + at, length - at) ? path_end(line, length, at) : at;
		if (end - at < 2 || end - at >= size)
			continue;
		memcpy(ret_path, line + at, end - at);
		ret_path[end - at] = '\0';
		found = true;
		at = end;
	}
	return found;
}

bool complaint_find_path(const char *text, size_t length, struct complaint_path *ret_path)
{
	for (size_t at = 0; at < length;) {
		const char *line = text + at, *newline = memchr(line, '\n', length - at);
		size_t rest = newline ? (size_t)(newline - line) : length - at;
		at += rest + 1;
		for (size_t i = 0; i < sizeof(file_words) / sizeof(*file_words); i++) {
			ret_path->is_write = file_words[i].is_write || is_about_making(line, rest);
			if (memmem(line, rest, file_words[i].words, strlen(file_words[i].words)) &&
			    last_path(line, rest, ret_path->path, sizeof(ret_path->path)))
				return true;
		}
	}
	return false;
}

static bool is_about_change(const char *line, size_t length)
{
	static const char *const words[] = { "evice or resource busy", "EBUSY", "ead-only file system", "EROFS" };
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (memmem(line, length, words[i], strlen(words[i])))
			return true;
	return false;
}

bool complaint_next_word(const char *text, size_t length, size_t *at, char *ret_word, size_t size)
{
	while (*at < length) {
		const char *before = *at ? memrchr(text, '\n', *at) : NULL;
		const char *line = before ? before + 1 : text, *end = memchr(text + *at, '\n', length - *at);
		end = end ? end : text + length;
		const char *word = text + *at;
		while (word < end && !is_plain(*word))
			word++;
		if (word == end || !is_about_change(line, (size_t)(end - line))) {
			*at = (size_t)(end - text) + 1;
			continue;
		}
		size_t count = 0;
		while (word + count < end && is_plain(word[count]))
			count++;
		*at = (size_t)(word - text) + count;
		if (count >= size)
			continue;
		memcpy(ret_word, word, count);
		ret_word[count] = '\0';
		return true;
	}
	return false;
}

/* What names a host and a port: between these two, and up to the end of the number. */
static const struct {
	const char *before, *between;
	int port;                               /* where the words mean one */
} connections[] = {
	{ "ssh: connect to host ", " port ", 0 },
	{ "Failed to connect to ", " port ", 0 },
	{ "ssh: Could not resolve hostname ", ":", 22 },
};

static bool is_of_host(char byte)
{
	return is_plain(byte) && !strchr("/_+@,~%=", byte);
}

bool complaint_find_connection(const char *text, size_t length, struct complaint_connection *ret_connection)
{
	for (size_t i = 0; i < sizeof(connections) / sizeof(*connections) && length; i++) {
		const char *end = text + length;
		const char *host = memmem(text, length, connections[i].before, strlen(connections[i].before));
		size_t size = 0, between = strlen(connections[i].between);
		if (!host)
			continue;
		host += strlen(connections[i].before);
		while (host + size < end && is_of_host(host[size]))
			size++;
		if (!size || *host == '-' || size >= sizeof(ret_connection->host) ||
		    (size_t)(end - host) < size + between || memcmp(host + size, connections[i].between, between) != 0)
			continue;
		int port = connections[i].port;
		for (const char *digit = host + size + between; !connections[i].port && digit < end && port <= 65535;
		     digit++) {
			if (*digit < '0' || *digit > '9')
				break;
			port = 10 * port + *digit - '0';
		}
		if (port < 1 || port > 65535)
			continue;
		memcpy(ret_connection->host, host, size);
		ret_connection->host[size] = '\0';
		ret_connection->port = port;
		return true;
	}
	return false;
}
