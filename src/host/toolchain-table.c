/* toolchains.def is read three times: as rows, as aliases, and as the names that a person may choose from. */
#include "host/toolchain-table.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "host/toolchain.h"

#define WORDS(...) (const char *const[]){ __VA_ARGS__, NULL }
#define PLACES WORDS
#define MARKERS WORDS
#define SHOW WORDS
#define SET WORDS
#define MASK WORDS
#define NOTHING (const char *const[]){ NULL }

static const struct toolchain rows[] = {
#define TOOLCHAIN(name, ...) { name, __VA_ARGS__ },
#define ALSO(name, ...) { name, __VA_ARGS__ },
#define ALIAS(name, of)
#include "host/toolchains.def"
#undef TOOLCHAIN
#undef ALSO
#undef ALIAS
};

static const struct {
	const char *name, *of;
} aliases[] = {
#define TOOLCHAIN(...)
#define ALSO(...)
#define ALIAS(name, of) { name, of },
#include "host/toolchains.def"
#undef TOOLCHAIN
#undef ALSO
#undef ALIAS
};

static const char *const names[] = {
#define TOOLCHAIN(name, ...) name,
#define ALSO(...)
#define ALIAS(name, of) name,
#include "host/toolchains.def"
#undef TOOLCHAIN
#undef ALSO
#undef ALIAS
};

const struct toolchain *toolchain_rows(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(rows);
	return rows;
}

const char *const *toolchain_names(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(names);
	return names;
}

static const char *unalias(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (!strcmp(aliases[i].name, name))
			return aliases[i].of;
	return name;
}

bool toolchain_is_chosen(const struct strings *chosen, const char *name)
{
	for (size_t i = 0; chosen && i < chosen->count; i++)
		if (!strcmp(unalias(chosen->items[i]), name))
			return true;
	return !chosen;
}

int toolchain_check_chosen(const struct strings *chosen, struct cordon_error *err)
{
	for (size_t i = 0; chosen && i < chosen->count; i++) {
		const char *name = chosen->items[i];
		bool known = false;
		for (size_t j = 0; j < ARRAY_SIZE(names) && !known; j++)
			known = !strcmp(names[j], name);
		if (known)
			continue;
		const char *nearest = text_nearest(name, names, ARRAY_SIZE(names));
		fail(err, CORDON_E_INVALID_REQUEST, 0, name, "is not a toolchain that cordon knows");
		return nearest ? fail_remedy(err, "did you mean \"%s\"?", nearest)
		               : fail_remedy(err, "one of those that cordon(1) lists, such as \"%s\"", names[0]);
	}
	return 0;
}
