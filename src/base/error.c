/* The error value: class, step, boundary, subject, reason, remediation. It has no pointers and fits one atomic pipe
 * write, so a child that fails before exec hands its parent the very same value. */
#include "base/error.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

#define GRANT_KEY_SIZE 32

#ifdef __linux__ /* elsewhere no child sends one */
_Static_assert(sizeof(struct cordon_error) <= PIPE_BUF, "an error must travel in one atomic pipe write");
#endif

static const struct {
	const char *name;
	bool retriable;
} classes[CORDON_CLASS_MAX] = {
	[CORDON_OK] = { "ok", false },
#define CORDON_CLASS(number, id, name, retriable, meaning) [CORDON_E_##id] = { name, retriable },
#include "cordon-codes.def"
#undef CORDON_CLASS
};

static const char *const steps[] = { "none", "session", "cwd", "capability", "profile", "run", "audit" };
_Static_assert(ARRAY_SIZE(steps) == CORDON_STEP_MAX, "every step has a name");

static const char *const walls[] = {
#define CORDON_WALL(id, name, keeps) name,
#include "cordon-walls.def"
#undef CORDON_WALL
};
_Static_assert(ARRAY_SIZE(walls) == CORDON_WALL_MAX, "every wall has a name");

const char *cordon_class_name(enum cordon_class class)
{
	return (unsigned)class < CORDON_CLASS_MAX ? classes[class].name : "internal";
}

const char *cordon_step_name(enum cordon_step step)
{
	return (unsigned)step < CORDON_STEP_MAX ? steps[step] : "none";
}

const char *cordon_wall_name(enum cordon_wall wall)
{
	return (unsigned)wall < CORDON_WALL_MAX ? walls[wall] : "unknown";
}

struct cordon_error *cordon_error_new(void)
{
	return calloc(1, sizeof(struct cordon_error));
}

void cordon_error_free(struct cordon_error *err)
{
	free(err);
}

int cordon_error_code(const struct cordon_error *err)
{
	return err ? err->class : CORDON_OK;
}

bool cordon_error_retriable(const struct cordon_error *err)
{
	return err && err->retriable;
}

const char *cordon_error_text(const struct cordon_error *err, const char *name)
{
	static _Thread_local char key[GRANT_KEY_SIZE];
	if (!err || !name)
		return NULL;
	const char *value = error_grant(err->grant, key, sizeof(key));
	const struct {
		const char *name, *text;
	} members[] = {
		{ "class", cordon_class_name(err->class) },
		{ "step", cordon_step_name(err->step) },
		{ "boundary", err->boundary },
		{ "subject", err->subject },
		{ "reason", err->reason },
		{ "remediation", err->remediation },
		{ "grant", err->grant },
		{ "grant.key", value ? key : "" },
		{ "grant.value", value ? value : "" },
		{ "audit_id", err->audit_id },
	};
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (!strcmp(members[i].name, name))
			return members[i].text;
	return NULL;
}

/* Untranslated, and without the lock that gettext takes: a child fills an error between clone and exec. */
static const char *errno_text(int os_errno)
{
#ifdef __GLIBC__
	const char *text = strerrordesc_np(os_errno);
	return text ? text : "unknown error";
#else
	return strerror(os_errno);
#endif
}

/* snprintf() into a field, except that a character which does not fit whole is left out. */
__attribute__((format(printf, 3, 0))) static void put(char *field, size_t size, const char *format, va_list args)
{
	int length = vsnprintf(field, size, format, args);
	if (length >= (int)size)
		field[size - 1 - utf8_cut_tail(field, size - 1)] = '\0';
}

__attribute__((format(printf, 3, 4))) static void put_text(char *field, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	put(field, size, format, args);
	va_end(args);
}

static bool lacks_descriptors(int os_errno)
{
	return os_errno == EMFILE || os_errno == ENFILE;
}

int fail(struct cordon_error *err, enum cordon_class class, int os_errno, const char *subject, const char *format, ...)
{
	int saved = errno;
	if (!err)
		return -1;
	/* Whatever it was for: who tries again later may have one. */
	bool no_descriptor = lacks_descriptors(os_errno);
	if (no_descriptor && (unsigned)class < CORDON_CLASS_MAX && !classes[class].retriable)
		class = CORDON_E_RESOURCE_EXHAUSTED;
	/* Made aside: the arguments may be parts of the error that is replaced. */
	struct cordon_error made = { .class = (unsigned)class < CORDON_CLASS_MAX ? class : CORDON_E_INTERNAL,
	                             .os_errno = os_errno };
	made.retriable = classes[made.class].retriable || no_descriptor;
	if (no_descriptor)
		put_text(made.remediation, sizeof(made.remediation),
		         "close some files, or raise the limit on open files: %s",
		         os_errno == EMFILE ? "ulimit -n" : "sysctl fs.file-max");
	if (subject)
		put_text(made.subject, sizeof(made.subject), "%s", subject);
	va_list args;
	va_start(args, format);
	put(made.reason, sizeof(made.reason), format, args);
	va_end(args);
	if (os_errno) {
		size_t used = strlen(made.reason);
		put_text(made.reason + used, sizeof(made.reason) - used, ": %s", errno_text(os_errno));
	}
	*err = made;
	errno = saved;
	return -1;
}

struct cordon_error *error_wanted(struct cordon_error *err)
{
	static _Thread_local struct cordon_error unwanted;
	return err ? err : &unwanted;
}

int error_refuse_null(struct cordon_error *err, const char *names, const void *const *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		names += strspn(names, ", ");
		size_t length = strcspn(names, ",");
		if (!values[i]) {
			char name[64];
			put_text(name, sizeof(name), "%.*s", (int)length, names);
			fail(err, CORDON_E_INVALID_REQUEST, 0, name, "this argument of the call is NULL");
			return fail_boundary(err, "request");
		}
		names += length;
	}
	return 0;
}

int fail_oom(struct cordon_error *err)
{
	return fail(err, CORDON_E_RESOURCE_EXHAUSTED, ENOMEM, NULL, "out of memory");
}

int fail_remedy(struct cordon_error *err, const char *format, ...)
{
	if (!err || lacks_descriptors(err->os_errno))
		return -1;
	char made[sizeof(err->remediation)] = "";
	va_list args;
	va_start(args, format);
	put(made, sizeof(made), format, args);
	va_end(args);
	memcpy(err->remediation, made, sizeof(made));
	return -1;
}

int fail_grant(struct cordon_error *err, const char *key, const char *value)
{
	if (err && strlen(key) + strlen(value) + sizeof("-- ") <= sizeof(err->grant))
		put_text(err->grant, sizeof(err->grant), "--%s %s", key, value);
	return -1;
}

int fail_boundary(struct cordon_error *err, const char *boundary)
{
	if (err)
		put_text(err->boundary, sizeof(err->boundary), "%s", boundary);
	return -1;
}

const char *error_grant(const char *option, char *ret_key, size_t size)
{
	const char *space = option && !strncmp(option, "--", 2) ? strchr(option, ' ') : NULL;
	size_t length = space ? (size_t)(space - option) - 2 : 0;
	/* In capitals it is a stand-in for what the caller has to choose; with a comma after its key, a sentence. */
	if (!length || length >= size || option[length + 1] == ',' || !strncmp(option, "--secrets", 9) ||
	    strspn(space + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(space + 1) || strstr(space, ":PORT"))
		return NULL;
	memcpy(ret_key, option + 2, length);
	ret_key[length] = '\0';
	return space + 1;
}

void error_write_setting(struct json *json, const char *option)
{
	char key[GRANT_KEY_SIZE];
	const char *value = error_grant(option, key, sizeof(key));
	json_key(json, "setting");
	if (!value)
		return json_nil(json);
	json_object_begin(json);
	json_key_string(json, "key", key);
	json_key_string(json, "value", value);
	json_object_end(json);
}

void error_write_json(struct json *json, const struct cordon_error *err)
{
	json_object_begin(json);
	json_key_string(json, "class", cordon_class_name(err->class));
	json_key_string(json, "boundary", err->boundary);
	json_key_string(json, "step", cordon_step_name(err->step));
	json_key_string(json, "reason", err->reason);
	json_key_string(json, "subject", err->subject);
	json_key_string(json, "remediation", err->remediation);
	json_key_string(json, "grant", err->grant);
	error_write_setting(json, err->grant);
	json_key_string(json, "platform", SYSTEM_NAME);
	json_key_bool(json, "retriable", err->retriable);
	json_key_string(json, "audit_id", err->audit_id);
	json_object_end(json);
}

char *cordon_error_json(const struct cordon_error *err)
{
	struct json json;
	if (!err)
		return NULL;
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, "error");
	error_write_json(&json, err);
	json_object_end(&json);
	return json_take(&json);
}
