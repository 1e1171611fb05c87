/* Which command lines are for a daemon. The words are judged by the table of options, as the program itself judges them, but no
 * further than needed: whatever is doubtful, or wrong, is left to the program.
 *
 * Rows have no pointers in them, since nothing is relocated yet. */
#include "door/command.h"
#include "entry/entry.h"

#define NAME_SIZE 20

struct row {
	char letter;
	bool takes_value;
	char name[NAME_SIZE];
	unsigned commands;
};

#define IS_TEXT(metavar) _Generic((metavar), char *: true, const char *: true, default: false)
static const struct row rows[] = {
#define OPTION(letter, name, metavar, actor, repeats, completion, values, commands, group, help, more) \
	{ letter, IS_TEXT(metavar), name, commands },
#include "door/options.def"
#undef OPTION
};

/* Of these the program itself has to take care: the daemon has a configuration of its own, and no terminal. */
static const char own[][NAME_SIZE] = { "config", "tty", "no-daemon", "help" };

/* Not in place, where they would be put together with those of the whole program: another page to be had. */
static const char separator[] = "--", session[] = "session", data_home[] = "XDG_DATA_HOME=", home[] = "HOME=";

static bool is_same(const char *one, const char *other, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (one[i] != other[i])
			return false;
	return true;
}

/* Are these `length` bytes the whole name? */
static bool is_name(const char *name, const char *text, size_t length)
{
	return length < NAME_SIZE && is_same(name, text, length) && !name[length];
}

static const struct row *find(const char *word, size_t length)
{
	bool is_short = word[1] != '-';
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!(rows[i].commands & ON_RUN))
			continue;
		if (is_short ? rows[i].letter == word[1] : rows[i].name[0] && is_name(rows[i].name, word + 2, length))
			return &rows[i];
	}
	return NULL;
}

static bool is_own(const struct row *row)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (is_same(row->name, own[i], NAME_SIZE))
			return true;
	return false;
}

static size_t name_length(const char *word)
{
	size_t length = 0;
	while (word[2 + length] && word[2 + length] != '=')
		length++;
	return length;
}

bool entry_wants_daemon(const char *const *words, size_t count)
{
	bool in_session = false;
	for (size_t i = 0; i < count; i++) {
		const char *word = words[i];
		if (word[0] != '-' || !word[1] || (word[1] == '-' && !word[2]))
			break;
		bool is_short = word[1] != '-';
		size_t length = is_short ? 0 : name_length(word);
		const struct row *row = find(word, length);
		if (!row || is_own(row))
			return false;
		bool attached = word[2 + length] != '\0';
		if (attached && !row->takes_value)
			return false;
		if (row->takes_value && !attached && (++i == count || is_same(words[i], separator, sizeof(separator))))
			return false;
		in_session = in_session || is_name(row->name, session, sizeof(session) - 1);
	}
	return in_session;
}

static const char *variable(const char *const *environment, const char *name, size_t length)
{
	for (; *environment; environment++)
		if (is_same(*environment, name, length))
			return *environment + length;
	return NULL;
}

size_t entry_socket_path(const char *const *environment, char *path, size_t size)
{
	static const char ends[2][36] = { "/cordon/daemon.sock", "/.local/share/cordon/daemon.sock" };
	const char *from = variable(environment, data_home, sizeof(data_home) - 1);
	bool named = from && *from == '/';
	size_t length = 0;
	if (!named)
		from = variable(environment, home, sizeof(home) - 1);
	if (!from || *from != '/')
		return 0;
	for (const char *at = from; *at; at++) {
		/* The program takes ".." away before it looks at what is there: that may be another place. */
		if (length + 1 >= size || (at[0] == '/' && at[1] == '.' && at[2] == '.'))
			return 0;
		path[length++] = *at;
	}
	for (const char *at = ends[named ? 0 : 1]; length < size; at++) {
		path[length++] = *at;
		if (!*at)
			return length;
	}
	return 0;
}
