/* The error value: class, step, boundary, subject, reason, remediation. It has no pointers and fits one atomic pipe
 * write, so a child that fails before exec hands its parent the very same value. */
#include "base/error.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

_Static_assert(sizeof(struct cordon_error) <= PIPE_BUF, "an error must travel in one atomic pipe write");

static const struct {
	const char *name;
	bool retriable;
} classes[CORDON_CLASS_MAX] = {
	[CORDON_OK] = { "ok", false },
#define CORDON_CLASS(id, name, retriable, meaning) [CORDON_E_##id] = { name, retriable },
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

enum cordon_class error_class_from_name(const char *name)
{
	for (int class = 1; class < CORDON_CLASS_MAX; class++)
		if (!strcmp(classes[class].name, name))
			return class;
	return CORDON_OK;
}

int fail(struct cordon_error *err, enum cordon_class class, int os_errno, const char *subject, const char *format, ...)
{
	int saved = errno;
	if (!err)
		return -1;
	memset(err, 0, sizeof(*err));
	err->class = class;
	err->os_errno = os_errno;
	err->retriable = classes[class].retriable;
	if (subject)
		snprintf(err->subject, sizeof(err->subject), "%s", subject);
	va_list args;
	va_start(args, format);
	vsnprintf(err->reason, sizeof(err->reason), format, args);
	va_end(args);
	if (os_errno) {
		size_t used = strlen(err->reason);
		snprintf(err->reason + used, sizeof(err->reason) - used, ": %s", strerror(os_errno));
	}
	errno = saved;
	return -1;
}

int fail_oom(struct cordon_error *err)
{
	return fail(err, CORDON_E_INTERNAL, ENOMEM, NULL, "out of memory");
}

int fail_remedy(struct cordon_error *err, const char *format, ...)
{
	if (!err)
		return -1;
	va_list args;
	va_start(args, format);
	vsnprintf(err->remediation, sizeof(err->remediation), format, args);
	va_end(args);
	return -1;
}

int fail_boundary(struct cordon_error *err, const char *boundary)
{
	if (err)
		snprintf(err->boundary, sizeof(err->boundary), "%s", boundary);
	return -1;
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
	json_key_string(json, "platform", "linux");
	json_key_bool(json, "retriable", err->retriable);
	json_key_string(json, "audit_id", err->audit_id);
	json_object_end(json);
}

char *cordon_error_json(const struct cordon_error *err)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, "error");
	error_write_json(&json, err);
	json_object_end(&json);
	return json_take(&json);
}
