/* Any bytes as a project's file: read or refused at a place; and whatever it says, nothing becomes wider than without
 * it, for a one-off and for a session. Then the same bytes as the user's file, which is free. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/resolve.h"
#include "policy/cover.h"
#include "cordon-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char system_text[] = "[limits]\nmemory = \"1G\"\n[capabilities]\nfs_read = [\"/data\", "
                                  "\"/srv/a\"]\n[env]\npassthrough = [\"A\", \"B\"]\n"
				  "[[policy.rules]]\ntool = \"run\"\nmatch = \"/bin/rm\"\ndecision = \"deny\"\n";
static const char user_text[] =
	"[sandbox]\non_unavailable = \"degrade\"\ntoolchains = [\"nvm\", \"go\"]\nview = \"system\"\n"
	"[capabilities]\nfs_write = [\"/out\"]\nnetwork = [\"*.example.com:443\", \"a:1\"]\nprograms = [\"/usr/bin\", "
        "\"/bin/sh\"]\n"
	"devices = [\"/dev/dri\"]\nsockets = [\"/run/s\"]\nread_only = [\"/out/x\"]\n"
	"[policy]\nallowed_paths = [\"/data\"]\ndenied_paths = [\"/data/no\"]\n[approval]\nqueue = true\n"
	"[[session]]\nmatch = \"s*\"\nlimits.cpu = 50\n";

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void read_file(struct arena *arena, const char *name, const char *text, size_t length, struct config_file *file)
{
	struct cordon_error err;
	const struct config_reader reader = { arena, name, "/home/me" };
	must(config_parse(&reader, text, length, file, &err) == 0);
}

static void must_contain(const struct strings *list, const struct strings *all)
{
	for (size_t i = 0; i < all->count; i++)
		must(strings_find(list, all->items[i]) >= 0);
}

static void must_judge_stricter(struct arena *arena, const struct config *narrow, const struct config *wide)
{
	static const char *const tools[] = { "run", "read", "write" };
	static const char *const subjects[] = { NULL, "/bin/rm", "/bin/ls", "/data/f", "/data/no/f" };
	for (size_t i = 0; i < ARRAY_SIZE(tools) * ARRAY_SIZE(subjects); i++) {
		const char *tool = tools[i % ARRAY_SIZE(tools)], *subject = subjects[i / ARRAY_SIZE(tools)];
		struct rule_verdict now, before;
		must(rules_judge(arena, &narrow->rules, tool, subject, i % 3, false, &now) == 0 &&
		     rules_judge(arena, &wide->rules, tool, subject, i % 3, false, &before) == 0);
		must(!rule_is_stricter(before.decision, now.decision));
	}
}

static unsigned denials(const struct config *config)
{
	return config->approval.denials_to_pause - 1;   /* 0 is never */
}

static void must_be_narrower(struct arena *arena, const struct config *narrow, const struct config *wide)
{
	must(capability_within(&narrow->baseline, &wide->baseline, NULL, NULL));
	must_contain(&narrow->baseline.deny, &wide->baseline.deny);
	must_contain(&narrow->baseline.protect, &wide->baseline.protect);
	must_contain(&narrow->read_only, &wide->read_only);
	must_contain(&wide->env_pass, &narrow->env_pass);
	must_contain(&narrow->env_set, &wide->env_set);
	must(narrow->env_set.count == wide->env_set.count &&
	     narrow->baseline.exempt.count == wide->baseline.exempt.count);
	must(narrow->enabled <= wide->enabled && narrow->degrade <= wide->degrade &&
	     narrow->sync_disk >= wide->sync_disk);
	must(narrow->driver == wide->driver && narrow->workspace_root == wide->workspace_root &&
	     narrow->tools_dir == wide->tools_dir);
	must(!narrow->view || strcmp(narrow->view, "host-readonly") != 0);
	must(narrow->choose_toolchains);
	must_contain(&wide->toolchains, &narrow->toolchains);
	must(narrow->usual.wall_ms <= wide->usual.wall_ms && narrow->usual.stdout_bytes <= wide->usual.stdout_bytes &&
	     narrow->usual.stderr_bytes <= wide->usual.stderr_bytes && narrow->usual.wall_ms &&
	     narrow->usual.stdout_bytes);
	must(narrow->approval.timeout_ms <= wide->approval.timeout_ms &&
	     narrow->approval.queue <= wide->approval.queue);
	must(denials(narrow) <= denials(wide));
	must_judge_stricter(arena, narrow, wide);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct cordon_error err = { 0 };
	struct config_value defaults[KEY_MAX];
	struct config_file system, user, file;
	struct config_state below, state;
	struct config wide, narrow;
	const struct config_reader reader = { &arena, "project", "/home/me" };
	must(config_defaults(&arena, defaults, &err) == 0);
	read_file(&arena, "system", system_text, strlen(system_text), &system);
	read_file(&arena, "user", user_text, strlen(user_text), &user);
	int read = config_parse(&reader, (const char *)data, size, &file, &err);
	if (read < 0)
		must(err.class == CORDON_E_CONFIG_INVALID && !strncmp(err.subject, "project:", 8) && *err.reason);
	for (const char *session = read < 0 ? NULL : "s"; read == 0; session = NULL) {
		config_state_begin(defaults, &below);
		must(config_apply(&arena, &below, CONFIG_SYSTEM, &system, session, &err) == 0 &&
		     config_apply(&arena, &below, CONFIG_USER, &user, session, &err) == 0 &&
		     config_assemble(&arena, &below, &wide, &err) == 0);
		state = below;
		if (config_apply(&arena, &state, CONFIG_PROJECT, &file, session, &err) < 0) {
			must(err.class == CORDON_E_CONFIG_INVALID && !strncmp(err.subject, "project:", 8));
		} else {
			must(config_assemble(&arena, &state, &narrow, &err) == 0);
			must_be_narrower(&arena, &narrow, &wide);
		}
		config_state_begin(defaults, &state);
		if (config_apply(&arena, &state, CONFIG_USER, &file, session, &err) == 0)
			must(config_assemble(&arena, &state, &narrow, &err) == 0);
		if (!session)
			break;
	}
	arena_free(&arena);
	return 0;
}
