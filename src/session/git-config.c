/* git's configuration syntax, read as git reads it (its config.c), and a table of the keys that run something.
 *
 * Names are section.subsection.key: section and key whatever the case, the subsection exact. Values may be quoted,
 * escaped and continued over lines. One pass, no allocation: a name that does not fit is refused, a value is kept as far as
 * any condition looks at it. */
#include "session/git-config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/sha256.h"

#define NAME_MAX_LENGTH 1024
#define VALUE_MAX_LENGTH 4096

enum subsection { NONE, SOME, EITHER };
enum condition { ANY_VALUE, SHELL_VALUE, NOT_BOOLEAN, EXT_VALUE, EXT_SUBSECTION, NOT_NEVER };

static const char runs[] = "would run a program";

/* Knowingly excluded: core.attributesFile, diff.tool, merge.tool, web.browser and the like only choose among what other
 * rows define; commit.template, core.excludesFile, mailmap.file are read, not run; safe.* is not heeded here. */
static const struct row {
	const char *section;
	enum subsection subsection;
	const char *key;                /* NULL: any */
	enum condition condition;
	const char *reason;
} rows[] = {
	{ "core", NONE, "fsmonitor", NOT_BOOLEAN, runs },
	{ "core", NONE, "sshcommand", ANY_VALUE, runs },
	{ "core", NONE, "pager", ANY_VALUE, runs },
	{ "core", NONE, "editor", ANY_VALUE, runs },
	{ "core", NONE, "askpass", ANY_VALUE, runs },
	{ "core", NONE, "gitproxy", ANY_VALUE, runs },
	{ "core", NONE, "alternaterefscommand", ANY_VALUE, runs },
	{ "core", NONE, "virtualfilesystem", ANY_VALUE, runs },
	{ "core", NONE, "hookspath", ANY_VALUE, "would run hooks from another directory" },
	{ "init", NONE, "templatedir", ANY_VALUE, "would put hooks into new repositories" },
	{ "sequence", NONE, "editor", ANY_VALUE, runs },
	{ "pager", EITHER, NULL, NOT_BOOLEAN, runs },
	{ "interactive", NONE, "difffilter", ANY_VALUE, runs },
	/* without a `!`, too: the options of grep and rebase, and `-c`, do so */
	{ "alias", EITHER, NULL, ANY_VALUE, "could run a program" },
	/* a line of what is to be done per line of it */
	{ "rebase", NONE, "instructionformat", ANY_VALUE, "could run a program" },
	{ "hook", SOME, "command", ANY_VALUE, runs },
	{ "filter", SOME, "clean", ANY_VALUE, runs },
	{ "filter", SOME, "smudge", ANY_VALUE, runs },
	{ "filter", SOME, "process", ANY_VALUE, runs },
	{ "diff", NONE, "external", ANY_VALUE, runs },
	{ "diff", SOME, "command", ANY_VALUE, runs },
	{ "diff", SOME, "textconv", ANY_VALUE, runs },
	{ "merge", SOME, "driver", ANY_VALUE, runs },
	{ "mergetool", SOME, "cmd", ANY_VALUE, runs },
	{ "mergetool", SOME, "path", ANY_VALUE, runs },
	{ "mergetool", SOME, "layout", ANY_VALUE, "could run a program" },
	{ "difftool", SOME, "cmd", ANY_VALUE, runs },
	{ "difftool", SOME, "path", ANY_VALUE, runs },
	{ "guitool", SOME, "cmd", ANY_VALUE, runs },
	{ "browser", SOME, "cmd", ANY_VALUE, runs },
	{ "browser", SOME, "path", ANY_VALUE, runs },
	{ "man", SOME, "cmd", ANY_VALUE, runs },
	{ "man", SOME, "path", ANY_VALUE, runs },
	{ "instaweb", NONE, "browser", ANY_VALUE, runs },
	{ "instaweb", NONE, "httpd", ANY_VALUE, runs },
	{ "credential", EITHER, "helper", ANY_VALUE, runs },
	{ "gpg", EITHER, "program", ANY_VALUE, runs },
	{ "gpg", EITHER, "defaultkeycommand", ANY_VALUE, runs },
	{ "trailer", SOME, "command", ANY_VALUE, runs },
	{ "trailer", SOME, "cmd", ANY_VALUE, runs },
	{ "tar", SOME, "command", ANY_VALUE, runs },
	{ "gc", NONE, "recentobjectshook", ANY_VALUE, runs },
	{ "uploadpack", NONE, "packobjectshook", ANY_VALUE, runs },
	{ "imap", EITHER, "tunnel", ANY_VALUE, runs },
	{ "sendemail", EITHER, "smtpserver", ANY_VALUE, runs },
	{ "sendemail", EITHER, "sendmailcmd", ANY_VALUE, runs },
	{ "sendemail", EITHER, "tocmd", ANY_VALUE, runs },
	{ "sendemail", EITHER, "cccmd", ANY_VALUE, runs },
	{ "sendemail", EITHER, "headercmd", ANY_VALUE, runs },
	{ "svn", EITHER, "authorsprog", ANY_VALUE, runs },
	{ "lfs", SOME, "path", ANY_VALUE, runs },
	{ "lfs", SOME, "clean", ANY_VALUE, runs },
	{ "lfs", SOME, "smudge", ANY_VALUE, runs },
	{ "submodule", SOME, "update", SHELL_VALUE, runs },
	{ "remote", SOME, "uploadpack", ANY_VALUE, runs },
	{ "remote", SOME, "receivepack", ANY_VALUE, runs },
	{ "remote", SOME, "vcs", ANY_VALUE, runs },
	{ "remote", SOME, "url", EXT_VALUE, runs },
	{ "remote", SOME, "pushurl", EXT_VALUE, runs },
	{ "submodule", SOME, "url", EXT_VALUE, runs },
	{ "url", SOME, "insteadof", EXT_SUBSECTION, runs },
	{ "url", SOME, "pushinsteadof", EXT_SUBSECTION, runs },
	{ "protocol", EITHER, "allow", NOT_NEVER, "would let an address run a program" },
	{ "include", NONE, "path", ANY_VALUE, "would read more configuration" },
	{ "includeif", SOME, "path", ANY_VALUE, "would read more configuration" },
};

struct reader {
	const unsigned char *at, *end;
	bool ended;
	char name[NAME_MAX_LENGTH];     /* section, subsection and key, with dots */
	size_t length, base;            /* of the name, and of its part up to the last dot */
	char value[VALUE_MAX_LENGTH];
	size_t value_length;
	bool cut;                       /* it was longer */
};

/* As git's get_next_char(): CR LF is one newline, and the end is a newline too. */
static int next(struct reader *reader)
{
	if (reader->at == reader->end) {
		reader->ended = true;
		return '\n';
	}
	int byte = *reader->at++;
	if (byte == '\r' && reader->at < reader->end && *reader->at == '\n')
		byte = *reader->at++;
	return byte;
}

static int lower(int byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
}

static bool is_letter(int byte)
{
	return lower(byte) >= 'a' && lower(byte) <= 'z';
}

static bool is_key(int byte)
{
	return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '-';
}

static bool is_space(int byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool add_to_name(struct reader *reader, int byte)
{
	if (reader->length + 1 >= sizeof(reader->name))
		return false;
	reader->name[reader->length++] = (char)byte;
	reader->name[reader->length] = '\0';
	return true;
}

static void add_to_value(struct reader *reader, int byte)
{
	if (reader->value_length + 1 < sizeof(reader->value))
		reader->value[reader->value_length++] = (char)byte;
	else
		reader->cut = true;
	reader->value[reader->value_length] = '\0';
}

static bool read_subsection(struct reader *reader, int byte)
{
	while (is_space(byte)) {
		if (byte == '\n')
			return false;
		byte = next(reader);
	}
	if (byte != '"' || !add_to_name(reader, '.'))
		return false;
	for (;;) {
		byte = next(reader);
		if (byte == '"')
			return next(reader) == ']';
		if (byte == '\\')
			byte = next(reader);
		if (byte == '\n' || !add_to_name(reader, byte))
			return false;
	}
}

static bool read_section(struct reader *reader)
{
	reader->length = 0;
	for (;;) {
		int byte = next(reader);
		if (reader->ended)
			return false;
		if (byte == ']')
			break;
		if (is_space(byte)) {
			if (!read_subsection(reader, byte))
				return false;
			break;
		}
		if ((!is_key(byte) && byte != '.') || !add_to_name(reader, lower(byte)))
			return false;
	}
	if (!reader->length || !add_to_name(reader, '.'))
		return false;
	reader->base = reader->length;
	return true;
}

static int unescape(int byte)
{
	static const char from[] = "tbn\\\"", to[] = "\t\b\n\\\"";
	const char *found = byte ? strchr(from, byte) : NULL;
	return found ? to[found - from] : -1;
}

static bool read_value(struct reader *reader)
{
	bool quoted = false, comment = false;
	size_t spaces = 0;
	for (;;) {
		int byte = next(reader);
		if (byte == '\n')
			return !quoted;
		if (comment)
			continue;
		if (is_space(byte) && !quoted) {
			spaces += reader->value_length ? 1 : 0;
			continue;
		}
		if (!quoted && (byte == ';' || byte == '#')) {
			comment = true;
			continue;
		}
		for (; spaces; spaces--)
			add_to_value(reader, ' ');
		if (byte == '"') {
			quoted = !quoted;
			continue;
		}
		if (byte == '\\') {
			byte = next(reader);
			if (byte == '\n')
				continue;
			byte = unescape(byte);
			if (byte < 0)
				return false;
		}
		add_to_value(reader, byte);
	}
}

static bool read_setting(struct reader *reader, int byte)
{
	reader->length = reader->base;
	reader->value_length = 0;
	reader->cut = false;
	reader->value[0] = '\0';
	for (; is_key(byte); byte = next(reader))
		if (!add_to_name(reader, lower(byte)))
			return false;
	while (byte == ' ' || byte == '\t')
		byte = next(reader);
	return byte == '\n' || (byte == '=' && read_value(reader));
}

/* ---- Judging ---------------------------------------------------------------------------------------------------- */

#define DIGITS_MAX 9    /* what is no number to git is a program */

static bool is_boolean(const char *value)
{
	static const char *const words[] = { "true", "yes", "on", "false", "no", "off" };
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(value, words[i]))
			return true;
	return strlen(value) <= DIGITS_MAX && strspn(value, "0123456789") == strlen(value);
}

static bool holds(enum condition condition, const char *subsection, const char *value)
{
	if (!*value)
		return false;           /* unsets what came before, or is an error */
	switch (condition) {
	case SHELL_VALUE:
		return *value == '!';
	case NOT_BOOLEAN:
		return !is_boolean(value);
	case EXT_VALUE:
		return !strncmp(value, "ext::", 5);
	case EXT_SUBSECTION:
		return !strncmp(subsection, "ext::", 5);
	case NOT_NEVER:
		return strcasecmp(value, "never") && (!*subsection || !strcmp(subsection, "ext"));
	default:
		return true;
	}
}

/* The name in its three parts; the subsection may hold dots of its own. */
static const struct row *judge_setting(struct reader *reader)
{
	char *section = reader->name, *dot = strchr(section, '.'), *last = strrchr(section, '.');
	if (!dot)
		return NULL;
	bool has_subsection = last != dot;
	const struct row *found = NULL;
	*dot = *last = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(rows) && !found; i++)
		if (!strcmp(rows[i].section, section) && (!rows[i].key || !strcmp(rows[i].key, last + 1)) &&
		    (rows[i].subsection == EITHER || (rows[i].subsection == SOME) == has_subsection) &&
		    holds(rows[i].condition, has_subsection ? dot + 1 : "", reader->value))
			found = &rows[i];
	*dot = *last = '.';
	return found;
}

static void condemn(struct git_config_verdict *verdict, const char *key, const char *reason)
{
	if (verdict->reason)
		return;
	snprintf(verdict->key, sizeof(verdict->key), "%.*s", (int)sizeof(verdict->key) - 1, key);
	verdict->reason = reason;
}

/* With the lengths, lest one setting's text be taken for two. */
static void add_to_digest(crypto_hash_sha256_state *state, const struct reader *reader)
{
	const uint64_t lengths[] = { reader->length, reader->value_length };
	sha256_update(state, lengths, sizeof(lengths));
	sha256_update(state, reader->name, reader->length);
	sha256_update(state, reader->value, reader->value_length);
}

/* The last one counts for git; where there are two that differ, none does here. */
static void take_worktree(struct git_config_verdict *verdict, const struct reader *reader, bool may_be)
{
	size_t size = reader->value_length + 1;
	bool differs = *verdict->worktree && strcmp(verdict->worktree, reader->value);
	if (may_be && !differs && *reader->value != '~' && size <= sizeof(verdict->worktree))
		memcpy(verdict->worktree, reader->value, size);
	else
		condemn(verdict, reader->name, GIT_CONFIG_ELSEWHERE);
}

static void take_setting(struct git_config_verdict *verdict, crypto_hash_sha256_state *digest, struct reader *reader,
                         bool may_have_worktree)
{
	const struct row *row = judge_setting(reader);
	bool is_worktree = !strcmp(reader->name, "core.worktree") && *reader->value;
	if (!row && !is_worktree)
		return;
	if (is_worktree)
		take_worktree(verdict, reader, may_have_worktree);
	else
		condemn(verdict, reader->name, row->reason);
	add_to_digest(digest, reader);
	verdict->comparable &= !reader->cut;
}

void git_config_judge(const char *text, size_t length, bool may_have_worktree, struct git_config_verdict *ret_verdict)
{
	struct git_config_verdict verdict = { .comparable = true };
	struct reader reader = { .at = (const unsigned char *)text, .end = (const unsigned char *)text + length };
	crypto_hash_sha256_state digest;
	bool comment = false, sound = length <= GIT_CONFIG_SIZE_MAX && !memchr(text, '\0', length);
	crypto_hash_sha256_init(&digest);
	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		reader.at += 3;
	while (sound && !reader.ended) {
		int byte = next(&reader);
		if (byte == '\n')
			comment = false;
		if (comment || is_space(byte))
			continue;
		if (byte == '#' || byte == ';') {
			comment = true;
		} else if (byte == '[') {
			sound = read_section(&reader);
		} else {
			sound = is_letter(byte) && read_setting(&reader, byte);
			if (sound)
				take_setting(&verdict, &digest, &reader, may_have_worktree);
		}
	}
	if (!sound) {
		condemn(&verdict, "the file", "is not a git configuration that can be judged");
		verdict.comparable = false;
	}
	sha256_final(&digest, verdict.digest);
	*ret_verdict = verdict;
}
