/* A command's environment decides which code programs load and which files they trust, so nothing is inherited: a few
 * names come from the caller, the rest is asked for by name.
 *
 * Some variables make a program run other code than its command line says; what a human approved would not be what
 * runs. They are refused from every source, whatever the case, since some systems fold it. The caller's own environment
 * is not a source but where names are taken from: LD_PRELOAD there is just not taken.
 *
 * Knowingly not refused: PYTHONHOME, JAVA_TOOL_OPTIONS, GOFLAGS, RUSTFLAGS, GIT_SSH_COMMAND, EDITOR, GLIBC_TUNABLES and
 * the like. Toolchains need them, there is no end to that list, and the walls hold whatever a variable says.
 * LD_ and DYLD_ are refused as a whole: that is the loader's own name space, it grows with it, and no tool needs it. */
#include "policy/env.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define NO_PROXY "localhost,127.0.0.1,::1"
#define STRING_MAX (32 * 4096)          /* MAX_ARG_STRLEN: execve() passes no longer string, its NUL included */

/* A name that ends in '*' is a prefix. */
static const struct {
	const char *name, *reason;
} refused[] = {
	{ "LD_*",
	  "it makes the dynamic loader load other code into every program" }, /* PRELOAD, LIBRARY_PATH, AUDIT … */
	{ "DYLD_*", "it makes the dynamic loader load other code into every program" },
	{ "PYTHONPATH", "it makes Python import other modules than the program's own" },
	{ "PYTHONSTARTUP", "it makes Python run a file first" },
	{ "NODE_OPTIONS", "it makes Node.js load other modules first" },
	{ "RUBYOPT", "it makes Ruby load other files first" },
	{ "PERL5OPT", "it makes Perl load other modules first" },
	{ "PERL5LIB", "it makes Perl use other modules than the program's own" },
	{ "BASH_ENV", "it makes bash run a file first" },
	{ "ENV", "it makes sh run a file first" },
	{ "GCONV_PATH", "it makes the C library load other code for converting text" },
	{ "CORDON_*", "such names are set by cordon only" },
};

/* Of a system whose names are compared without case, and of one whose programs do not start without some of them: see
 * base/windows/system.h. */
#ifndef SYSTEM_COMPARE_NAMES
#define SYSTEM_COMPARE_NAMES strncmp
#define SYSTEM_ENV_NAMES
#endif

static const char *const from_caller[] = { "PATH",        "LANG", "LC_*",   "TERM",  "COLORTERM", "NO_COLOR",
					   "FORCE_COLOR", "CI",   "EDITOR", "PAGER", "TZ",        SYSTEM_ENV_NAMES };

static bool matches(const char *pattern, const char *name, size_t length)
{
	size_t size = strlen(pattern);
	if (pattern[size - 1] == '*')
		return length >= size - 1 && !strncasecmp(name, pattern, size - 1);
	return length == size && !strncasecmp(name, pattern, size);
}

/* The name as it can be shown: no value, nothing that moves a cursor. */
static int refuse(const char *name, size_t length, const char *reason, struct cordon_error *err)
{
	char shown[sizeof(err->subject)];
	if (length >= sizeof(shown))
		length = sizeof(shown) - 1;
	for (size_t i = 0; i < length; i++)
		shown[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
	shown[length] = '\0';
	fail(err, CORDON_E_INVALID_REQUEST, 0, shown, "the environment variable '%s' is refused: %s", shown, reason);
	fail_remedy(err, "leave it out, or write it as NAME=VALUE with a name of letters, digits and '_'");
	return fail_boundary(err, "environment");
}

int env_check_name(const char *name, size_t length, struct cordon_error *err)
{
	if (!length)
		return refuse(name, length, "its name is empty", err);
	for (size_t i = 0; i < length; i++) {
		if (name[i] == '=')
			return refuse(name, i, "its name contains '='", err);
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return refuse(name, length, "its name contains a control character", err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (!matches(refused[i].name, name, length))
			continue;
		refuse(name, length, refused[i].reason, err);
		return fail_remedy(err, "leave it out; a command can still set it for its own children");
	}
	return 0;
}

static const char **find(const struct strings *environment, const char *name, size_t length)
{
	for (size_t i = 0; i < environment->count; i++)
		if (!SYSTEM_COMPARE_NAMES(environment->items[i], name, length) && environment->items[i][length] == '=')
			return &environment->items[i];
	return NULL;
}

/* `text` is NAME=VALUE, in the arena or outliving it. */
static int put(struct arena *arena, struct strings *environment, const char *text, size_t name_length,
               struct cordon_error *err)
{
	if (!text)
		return fail_oom(err);
	if (strlen(text) >= STRING_MAX)
		return refuse(text, name_length, "its value is longer than the kernel passes on (128 KiB)", err);
	const char **slot = find(environment, text, name_length);
	if (slot)
		*slot = text;
	else if (strings_add(arena, environment, text) < 0)
		return fail_oom(err);
	return 0;
}

static int add_from_caller(struct arena *arena, char *const *caller, struct strings *environment,
                           struct cordon_error *err)
{
	for (; caller && *caller; caller++) {
		size_t length = strcspn(*caller, "=");
		for (size_t i = 0; i < ARRAY_SIZE(from_caller); i++) {
			/* Exactly as spelt, where matches() folds the case; and the first, as getenv() has it. */
			if (**caller != *from_caller[i])
				continue;
			size_t size = strcspn(from_caller[i], "*");
			if (!(*caller)[length] || !matches(from_caller[i], *caller, length) ||
			    strncmp(from_caller[i], *caller, size) || find(environment, *caller, length) ||
			    env_check_name(*caller, length, NULL) < 0)
				continue;
			if (put(arena, environment, arena_strdup(arena, *caller), length, err) < 0)
				return -1;
		}
	}
	return 0;
}

int env_check_pattern(const char *pattern, struct cordon_error *err)
{
	size_t length = strlen(pattern);
	const char *star = strchr(pattern, '*');
	if (star && (star[1] || star == pattern))
		return refuse(pattern, length, "a '*' is only allowed at the end of a non-empty prefix", err);
	return env_check_name(pattern, length, err);
}

/* Every variable of the caller's that begins so; of these, such as a request cannot name are left out. */
static int add_prefix(struct arena *arena, char *const *caller, const char *prefix, size_t length,
                      struct strings *environment, struct cordon_error *err)
{
	for (char *const *at = caller; at && *at; at++) {
		size_t name_length = strcspn(*at, "=");
		if (SYSTEM_COMPARE_NAMES(*at, prefix, length) || !(*at)[name_length] || !strncmp(*at, "PATH=", 5) ||
		    env_check_name(*at, name_length, NULL) < 0)
			continue;
		if (put(arena, environment, arena_strdup(arena, *at), name_length, err) < 0)
			return -1;
	}
	return 0;
}

static int add_passthrough(struct arena *arena, char *const *caller, const struct strings *names,
                           struct strings *environment, struct cordon_error *err)
{
	for (size_t i = 0; names && i < names->count; i++) {
		const char *name = names->items[i];
		size_t length = strlen(name);
		if (env_check_pattern(name, err) < 0)
			return -1;
		if (name[length - 1] == '*') {
			if (add_prefix(arena, caller, name, length - 1, environment, err) < 0)
				return -1;
			continue;
		}
		/* Taken already; taking it again would undo what toolchains added. */
		if (!strcmp(name, "PATH"))
			continue;
		for (char *const *at = caller; at && *at; at++) {
			if (SYSTEM_COMPARE_NAMES(*at, name, length) || (*at)[length] != '=')
				continue;
			if (put(arena, environment, arena_strdup(arena, *at), length, err) < 0)
				return -1;
			break;
		}
	}
	return 0;
}

static int add_pairs(struct arena *arena, const struct strings *pairs, bool extend_path, struct strings *environment,
                     struct cordon_error *err)
{
	for (size_t i = 0; pairs && i < pairs->count; i++) {
		const char *pair = pairs->items[i];
		size_t length = strcspn(pair, "=");
		if (env_check_name(pair, length, err) < 0)
			return -1;
		if (!pair[length])
			return refuse(pair, length, "it has no value: write NAME=VALUE", err);
		char *text;
		if (extend_path && !strncmp(pair, "PATH=", 5)) {
			const char **path = find(environment, "PATH", 4);
			text = arena_printf(arena, "%s:%s", path ? *path : "PATH=" DEFAULT_PATH, pair + 5);
		} else {
			text = arena_strdup(arena, pair);
		}
		if (put(arena, environment, text, length, err) < 0)
			return -1;
	}
	return 0;
}

/* Is this component among the `length` bytes of PATH? */
static bool on_path(const char *path, size_t length, const char *component, size_t size)
{
	for (size_t at = 0; at < length;) {
		const char *colon = memchr(path + at, ':', length - at);
		size_t part = colon ? (size_t)(colon - path) - at : length - at;
		if (part == size && !memcmp(path + at, component, size))
			return true;
		at += part + 1;
	}
	return false;
}

/* PATH with the tools first, each component once, and none that is relative: "." or an empty one would make whatever
 * lies in the working directory a program. */
static int finish_path(struct arena *arena, const char *tools_dir, struct strings *environment,
                       struct cordon_error *err)
{
	if (tools_dir && (tools_dir[0] != '/' || strchr(tools_dir, ':')))
		return fail(err, CORDON_E_INVALID_REQUEST, 0, tools_dir,
		            "the tools directory cannot be on PATH: it must be absolute and contain no ':'");
	const char **slot = find(environment, "PATH", 4);
	const char *old = slot ? *slot + 5 : "";
	bool usable = old[0] == '/' || strstr(old, ":/");
	if (!usable)
		old = DEFAULT_PATH;
	char *path = arena_printf(arena, "PATH=%s%s%s", tools_dir ? tools_dir : "", tools_dir ? "/bin:" : "", old);
	if (!path)
		return fail_oom(err);
	/* Compacted in place: what is kept never overtakes what is read. */
	char *start = path + 5, *out = start;
	for (const char *at = start; *at;) {
		size_t size = strcspn(at, ":");
		const char *next = at + size + (at[size] == ':');
		if (*at == '/' && !on_path(start, (size_t)(out - start), at, size)) {
			if (out > start)
				*out++ = ':';
			memmove(out, at, size);
			out += size;
		}
		at = next;
	}
	*out = '\0';
	return put(arena, environment, path, 4, err);
}

static bool is_given(const struct strings *environment, size_t count, const char *name)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < count; i++)
		if (!strncasecmp(environment->items[i], name, length) && environment->items[i][length] == '=')
			return true;
	return false;
}

static int inject(struct arena *arena, const struct env_request *request, struct strings *environment,
                  struct cordon_error *err)
{
	const char *no_proxy = request->proxy && !request->proxies_all ? NO_PROXY : NULL;
	const struct {
		const char *name, *value;
	} injected[] = {
		{ "HOME", request->home },
		{ "USER", request->user },
		{ "LOGNAME", request->user },
		{ "TMPDIR", request->tmpdir ? request->tmpdir : "/tmp" },
		{ "CORDON_SESSION_ID", request->session_id },
		{ "CORDON_SANDBOX_ID", request->sandbox_id },
		{ "CORDON_WORKSPACE", request->workspace },
		{ "CORDON_SANDBOX", request->driver },
		{ "CORDON_NETWORK", request->network },
		/* Some programs read the one, some the other. */
		{ "HTTP_PROXY", request->proxy },
		{ "HTTPS_PROXY", request->proxy },
		{ "ALL_PROXY", request->proxy },
		{ "NO_PROXY", no_proxy },
		{ "http_proxy", request->proxy },
		{ "https_proxy", request->proxy },
		{ "all_proxy", request->proxy },
		{ "no_proxy", no_proxy },
	};
	const size_t given = environment->count;
	for (size_t i = 0; i < ARRAY_SIZE(injected); i++) {
		/* What was asked for by name is the caller's; of the proxy's variables, in either spelling. */
		if (!injected[i].value || is_given(environment, given, injected[i].name))
			continue;
		char *text = arena_printf(arena, "%s=%s", injected[i].name, injected[i].value);
		if (put(arena, environment, text, strlen(injected[i].name), err) < 0)
			return -1;
	}
	return 0;
}

int env_build(struct arena *arena, char *const *caller, const struct env_request *request,
              struct strings *ret_environment, struct cordon_error *err)
{
	struct strings environment = { 0 };
	if (add_from_caller(arena, caller, &environment, err) < 0 ||
	    add_pairs(arena, request->toolchains, true, &environment, err) < 0 ||
	    add_passthrough(arena, caller, request->passthrough, &environment, err) < 0 ||
	    add_pairs(arena, request->set, false, &environment, err) < 0 ||
	    finish_path(arena, request->tools_dir, &environment, err) < 0 ||
	    inject(arena, request, &environment, err) < 0)
		return -1;
	*ret_environment = environment;
	return 0;
}

int env_hide(struct arena *arena, const struct strings *entries, struct strings *environment, struct cordon_error *err)
{
	for (size_t i = 0; i < entries->count; i++) {
		size_t length = strcspn(entries->items[i], "=*");
		bool prefix = entries->items[i][length] == '*';
		for (size_t j = 0; j < environment->count; j++) {
			const char **slot = &environment->items[j];
			size_t name_length = strcspn(*slot, "=");
			if (SYSTEM_COMPARE_NAMES(*slot, entries->items[i], length) ||
			    (!prefix && name_length != length) || !strncmp(*slot, "PATH=", 5))
				continue;
			*slot = arena_printf(arena, "%.*s=" ENV_HIDDEN, (int)name_length, *slot);
			if (!*slot)
				return fail_oom(err);
		}
	}
	return 0;
}
