/* The hosts file: see hosts.h. */
#include "net/hosts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static int read_all(int fd, struct hosts *hosts)
{
	size_t capacity = 0;
	for (;;) {
		if (hosts->length == capacity) {
			capacity = capacity ? 2 * capacity : 4096;
			char *grown = realloc(hosts->text, capacity);
			if (!grown)
				return -ENOMEM;
			hosts->text = grown;
		}
		ssize_t got = read(fd, hosts->text + hosts->length, capacity - hosts->length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		hosts->length += (size_t)got;
		if (hosts->length > HOSTS_SIZE_MAX)
			return -EFBIG;
	}
}

int hosts_read(const char *path, struct hosts *ret_hosts, struct cordon_error *err)
{
	struct hosts hosts = { 0 };
	struct stat status;
	/* Not to wait for a pipe's other end. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc = fd < 0 || fstat(fd, &status) < 0 ? -errno : S_ISREG(status.st_mode) ? 0 : -EINVAL;
	if (rc == 0)
		rc = read_all(fd, &hosts);
	if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR) {
		hosts_free(&hosts);
		return fail(err, CORDON_E_NETWORK_UNREACHABLE, -rc, path, "the hosts file cannot be read");
	}
	*ret_hosts = hosts;
	return 0;
}

void hosts_free(struct hosts *hosts)
{
	free(hosts->text);
	*hosts = (struct hosts){ 0 };
}

/* The next word before `end`; its length is 0 where there is none. */
static size_t next_word(const char **at, const char *end)
{
	const char *from = *at;
	while (from < end && (*from == ' ' || *from == '\t' || *from == '\r'))
		from++;
	size_t length = 0;
	while (from + length < end && from[length] != ' ' && from[length] != '\t' && from[length] != '\r')
		length++;
	*at = from;
	return length;
}

static bool line_has(const char *at, const char *end, const char *name, size_t name_length)
{
	for (size_t length; (length = next_word(&at, end)) > 0; at += length)
		if ((length == name_length || (length == name_length + 1 && at[name_length] == '.')) &&
		    !strncasecmp(at, name, name_length))
			return true;
	return false;
}

size_t hosts_find(const struct hosts *hosts, const char *name, struct address *ret_addresses, size_t max)
{
	size_t found = 0, name_length = strlen(name);
	if (!hosts->text)
		return 0;
	const char *end = hosts->text + hosts->length;
	for (const char *line = hosts->text; line < end;) {
		const char *line_end = memchr(line, '\n', (size_t)(end - line)), *next = line_end ? line_end + 1 : end;
		if (!line_end)
			line_end = end;
		const char *comment = memchr(line, '#', (size_t)(line_end - line));
		struct address address;
		size_t length = next_word(&line, comment ? comment : line_end);
		if (length && line_has(line + length, comment ? comment : line_end, name, name_length) &&
		    address_parse(line, length, &address)) {
			if (found < max)
				ret_addresses[found] = address;
			found++;
		}
		line = next;
	}
	return found;
}

bool hosts_is_localhost(const char *name)
{
	static const char localhost[] = "localhost";
	size_t length = strlen(name), size = sizeof(localhost) - 1;
	return length >= size && !strcmp(name + length - size, localhost) &&
	       (length == size || name[length - size - 1] == '.');
}
