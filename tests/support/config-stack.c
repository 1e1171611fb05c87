/* See config-stack.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config-stack.h"
#include "cordon-internal.h"

struct arena arena;
static struct config_value defaults[KEY_MAX];

int stack_setup(void **state)
{
	struct cordon_error err = { 0 };
	(void)state;
	if (config_defaults(&arena, defaults, &err) < 0)
		fail_msg("%s %s", err.subject, err.reason);
	return 0;
}

int stack_teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

int stack_parse(const char *name, const char *text, struct config_file *file, struct cordon_error *err)
{
	const struct config_reader reader = { &arena, name, "/h/me" };
	return config_parse(&reader, text, strlen(text), file, err);
}

int stack_for(const char *session, const char *system, const char *user, const char *project, struct config *config,
              struct cordon_error *err)
{
	const char *const texts[] = { system, user, project }, *const names[] = { "system", "user", "project" };
	struct config_state all;
	config_state_begin(defaults, &all);
	for (enum config_layer layer = 0; layer < CONFIG_LAYER_MAX; layer++) {
		struct config_file *file = arena_alloc(&arena, sizeof(*file));
		if (texts[layer] && (stack_parse(names[layer], texts[layer], file, err) < 0 ||
		                     config_apply(&arena, &all, layer, file, session, err) < 0))
			return -1;
	}
	return config_assemble(&arena, &all, config, err);
}

struct config stacked(const char *system, const char *user, const char *project)
{
	struct cordon_error err = { 0 };
	struct config config = { 0 };
	if (stack_for(NULL, system, user, project, &config, &err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
	return config;
}

void refused_at(const char *system, const char *user, const char *project, const char *where, const char *part)
{
	struct cordon_error err = { 0 };
	struct config config;
	if (stack_for(NULL, system, user, project, &config, &err) == 0)
		fail_msg("not refused: %s%s%s", system ? system : "", user ? user : "", project ? project : "");
	assert_int_equal(err.class, CORDON_E_CONFIG_INVALID);
	assert_string_equal(err.subject, where);
	if (!strstr(err.reason, part) && !strstr(err.remediation, part))
		fail_msg("'%s' is not in: %s (%s)", part, err.reason, err.remediation);
}
