/* Which settings a network that stays goes by: those that let what serves it go on, and those that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/rows.h"
#include "config-ground.h"

#include <cmocka.h> /* last: it has a macro named fail */

static bool is_same_with(const char *before, const char *after)
{
	ground_put(user_file, before);
	const struct config *one = ground_take(NULL, true);
	ground_put(user_file, after);
	const struct config *other = ground_take(NULL, true);
	bool same = config_serves_same(one, other);
	assert_int_equal(config_serves_same(other, one), same);
	config_unref(one);
	config_unref(other);
	return same;
}

/* Each setting of these sections has a place here: a new one is decided about. */
static const struct {
	enum config_key key;
	const char *text;
	bool same;
} settings[] = {
	{ KEY_network_allow_private, "[\"10.1.0.0/16\"]", false },
	{ KEY_network_private_hosts, "[\"packages.example.com:443\"]", false },
	{ KEY_network_names, "{ \"git.internal\" = \"10.1.0.7\" }", false },
	{ KEY_network_groups, "{ work = [\"git.example.com:443\"] }", true },
	{ KEY_network_connections, "17", false },
	{ KEY_network_total_connections, "17", false },
	{ KEY_network_connect_timeout, "\"17s\"", false },
	{ KEY_network_idle_timeout, "\"17s\"", false },
	{ KEY_network_header, "\"17K\"", false },
	{ KEY_network_bytes, "\"17K\"", false },
	{ KEY_approval_timeout, "\"17s\"", false },
	{ KEY_approval_denials_to_pause, "17", false },
	{ KEY_approval_approver, "\"cordon\"", false },
	{ KEY_approval_queue, "true", false },
	{ KEY_secrets_output, "\"block\"", false },
	{ KEY_secrets_arguments, "\"block\"", false },
	{ KEY_secrets_block, "[\"private-key\"]", false },
	{ KEY_secrets_redact, "[\"own\"]", false },
	{ KEY_secrets_report, "[\"jwt\"]", false },
};

static void test_each_setting(void **state)
{
	(void)state;
	for (int key = 0; key < KEY_MAX; key++) {
		enum config_section section = config_rows[key].section;
		size_t at = 0;
		char text[256];
		if (section != SECTION_network && section != SECTION_approval && section != SECTION_secrets)
			continue;
		while (at < sizeof(settings) / sizeof(*settings) && (int)settings[at].key != key)
			at++;
		print_message("# %s\n", config_rows[key].path);
		assert_true(at < sizeof(settings) / sizeof(*settings));
		snprintf(text, sizeof(text), "%s = %s\n", config_rows[key].path, settings[at].text);
		assert_int_equal(is_same_with("", text), settings[at].same);
		assert_true(is_same_with(text, text));
	}
}

static void test_others(void **state)
{
	(void)state;
	assert_true(is_same_with("", "# a comment\n"));
	assert_true(is_same_with("", "limits.memory = \"64M\"\ncapabilities.network = [\"example.com:443\"]\n"));
}

#define GATEWAY(upstream, header, base, file) \
	"[[gateway]]\nname = \"model\"\nupstream = \"https://" upstream "\"\n" \
	"credential = \"key\"\nheader = \"" header "\"\n" \
	"base_url = \"" base "\"\n[credentials.key]\nfile = \"" file "\"\n"

static void test_gateways(void **state)
{
	static const char before[] = GATEWAY("api.example.com", "x-key", "MODEL_URL", "/e/hostname");
	static const char *const others[] = {
		"", GATEWAY("api.example.org", "x-key", "MODEL_URL", "/e/hostname"),
		GATEWAY("api.example.com/v1", "x-key", "MODEL_URL", "/e/hostname"),
		GATEWAY("api.example.com", "x-other", "MODEL_URL", "/e/hostname"),
		GATEWAY("api.example.com", "x-key", "OTHER_URL", "/e/hostname"),
		GATEWAY("api.example.com", "x-key", "MODEL_URL", "/e/passwd"),
	};
	(void)state;
	assert_true(
		is_same_with(before, GATEWAY("api.example.com", "x-key", "MODEL_URL", "/e/hostname") "# comment\n"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(is_same_with(before, others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_setting, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(test_others, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(test_gateways, ground_setup, ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
