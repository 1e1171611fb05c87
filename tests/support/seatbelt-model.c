/* See seatbelt-model.h. */
#include "seatbelt-model.h"

#include <stdlib.h>
#include <string.h>

struct reader {
	const char *at;
	const struct seatbelt *seatbelt;
	bool broken;
};

static void skip_space(struct reader *reader)
{
	reader->at += strspn(reader->at, " \n\t");
}

static bool take(struct reader *reader, char c)
{
	skip_space(reader);
	if (*reader->at != c)
		return false;
	reader->at++;
	return true;
}

/* A word, or the text between quotes. */
static void take_word(struct reader *reader, char word[512])
{
	skip_space(reader);
	bool quoted = *reader->at == '"';
	reader->at += quoted;
	size_t length = strcspn(reader->at, quoted ? "\"" : " \n\t()\"");
	if (!length || length >= 512 || memchr(reader->at, '\\', length)) {
		reader->broken = true;
		length = 0;
	}
	memcpy(word, reader->at, length);
	word[length] = '\0';
	reader->at += length;
	if (quoted && *reader->at++ != '"')
		reader->broken = true;
}

/* "x", or (param "x") */
static const char *take_value(struct reader *reader, char room[512])
{
	if (!take(reader, '(')) {
		take_word(reader, room);
		return room;
	}
	take_word(reader, room);
	if (strcmp(room, "param"))
		reader->broken = true;
	take_word(reader, room);
	if (!take(reader, ')'))
		reader->broken = true;
	for (size_t i = 0; i < reader->seatbelt->count; i++)
		if (!strcmp(reader->seatbelt->parameters[i].name, room))
			return reader->seatbelt->parameters[i].value;
	reader->broken = true;
	return "";
}

static bool beneath(const char *path, const char *root)
{
	size_t length = strlen(root);
	if (!strcmp(root, "/"))
		return path[0] == '/';
	return !strncmp(path, root, length) && (!path[length] || path[length] == '/');
}

/* After "(remote" or "(local": a protocol, and an address where it is not any. A subject that names no protocol is of
 * TCP over IPv4; one that is a path, of neither. */
static bool fits_address(struct reader *reader, const char *subject)
{
	char protocol[512], room[512];
	const char *space = strchr(subject, ' '), *address = space ? space + 1 : subject;
	take_word(reader, protocol);
	bool is_any = !strcmp(protocol, "ip");
	if (!is_any && strcmp(protocol, "tcp4"))
		reader->broken = true;
	skip_space(reader);
	const char *wanted = *reader->at == '"' ? take_value(reader, room) : NULL;
	if (subject[0] == '/' || !subject[0] || (space && !is_any))
		return false;
	size_t length = wanted ? strlen(wanted) : 0;
	bool any_port = length > 2 && !strcmp(wanted + length - 2, ":*");
	return !wanted || (any_port ? !strncmp(address, wanted, length - 1) : !strcmp(address, wanted));
}

/* After "(": one filter, and its ")". */
static bool take_filter(struct reader *reader, const char *subject)
{
	char kind[512], room[512];
	bool fits = false;
	take_word(reader, kind);
	if (!strcmp(kind, "literal"))
		fits = !strcmp(subject, take_value(reader, room));
	else if (!strcmp(kind, "subpath"))
		fits = beneath(subject, take_value(reader, room));
	else if (!strcmp(kind, "target") || !strcmp(kind, "global-name") || !strcmp(kind, "sysctl-name"))
		fits = !strcmp(subject, take_value(reader, room));
	else if (!strcmp(kind, "sysctl-name-prefix")) {
		const char *prefix = take_value(reader, room);
		fits = !strncmp(subject, prefix, strlen(prefix));
	} else if (!strcmp(kind, "ipc-posix-name-regex")) {
		/* Of these, only how a name begins. */
		if (!take(reader, '#'))
			reader->broken = true;
		take_word(reader, room);
		if (room[0] != '^' || strpbrk(room, ".*+?[](){}|$\\"))
			reader->broken = true;
		fits = !reader->broken && !strncmp(subject, room + 1, strlen(room + 1));
	} else if (!strcmp(kind, "remote") || !strcmp(kind, "local")) {
		fits = fits_address(reader, subject);
	} else {
		reader->broken = true;
	}
	if (!take(reader, ')'))
		reader->broken = true;
	return fits;
}

/* What version 1 is reported to allow whatever the default is, and wildcards not to reach; taken together under the
 * name that does. */
static const char *own_name(const char *operation)
{
	static const char *const names[] = { "file-clone", "file-link", "file-map-executable", "file-test-existence",
		                             "fs-snapshot-mount" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(operation, names[i]))
			return names[i];
	return strncmp(operation, "process-info-", 13) ? NULL : "process-info*";
}

static bool is_operation(const char *word, const char *operation)
{
	if (own_name(operation))
		return !strcmp(word, operation) || !strcmp(word, own_name(operation));
	size_t length = strlen(word);
	if (!strcmp(word, "default") || !strcmp(word, operation))
		return true;
	return length && word[length - 1] == '*' && !strncmp(word, operation, length - 1);
}

enum seatbelt_answer seatbelt_decide(const struct seatbelt *seatbelt, const char *operation, const char *subject)
{
	struct reader reader = { .at = seatbelt->text, .seatbelt = seatbelt };
	enum seatbelt_answer answer = own_name(operation) ? SEATBELT_ALLOWED : SEATBELT_DENIED;
	char word[512];
	while (take(&reader, '(')) {
		bool concerns = false, filtered = false, fits = false;
		take_word(&reader, word);
		bool allow = !strcmp(word, "allow"), version = !strcmp(word, "version");
		if (!allow && !version && strcmp(word, "deny"))
			reader.broken = true;
		while (!reader.broken && !take(&reader, ')')) {
			if (take(&reader, '(')) {
				filtered = true;
				fits |= take_filter(&reader, subject);
			} else {
				take_word(&reader, word);
				concerns |= !version && is_operation(word, operation);
			}
		}
		if (reader.broken)
			return SEATBELT_UNREADABLE;
		if (concerns && (fits || !filtered))
			answer = allow ? SEATBELT_ALLOWED : SEATBELT_DENIED;
	}
	skip_space(&reader);
	return *reader.at ? SEATBELT_UNREADABLE : answer;
}
