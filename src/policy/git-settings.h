/* What a setting of git can do: one table (git-settings.def) for everything that judges a git configuration. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define GIT_SETTING_ELSEWHERE "would make git write elsewhere"

enum git_setting_class { GIT_SETTING_HARMLESS, GIT_SETTING_REDIRECTS_ONE, GIT_SETTING_REDIRECTS_ALL, GIT_SETTING_RUNS };
enum git_setting_subsection { GIT_SETTING_NONE, GIT_SETTING_SOME, GIT_SETTING_EITHER };
enum git_setting_condition {
	GIT_SETTING_ANY,
	GIT_SETTING_BOOLEAN,            /* what git reads as a boolean */
	GIT_SETTING_TRUE,
	GIT_SETTING_EMPTY,
	GIT_SETTING_NEVER,
	GIT_SETTING_TOOL_NAME,          /* a name without slashes or dots */
	GIT_SETTING_UPDATE_MODE,        /* of submodules, but for a command */
	GIT_SETTING_REF_STORAGE,        /* a kind of it, without a place */
	GIT_SETTING_ADDRESS,            /* of a repository or a remote's name,
		for which git runs none but its own programs */
	GIT_SETTING_ADDRESS_START,      /* the subsection is the start of such an address, whatever follows it */
	GIT_SETTING_CONDITION_MAX
};

struct git_setting_row {
	const char *section;
	enum git_setting_subsection subsection;
	const char *keys;               /* separated by blanks; NULL: every key */
	enum git_setting_condition condition;
	enum git_setting_class class;
	const char *reason;             /* why the setting is not harmless, to be put after its name; or NULL */
};
extern const struct git_setting_row git_setting_rows[];
extern const size_t git_setting_row_count;

/* Section and key in lower case, as git compares them. */
struct git_setting {
	const char *section, *subsection, *key;         /* no subsection: NULL */
	const char *value;                              /* NULL: none was given, which git reads as true */
	bool cut;                                       /* the value continues on the next line */
};
/* What git reads as false. */
bool git_setting_is_false(const char *value);
/* The row that says what the setting does; for one that no row matches, a row of class GIT_SETTING_RUNS. */
const struct git_setting_row *git_setting_find(const struct git_setting *setting);
