/* git's configuration language, as much of it as leads to [user] name and email: git-config(1), "Syntax".
 *
 * The reader walks the text once, by the character. A section header sets whether we are in [user] (a subsection is
 * another section); a key has a value that ends at the line's end, unless a backslash is last. In a value quotes only
 * switch off comments and trimming. Includes are not followed: they name files that nobody declared.
 *
 * [safe] directory is left out: the workspace belongs to the uid that the command has. */
#include "host/git-identity.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "host/git-files.h"

#define MAX_FILE (64 * 1024)
#define MAX_VALUE 512

struct reader {
	const char *at, *end;
	bool in_user;
};

/* The next character, lines ended by \n alone as git sees them; -1 at the end. */
static int next(struct reader *reader)
{
	if (reader->at == reader->end)
		return -1;
	if (*reader->at == '\r' && reader->end - reader->at > 1 && reader->at[1] == '\n')
		reader->at++;
	return (unsigned char)*reader->at++;
}

static int peek(const struct reader *reader)
{
	struct reader copy = *reader;
	return next(&copy);
}

static void skip_line(struct reader *reader)
{
	for (int c = next(reader); c >= 0 && c != '\n'; )
		c = next(reader);
}

/* After the '['. False where git would refuse it. */
static bool read_section(struct reader *reader)
{
	char name[8] = "";
	size_t length = 0;
	int c;
	while ((c = next(reader)) == '-' || c == '.' || (c > 0 && c < 0x80 && isalnum(c))) {
		if (length < sizeof(name) - 1)
			name[length] = (char)c;
		length++;
	}
	reader->in_user = length == 4 && !strncasecmp(name, "user", 4) && c == ']';
	if (c == ']')
		return true;
	while (c == ' ' || c == '\t')
		c = next(reader);
	if (c != '"')
		return false;
	while ((c = next(reader)) != '"') {
		if (c == '\\')
			c = next(reader);
		if (c < 0 || c == '\n')
			return false;
	}
	return next(reader) == ']';
}

/* The character that a backslash and `c` mean, or -1. */
static int unescape(int c)
{
	static const char escapes[] = "n\nt\tb\b\\\\\"\"";
	for (const char *pair = escapes; *pair; pair += 2)
		if (*pair == c)
			return pair[1];
	return -1;
}

/* After the '='. *ret_length is SIZE_MAX for one that is too long to be of use. */
static bool read_value(struct reader *reader, char value[MAX_VALUE], size_t *ret_length)
{
	size_t length = 0, trimmed = 0;
	bool quoted = false, comment = false;
	for (int c; (c = next(reader)) >= 0 && c != '\n'; ) {
		bool blank = c == ' ' || c == '\t' || c == '\r';
		if (!c)
			return false;
		if (comment || (!quoted && !length && blank))
			continue;
		if (!quoted && (c == ';' || c == '#')) {
			comment = true;
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
			trimmed = length;
			continue;
		}
		if (c == '\\') {
			trimmed = length;
			c = next(reader);
			if (c == '\n')
				continue;
			c = unescape(c);
			if (c < 0)
				return false;
			blank = false;
		}
		if (length < MAX_VALUE)
			value[length] = (char)c;
		length++;
		if (quoted || !blank)
			trimmed = length;
	}
	*ret_length = trimmed < MAX_VALUE ? trimmed : SIZE_MAX;
	return !quoted;
}

/* `c` begins the key. *ret_keep: where its value is wanted, else NULL. */
static bool read_key(struct reader *reader, int c, const char **name, const char **email, const char ***ret_keep)
{
	char key[8] = "";
	size_t length = 0;
	for (;;) {
		if (length < sizeof(key) - 1)
			key[length] = (char)c;
		length++;
		c = peek(reader);
		if (c != '-' && (c < 0 || c >= 0x80 || !isalnum(c)))
			break;
		next(reader);
	}
	while (peek(reader) == ' ' || peek(reader) == '\t')
		next(reader);
	*ret_keep = NULL;
	if (reader->in_user && length < sizeof(key))
		*ret_keep = !strcasecmp(key, "name") ? name : !strcasecmp(key, "email") ? email : NULL;
	c = next(reader);
	if (c == '\n' || c < 0)
		*ret_keep = NULL;       /* a key without a value is a truth, not a name */
	return c == '=' || c == '\n' || c < 0;
}

int git_identity_parse(struct arena *arena, const char *text, size_t length, const char **name, const char **email)
{
	struct reader reader = { text, text + length, false };
	char value[MAX_VALUE];
	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		reader.at += 3;
	for (int c; (c = next(&reader)) >= 0; ) {
		const char **keep = NULL;
		size_t size = 0;
		if (c == '\n' || isspace(c))
			continue;
		if (c == '#' || c == ';') {
			skip_line(&reader);
			continue;
		}
		if (c == '[') {
			if (!read_section(&reader))
				return 0;
			continue;
		}
		if (c >= 0x80 || !isalpha(c) || !read_key(&reader, c, name, email, &keep))
			return 0;
		if (reader.at[-1] == '=' && !read_value(&reader, value, &size))
			return 0;
		if (!keep || size == SIZE_MAX)
			continue;
		*keep = arena_strndup(arena, value, size);
		if (!*keep)
			return -1;
	}
	return 0;
}

static int read_file(struct arena *arena, const char *path, struct host_watch_set *watches, const char **name,
                     const char **email)
{
	struct stat st;
	host_watch_path(watches, path);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	auto_free char *text = malloc(MAX_FILE);
	if (!text)
		return -1;
	size_t length = 0;
	for (ssize_t got; length < MAX_FILE && (got = read(fd, text + length, MAX_FILE - length)) > 0; )
		length += (size_t)got;
	/* Of a longer file, whole lines. */
	if (length == MAX_FILE)
		while (length && text[length - 1] != '\n')
			length--;
	return git_identity_parse(arena, text, length, name, email);
}

static const char *variable(const char *const *environment, const char *name)
{
	size_t length = strlen(name);
	for (; environment && *environment; environment++)
		if (**environment == *name && !strncmp(*environment, name, length) && (*environment)[length] == '=')
			return (*environment)[length + 1] ? *environment + length + 1 : NULL;
	return NULL;
}

int git_identity(struct arena *arena, const char *home, const char *xdg_config_home, const char *const *environment,
                 struct host_watch_set *watches, const char **ret_name, const char **ret_email,
                 struct cordon_error *err)
{
	const char *name = NULL, *email = NULL, *files[GIT_FILES_MAX];
	const int count = git_files(arena, home, xdg_config_home, environment, files);
	if (count < 0)
		return fail_oom(err);
	for (int i = 0; i < count; i++)
		if (read_file(arena, files[i], watches, &name, &email) < 0)
			return fail_oom(err);
	const char *own_name = variable(environment, "GIT_AUTHOR_NAME");
	const char *own_email = variable(environment, "GIT_AUTHOR_EMAIL");
	if (!email || !*email)
		email = variable(environment, "EMAIL");
	*ret_name = own_name ? own_name : name && *name ? name : NULL;
	*ret_email = own_email ? own_email : email;
	return 0;
}

/* Quoted, so that # ; and blanks are literal; without control characters, so that it stays one line. */
static char *write_value(char *at, const char *key, const char *value)
{
	at = stpcpy(stpcpy(stpcpy(at, "\t"), key), " = \"");
	for (; *value; value++) {
		if ((unsigned char)*value < 0x20 || *value == 0x7f)
			continue;
		if (*value == '"' || *value == '\\')
			*at++ = '\\';
		*at++ = *value;
	}
	return stpcpy(at, "\"\n");
}

const char *git_identity_text(struct arena *arena, const char *name, const char *email)
{
	if (!name && !email)
		return "";
	size_t size = 2 * ((name ? strlen(name) : 0) + (email ? strlen(email) : 0)) + 64;
	char *text = arena_alloc(arena, size), *at = text;
	if (!text)
		return NULL;
	at = stpcpy(at, "[user]\n");
	if (name)
		at = write_value(at, "name", name);
	if (email)
		write_value(at, "email", email);
	return text;
}
