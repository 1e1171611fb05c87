/* The table of git's settings, and the conditions on their values: see git-settings.h.
 *
 * A condition holds only for values that git itself, in any version, takes for nothing else. Where git's own parser
 * accepts more (numbers with a unit, say), the condition does not hold, and the setting is judged by a later row or by
 * none. */
#include "policy/git-settings.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

const struct git_setting_row git_setting_rows[] = {
#define SETTING(section, subsection, keys, condition, class, reason) \
	{ section, GIT_SETTING_##subsection, keys, GIT_SETTING_##condition, GIT_SETTING_##class, reason },
#include "policy/git-settings.def"
#undef SETTING
};
const size_t git_setting_row_count = ARRAY_SIZE(git_setting_rows);

static const struct git_setting_row unknown = {
	.subsection = GIT_SETTING_EITHER, .class = GIT_SETTING_RUNS,
	.reason = "is not a setting that is known to be harmless",
};

/* ---- Conditions ------------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *value, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(value, words[i]))
			return true;
	return false;
}

#define DIGITS_MAX 9    /* git takes a number that is too large, or 08, for a word */

static bool is_number(const char *value)
{
	size_t digits = strspn(value, "0123456789");
	return digits && !value[digits] && digits <= DIGITS_MAX && (*value != '0' || digits == 1);
}

static bool is_true(const struct git_setting *setting)
{
	static const char *const words[] = { "true", "yes", "on", "1" };
	return !setting->value || is_one_of(setting->value, words, ARRAY_SIZE(words));
}

static bool is_boolean(const struct git_setting *setting)
{
	static const char *const words[] = { "", "false", "no", "off" };
	return is_true(setting) || is_one_of(setting->value, words, ARRAY_SIZE(words)) || is_number(setting->value);
}

bool git_setting_is_false(const char *value)
{
	static const char *const words[] = { "", "false", "no", "off", "0" };
	return is_one_of(value, words, ARRAY_SIZE(words));
}

static bool is_any(const struct git_setting *setting)
{
	(void)setting;
	return true;
}

static bool is_empty(const struct git_setting *setting)
{
	return setting->value && !*setting->value;
}

static bool is_never(const struct git_setting *setting)
{
	return setting->value && !strcasecmp(setting->value, "never");
}

/* git looks for a file of this name in a directory of its own. */
static bool is_tool_name(const struct git_setting *setting)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const char *value = setting->value;
	return value && *value && *value != '-' && strspn(value, characters) == strlen(value);
}

static bool is_update_mode(const struct git_setting *setting)
{
	static const char *const modes[] = { "checkout", "rebase", "merge", "none" };
	for (size_t i = 0; setting->value && i < ARRAY_SIZE(modes); i++)
		if (!strcmp(setting->value, modes[i]))
			return true;
	return false;
}

static bool is_ref_storage(const struct git_setting *setting)
{
	return setting->value && (!strcmp(setting->value, "files") || !strcmp(setting->value, "reftable"));
}

static bool has_own_scheme(const char *address)
{
	static const char *const schemes[] = {
		"file://", "ftp://", "ftps://", "git://", "git+ssh://", "http://", "https://", "ssh://", "ssh+git://",
	};
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (!strncmp(address, schemes[i], strlen(schemes[i])))
			return address[strlen(schemes[i])] != '-';
	return false;
}

/* What follows the characters that a scheme may have: for `NAME::` and for a `NAME://` that git does not serve itself,
 * it runs the program git-remote-NAME. */
static const char *after_scheme(const char *address)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
	return address + strspn(address, characters);
}

static bool is_address(const struct git_setting *setting)
{
	const char *value = setting->value;
	if (!value || *value == '-')
		return false;
	const char *rest = after_scheme(value);
	return has_own_scheme(value) || (strncmp(rest, "::", 2) && strncmp(rest, "://", 3));
}

/* `ext:` is none: with `:sh` after it, it is an address that runs a program. */
static bool is_address_start(const struct git_setting *setting)
{
	const char *start = setting->subsection;
	if (!start || *start == '-')
		return false;
	const char *rest = after_scheme(start);
	return has_own_scheme(start) || (*rest && *rest != ':');
}

static bool (*const conditions[])(const struct git_setting *setting) = {
	[GIT_SETTING_ANY] = is_any, [GIT_SETTING_BOOLEAN] = is_boolean, [GIT_SETTING_TRUE] = is_true,
	[GIT_SETTING_EMPTY] = is_empty, [GIT_SETTING_NEVER] = is_never, [GIT_SETTING_TOOL_NAME] = is_tool_name,
	[GIT_SETTING_UPDATE_MODE] = is_update_mode, [GIT_SETTING_REF_STORAGE] = is_ref_storage,
	[GIT_SETTING_ADDRESS] = is_address, [GIT_SETTING_ADDRESS_START] = is_address_start,
};
_Static_assert(ARRAY_SIZE(conditions) == GIT_SETTING_CONDITION_MAX, "every condition has a function");

static bool holds(enum git_setting_condition condition, const struct git_setting *setting)
{
	return (condition == GIT_SETTING_ANY || !setting->cut) && conditions[condition](setting);
}

/* ---- Finding a row ---------------------------------------------------------------------------------------------- */

static bool has_key(const char *keys, const char *key)
{
	size_t length = strlen(key);
	for (const char *at = keys; at && *at; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");
		if (word == length && !memcmp(at, key, length))
			return true;
		at += word;
	}
	return !keys;
}

static size_t first_row(const char *section)
{
	size_t low = 0, high = git_setting_row_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(git_setting_rows[middle].section, section) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct git_setting_row *git_setting_find(const struct git_setting *setting)
{
	for (size_t i = first_row(setting->section); i < git_setting_row_count; i++) {
		const struct git_setting_row *row = &git_setting_rows[i];
		if (strcmp(row->section, setting->section))
			break;
		if ((row->subsection == GIT_SETTING_EITHER ||
		     (row->subsection == GIT_SETTING_SOME) == !!setting->subsection) &&
		    has_key(row->keys, setting->key) && holds(row->condition, setting))
			return row;
	}
	return &unknown;
}
