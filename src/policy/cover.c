/* Covering entries: see cover.h. */
#include "policy/cover.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"

/* How many of the sorted items are not greater than these bytes. */
static size_t not_above(const struct strings *sorted, const char *key, size_t length)
{
	size_t low = 0, high = sorted->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strncmp(sorted->items[middle], key, length);
		if (order < 0 || (order == 0 && !sorted->items[middle][length]))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The longest path above path[0, length) whose text is at most `limit` bytes, or 0. */
static size_t above(const char *path, size_t length, size_t limit)
{
	size_t at = limit < length ? limit : length - 1;
	while (at && path[at] != '/')
		at--;
	return at ? at : limit && length > 1;
}

bool cover_path(const struct strings *roots, const char *path, bool by_another)
{
	if (!roots->count || !path_is_normal(path))
		return false;
	size_t length = strlen(path);
	if (roots->unsorted) {
		for (size_t i = 0; i < roots->count; i++)
			if (path_within(path, roots->items[i]) && !(by_another && !strcmp(path, roots->items[i])))
				return true;
		return false;
	}
	/* What covers the path is a beginning of it, and so of everything that sorts between the two: whatever is just
	 * before the path, only what both begin with can still be a root. */
	for (length = by_another ? above(path, length, length) : length; length; ) {
		size_t count = not_above(roots, path, length), common = 0;
		if (!count)
			return false;
		const char *root = roots->items[count - 1];
		while (common < length && root[common] == path[common])
			common++;
		/* Not greater, and as long at least: the same. */
		if (common == length)
			return true;
		length = above(path, length, common);
	}
	return false;
}

struct host {
	const char *name;
	size_t length;                  /* without a trailing dot */
	const char *port;               /* with its colon; "" where there is none */
};

static struct host host_read(const char *text)
{
	const char *colon = strrchr(text, ':');
	struct host host = { text, colon ? (size_t)(colon - text) : strlen(text), colon ? colon : "" };
	/* One dot, where that leaves a name: "a.." and "*." are none in any form. */
	if (host.length > 1 && text[host.length - 1] == '.' && text[host.length - 2] != '.' &&
	    text[host.length - 2] != '*')
		host.length--;
	return host;
}

/* Is the host an address rather than a name? As browsers tell: the last label begins with a digit, or it is in
 * brackets. Such a host is never covered by a wildcard. */
static bool is_address(const struct host *host)
{
	const char *dot = memrchr(host->name, '.', host->length);
	const char *last = dot ? dot + 1 : host->name;
	return host->length == 0 || host->name[0] == '[' || memchr(host->name, ':', host->length) ||
	       (*last >= '0' && *last <= '9');
}

static bool may_be_wild(const struct host *host)
{
	return *host->port && host->name[0] != '.' && !is_address(host);
}

static bool same_end(const struct host *root, const struct host *host, size_t length)
{
	return !strncasecmp(root->name + root->length - length, host->name + host->length - length, length) &&
	       !strcasecmp(root->port, host->port);
}

static bool host_covers(const struct host *root, const struct host *host)
{
	if (root->length == host->length && same_end(root, host, host->length))
		return true;
	return root->length > 2 && root->name[0] == '*' && root->name[1] == '.' && host->length >= root->length &&
	       may_be_wild(host) && same_end(root, host, root->length - 1);
}

/* As strcmp() of the item with `star`, the name from `at` on and the port, one after the other and in lower case. */
static int compare(const char *item, const char *star, const struct host *host, size_t at)
{
	const char *const parts[] = { star, host->name + at, host->port };
	const size_t lengths[] = { strlen(star), host->length - at, strlen(host->port) };
	for (size_t part = 0; part < ARRAY_SIZE(parts); part++)
		for (size_t i = 0; i < lengths[part]; i++, item++) {
			char byte = text_lower(parts[part][i]);
			if (*item != byte)
				return (unsigned char)*item < (unsigned char)byte ? -1 : 1;
		}
	return *item ? 1 : 0;
}

static bool is_listed(const struct strings *sorted, const char *star, const struct host *host, size_t at)
{
	size_t low = 0, high = sorted->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(sorted->items[middle], star, host, at);
		if (!order)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool cover_host(const struct strings *roots, const char *text, bool by_another)
{
	struct host host = host_read(text);
	if (!by_another && is_listed(roots, "", &host, 0))
		return true;
	/* The star of a wildcard is a label like any other, but the same star in the other name is the same entry. */
	for (size_t at = 1; may_be_wild(&host) && at < host.length; at++)
		if (host.name[at] == '.' && !(by_another && at == 1 && host.name[0] == '*') &&
		    is_listed(roots, "*", &host, at))
			return true;
	for (size_t i = 0; !by_another && i < roots->count; i++) {
		struct host root = host_read(roots->items[i]);
		if (host_covers(&root, &host))
			return true;
	}
	return false;
}

char *cover_host_normalise(struct arena *arena, const char *text)
{
	struct host host = host_read(text);
	char *normal = arena_printf(arena, "%.*s%s", (int)host.length, host.name, host.port);
	for (char *at = normal; at && *at; at++)
		*at = text_lower(*at);
	return normal;
}
