/* One value of a file: is it what its row wants? A function for each type; the table is at the end.
 *
 * A TOML string may have a NUL in it, and none of what is read here may: such a one is refused before it is looked at,
 * so that what is checked is what is used. */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/path-given.h"
#include "base/text.h"
#include "config/parse.h"
#include "host/etc.h"
#include "host/toolchain-table.h"
#include "policy/env.h"
#include "policy/host.h"

#define NO_HOME "~/ cannot be resolved: HOME is not an absolute path"

typedef int (*read_fn)(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       struct config_value *value, struct cordon_error *err);

typedef int (*entry_fn)(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                        const char **ret_entry, struct cordon_error *err);

int config_refuse_type(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       struct cordon_error *err)
{
	bool has_words = *row->values && row->type != CONFIG_TYPE_ENUM,
	     has_one = has_words && !strchr(row->values, ' ');
	return toml_fail(err, reader->file, at, "%s must be %s%s%s%s, and this is %s", row->path,
	                 config_type_texts[row->type],
	                 has_one   ? ", or \"" :
	                 has_words ? ", or one of: " :
	                             "",
	                 has_words ? row->values : "", has_one ? "\"" : "", toml_type_names[at->type]);
}

/* A string without NUL and control characters. */
int config_text_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     struct cordon_error *err)
{
	if (at->type != TOML_STRING)
		return config_refuse_type(reader, row, at, err);
	if (strlen(at->text) != at->length || text_has_control(at->text))
		return toml_fail(err, reader->file, at, "%s has a control character in it", row->path);
	if (!at->length)
		return toml_fail(err, reader->file, at, "%s must not be empty", row->path);
	return 0;
}

int config_fail_word(struct cordon_error *err, const char *file, const struct toml_value *at, const char *word,
                     const struct strings *words, const char *what)
{
	const char *nearest = words->count ? text_nearest(word, words->items, words->count) : NULL;
	toml_fail(err, file, at, "\"%s\" is not %s", word, what);
	return nearest ? fail_remedy(err, "did you mean %s?", nearest) : -1;
}

/* ---- one thing -------------------------------------------------------------------------------------------------- */

static int read_bool(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     struct config_value *value, struct cordon_error *err)
{
	if (at->type != TOML_BOOLEAN)
		return config_refuse_type(reader, row, at, err);
	value->number = at->boolean;
	return 0;
}

static int read_enum(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     struct config_value *value, struct cordon_error *err)
{
	struct strings words;
	if (config_text_read(reader, row, at, err) < 0)
		return -1;
	if (config_row_words(reader->arena, row, &words) < 0)
		return fail_oom(err);
	long found = strings_find(&words, at->text);
	if (found < 0) {
		const char *what = arena_printf(reader->arena, "a value of %s: %s", row->path, row->values);
		return what ? config_fail_word(err, reader->file, at, at->text, &words, what) : fail_oom(err);
	}
	value->number = (uint64_t)found;
	return 0;
}

/* A word that may stand in the place of a number: no limit. */
static bool is_none(const struct config_row *row, const struct toml_value *at)
{
	return at->type == TOML_STRING && *row->values && !strcmp(at->text, row->values);
}

static int read_amount(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       struct config_value *value, struct cordon_error *err)
{
	char least[TEXT_AMOUNT_SIZE], most[TEXT_AMOUNT_SIZE];
	bool (*parse)(const char *, uint64_t *) = row->type == CONFIG_TYPE_SIZE ? text_parse_size : text_parse_duration;
	void (*format)(uint64_t, char *) = row->type == CONFIG_TYPE_SIZE ? text_format_size : text_format_duration;
	uint64_t number = 0, unit = row->type == CONFIG_TYPE_SIZE ? 1 : 1000;
	bool understood = true;
	if (is_none(row, at)) {
		value->number = UINT64_MAX;
		return 0;
	}
	if (at->type == TOML_INTEGER) {
		understood = at->integer >= 0 && !__builtin_mul_overflow((uint64_t)at->integer, unit, &number);
	} else {
		if (config_text_read(reader, row, at, err) < 0)
			return -1;
		understood = parse(at->text, &number);
		if (!understood)
			return toml_fail(err, reader->file, at, "%s must be %s", row->path,
			                 config_type_texts[row->type]);
	}
	if (!understood || number < row->least || number > row->most) {
		format(row->least, least);
		format(row->most, most);
		return toml_fail(err, reader->file, at, "%s must be from %s to %s%s", row->path, least, most,
		                 *row->values ? ", or \"none\"" : "");
	}
	value->number = number;
	return 0;
}

static int read_number(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       struct config_value *value, struct cordon_error *err)
{
	uint64_t number = at->type == TOML_INTEGER && at->integer >= 0 ? (uint64_t)at->integer : UINT64_MAX;
	bool is_percent =
		row->type == CONFIG_TYPE_PERCENT && at->type == TOML_STRING && text_parse_percent(at->text, &number);
	if (is_none(row, at)) {
		value->number = UINT64_MAX;
		return 0;
	}
	if (at->type != TOML_INTEGER && !is_percent)
		return config_refuse_type(reader, row, at, err);
	if (number < row->least || number > row->most)
		return toml_fail(err, reader->file, at, "%s must be from %llu to %llu%s", row->path,
		                 (unsigned long long)row->least, (unsigned long long)row->most,
		                 *row->values ? ", or \"none\"" : "");
	value->number = number;
	return 0;
}

static int expand_path(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                       const char **ret_path, struct cordon_error *err)
{
	if (config_text_read(reader, row, at, err) < 0)
		return -1;
	uncleared char room[PATH_MAX];
	const char *why, *path = path_given(at->text, room, sizeof(room), &why);
	if (!path)
		return toml_fail(err, reader->file, at, "%s: %s", row->path, why);
	if (!strncmp(path, "~/", 2)) {
		if (!reader->home)
			return toml_fail(err, reader->file, at, NO_HOME);
		path = arena_printf(reader->arena, "%s/%s", reader->home, path + 2);
		if (!path)
			return fail_oom(err);
	}
	if (*path != '/') {
		toml_fail(err, reader->file, at, "%s: \"%s\" is neither absolute nor does it begin with ~/", row->path,
		          path);
		return fail_remedy(err, "write the whole path, such as /data/corpus or ~/reference");
	}
	if (strlen(path) >= PATH_MAX)
		return toml_fail(err, reader->file, at, "the path is too long");
	*ret_path = path_normalise(reader->arena, path);
	return *ret_path ? 0 : fail_oom(err);
}

static int read_path(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     struct config_value *value, struct cordon_error *err)
{
	struct strings words;
	if (config_row_words(reader->arena, row, &words) < 0)
		return fail_oom(err);
	if (at->type == TOML_STRING && strings_find(&words, at->text) >= 0) {
		value->text = at->text;
		return 0;
	}
	return expand_path(reader, row, at, &value->text, err);
}

/* ---- entries of lists ------------------------------------------------------------------------------------------- */

/* The home directory as a glob: its special characters are escaped. */
static const char *home_in_glob(const struct config_reader *reader, const char *rest)
{
	char *text = arena_alloc(reader->arena, 2 * strlen(reader->home) + strlen(rest) + 2), *out = text;
	if (!text)
		return NULL;
	for (const char *at = reader->home; *at; *out++ = *at++)
		if (strchr("*?[\\", *at))
			*out++ = '\\';
	*out++ = '/';
	memcpy(out, rest, strlen(rest) + 1);
	return text;
}

int config_expand_glob(const struct config_reader *reader, const struct toml_value *at, const char **ret_glob,
                       struct cordon_error *err)
{
	const char *glob = at->text;
	if (glob[0] == '~' && glob[1] == '/') {
		if (!reader->home)
			return toml_fail(err, reader->file, at, NO_HOME);
		glob = home_in_glob(reader, glob + 2);
	}
	*ret_glob = glob;
	return glob ? 0 : fail_oom(err);
}

static int read_plain(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *value, struct cordon_error *err)
{
	value->text = at->text;
	return config_text_read(reader, row, at, err);
}

static int read_name(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     struct config_value *value, struct cordon_error *err)
{
	struct cordon_error why;
	if (read_plain(reader, row, at, value, err) < 0)
		return -1;
	return env_check_name(at->text, at->length, &why) < 0 ?
	               toml_fail(err, reader->file, at, "%s: %s", row->path, why.reason) :
	               0;
}

/* A program and its arguments. */
static int read_words(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *value, struct cordon_error *err)
{
	if (at->type != TOML_ARRAY)
		return config_refuse_type(reader, row, at, err);
	if (!at->count || at->count > 64)
		return toml_fail(err, reader->file, at, "%s must have from 1 to 64 words", row->path);
	for (size_t i = 0; i < at->count; i++) {
		const char *word = at->items[i]->text;
		if (config_text_read(reader, row, at->items[i], err) < 0 ||
		    (!i && expand_path(reader, row, at->items[i], &word, err) < 0))
			return -1;
		if (strings_add(reader->arena, &value->list, word) < 0)
			return fail_oom(err);
	}
	return 0;
}

static int read_glob_entry(const struct config_reader *reader, const struct config_row *row,
                           const struct toml_value *at, const char **ret_entry, struct cordon_error *err)
{
	struct cordon_error why;
	struct glob glob;
	if (config_expand_glob(reader, at, ret_entry, err) < 0)
		return -1;
	if (glob_compile(reader->arena, *ret_entry + (**ret_entry == '!'), 0, &glob, &why) < 0)
		return toml_fail(err, reader->file, at, "%s: %s", row->path, why.reason);
	if (glob.absolute && row == &config_rows[KEY_capabilities_protect])
		return toml_fail(err, reader->file, at,
		                 "%s takes names relative to what is writable, and this is absolute", row->path);
	return 0;
}

static int read_etc_entry(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                          const char **ret_entry, struct cordon_error *err)
{
	if (expand_path(reader, row, at, ret_entry, err) < 0)
		return -1;
	const char *why = etc_refuses(*ret_entry);
	return why ? toml_fail(err, reader->file, at, "%s: \"%s\": %s", row->path, at->text, why) : 0;
}

static int read_name_entry(const struct config_reader *reader, const struct config_row *row,
                           const struct toml_value *at, const char **ret_entry, struct cordon_error *err)
{
	struct cordon_error why;
	(void)row;
	*ret_entry = at->text;
	return env_check_pattern(at->text, &why) < 0 ? toml_fail(err, reader->file, at, "%s", why.reason) : 0;
}

static int read_toolchain_entry(const struct config_reader *reader, const struct config_row *row,
                                const struct toml_value *at, const char **ret_entry, struct cordon_error *err)
{
	struct strings one = { 0 };
	struct cordon_error why;
	(void)row;
	if (strings_add(reader->arena, &one, at->text) < 0)
		return fail_oom(err);
	*ret_entry = at->text;
	if (toolchain_check_chosen(&one, &why) == 0)
		return 0;
	toml_fail(err, reader->file, at, "\"%s\" %s", at->text, why.reason);
	return fail_remedy(err, "%s", why.remediation);
}

static int read_limit_entry(const struct config_reader *reader, const struct config_row *row,
                            const struct toml_value *at, const char **ret_entry, struct cordon_error *err)
{
	struct strings words = { 0 };
	for (const struct config_limit *limit = config_limits; limit->name; limit++)
		if (strings_add(reader->arena, &words, limit->name) < 0)
			return fail_oom(err);
	*ret_entry = at->text;
	if (strings_find(&words, at->text) >= 0)
		return 0;
	const char *what = arena_printf(reader->arena, "a limit that %s can have", row->path);
	return what ? config_fail_word(err, reader->file, at, at->text, &words, what) : fail_oom(err);
}

int config_host_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     const char **ret_entry, struct cordon_error *err)
{
	struct host host;
	char text[HOST_TEXT_SIZE];
	const char *why = host_parse_rule(at->text, at->length, &host);
	if (why) {
		toml_fail(err, reader->file, at, "%s: \"%s\" is not HOST:PORT: %s", row->path, at->text, why);
		return fail_remedy(err,
		                   "write such as \"example.com:443\", \"*.example.com:443\" or \"[2001:db8::1]:22\"");
	}
	host_text(&host, text);
	*ret_entry = arena_strdup(reader->arena, text);
	return *ret_entry ? 0 : fail_oom(err);
}

static int read_named_host_entry(const struct config_reader *reader, const struct config_row *row,
                                 const struct toml_value *at, const char **ret_entry, struct cordon_error *err)
{
	struct host host;
	char text[HOST_TEXT_SIZE];
	const char *why = host_parse_name_port(at->text, at->length, &host);
	if (why)
		return toml_fail(err, reader->file, at, "%s: \"%s\" is not NAME:PORT: %s", row->path, at->text, why);
	host_text(&host, text);
	*ret_entry = arena_strdup(reader->arena, text);
	return *ret_entry ? 0 : fail_oom(err);
}

static int read_range_entry(const struct config_reader *reader, const struct config_row *row,
                            const struct toml_value *at, const char **ret_entry, struct cordon_error *err)
{
	struct address_range range;
	struct cordon_error why;
	*ret_entry = at->text;
	if (address_exemption_parse(at->text, &range, &why) < 0)
		return toml_fail(err, reader->file, at, "%s: \"%s\": %s", row->path, at->text, why.reason);
	return 0;
}

/* Every kind of the table, and the caller's own. */
static const char *const secret_kinds[] = {
#define SECRET_ROW(name, ...) name,
#include "secrets/kinds.def"
#undef SECRET_ROW
	"own",
};

static int read_kind_entry(const struct config_reader *reader, const struct config_row *row,
                           const struct toml_value *at, const char **ret_entry, struct cordon_error *err)
{
	struct strings words = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(secret_kinds); i++)
		if (strings_find(&words, secret_kinds[i]) < 0 &&
		    strings_add(reader->arena, &words, secret_kinds[i]) < 0)
			return fail_oom(err);
	(void)row;
	*ret_entry = at->text;
	return strings_find(&words, at->text) >= 0
	               ? 0 : config_fail_word(err, reader->file, at, at->text, &words, "a kind of secret");
}

/* In the place of a list may stand one of the row's words. */
static int read_list(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                     struct config_value *value, struct cordon_error *err)
{
	static const entry_fn entry_readers[CONFIG_TYPE_MAX] = {
		[CONFIG_TYPE_PATHS] = expand_path,
		[CONFIG_TYPE_ETC] = read_etc_entry,
		[CONFIG_TYPE_GLOBS] = read_glob_entry,
		[CONFIG_TYPE_NAMES] = read_name_entry,
		[CONFIG_TYPE_TOOLCHAINS] = read_toolchain_entry,
		[CONFIG_TYPE_LIMITS] = read_limit_entry,
		[CONFIG_TYPE_KINDS] = read_kind_entry,
		[CONFIG_TYPE_HOSTS] = config_host_read,
		[CONFIG_TYPE_NAMED_HOSTS] = read_named_host_entry,
		[CONFIG_TYPE_RANGES] = read_range_entry,
	};
	const entry_fn read_entry = entry_readers[row->type];
	if (at->type == TOML_STRING && *row->values) {
		if (read_enum(reader, row, at, value, err) < 0)
			return -1;
		value->number++;
		return 0;
	}
	if (at->type != TOML_ARRAY || !read_entry)
		return config_refuse_type(reader, row, at, err);
	if (at->count > CONFIG_LIST_MAX)
		return toml_fail(err, reader->file, at, "%s has more than %d entries", row->path, CONFIG_LIST_MAX);
	for (size_t i = 0; i < at->count; i++) {
		const char *entry = NULL;
		if (config_text_read(reader, row, at->items[i], err) < 0 ||
		    read_entry(reader, row, at->items[i], &entry, err) < 0)
			return -1;
		if (strings_add(reader->arena, &value->list, entry) < 0)
			return fail_oom(err);
	}
	return 0;
}

int config_value_read(const struct config_reader *reader, const struct config_row *row, const struct toml_value *at,
                      struct config_value *ret_value, struct cordon_error *err)
{
	static const read_fn readers[] = {
		[CONFIG_TYPE_BOOL] = read_bool,
		[CONFIG_TYPE_ENUM] = read_enum,
		[CONFIG_TYPE_PATH] = read_path,
		[CONFIG_TYPE_PATHS] = read_list,
		[CONFIG_TYPE_ETC] = read_list,
		[CONFIG_TYPE_GLOBS] = read_list,
		[CONFIG_TYPE_NAMES] = read_list,
		[CONFIG_TYPE_TOOLCHAINS] = read_list,
		[CONFIG_TYPE_LIMITS] = read_list,
		[CONFIG_TYPE_KINDS] = read_list,
		[CONFIG_TYPE_HOSTS] = read_list,
		[CONFIG_TYPE_NAMED_HOSTS] = read_list,
		[CONFIG_TYPE_RANGES] = read_list,
		[CONFIG_TYPE_ADDRESSES] = config_addresses_read,
		[CONFIG_TYPE_GROUPS] = config_groups_read,
		[CONFIG_TYPE_SIZE] = read_amount,
		[CONFIG_TYPE_DURATION] = read_amount,
		[CONFIG_TYPE_NUMBER] = read_number,
		[CONFIG_TYPE_PERCENT] = read_number,
		[CONFIG_TYPE_VARIABLES] = config_variables_read,
		[CONFIG_TYPE_TEXT] = read_plain,
		[CONFIG_TYPE_NAME] = read_name,
		[CONFIG_TYPE_WORDS] = read_words,
		[CONFIG_TYPE_RULES] = config_rules_read,
	};
	_Static_assert(ARRAY_SIZE(readers) == CONFIG_TYPE_MAX, "every type has a reader");
	return readers[row->type](reader, row, at, ret_value, err);
}
