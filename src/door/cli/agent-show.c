/* `cordon agent list` and `show`: the profiles, and what this machine has of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "door/agent/agent.h"
#include "door/cli/agent.h"
#include "door/cli/report.h"

#define LABEL_WIDTH 12

/* As a shell finds it. */
static const char *find_program(struct arena *arena, const char *name)
{
	const char *at = getenv("PATH");
	struct stat info;
	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? name : NULL;
	for (size_t length; at && *at; at += length + (at[length] == ':')) {
		length = strcspn(at, ":");
		const char *path = *at == '/' ? arena_printf(arena, "%.*s/%s", (int)length, at, name) : NULL;
		if (path && stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

int agent_find(struct arena *arena, const char *name, struct agent_found *ret_found, struct cordon_error *err)
{
	struct agent_found found = { .name = name };
	if (agent_profile_read(arena, &found, err) < 0)
		return -1;
	if (!found.profile.program) {
		fail(err, CORDON_E_CONFIG_INVALID, 0, found.source.file ? found.source.file : name,
		     "the profile names no program");
		return fail_remedy(err, "say what is to be started: program = \"claude\"");
	}
	found.program = find_program(arena, found.profile.program);
	*ret_found = found;
	return 0;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static const char *source_name(const struct agent_found *found)
{
	return found->source.file ? found->source.file : "ships with cordon";
}

static void print(const char *label, const char *text, const char *more)
{
	printf("  %-*s", LABEL_WIDTH, label);
	report_untrusted(stdout, text);
	fputs(more, stdout);
	putchar('\n');
}

static void print_list(const char *label, const char *before, const struct strings *list)
{
	for (size_t i = 0; i < list->count; i++) {
		printf("  %-*s%s", LABEL_WIDTH, i ? "" : label, before);
		report_untrusted(stdout, list->items[i]);
		putchar('\n');
	}
}

static void print_pairs(const char *label, const struct profile_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		printf("  %-*s", LABEL_WIDTH, i ? "" : label);
		report_untrusted(stdout, pairs[i].name);
		putchar('=');
		report_untrusted(stdout, pairs[i].value);
		putchar('\n');
	}
}

static bool is_there(struct arena *arena, const char *name)
{
	const char *home = getenv("HOME"), *path = home ? arena_printf(arena, "%s/%s", home, name) : NULL;
	struct stat info;
	return path && lstat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static void print_files(struct arena *arena, const struct agent_profile *profile)
{
	print_list("copies", "~/", &profile->copy);
	for (size_t i = 0; i < profile->part_count; i++)
		print(profile->copy.count || i ? "" : "copies", arena_printf(arena, "~/%s", profile->parts[i].name),
		      " (in part)");
	for (size_t i = 0; i < profile->login_count; i++)
		print(i ? "" : "login", arena_printf(arena, "~/%s", profile->logins[i].name),
		      !is_there(arena, profile->logins[i].name) ? " (not there)"
		      : profile->logins[i].members.count        ? ""
		                                                : " (never copied back)");
}

static void print_found(struct arena *arena, const struct agent_found *found)
{
	const struct agent_profile *profile = &found->profile;
	printf("%s: ", found->name);
	report_untrusted(stdout, profile->title);
	putchar('\n');
	print("profile", source_name(found), "");
	print("program", found->program ? found->program : profile->program, found->program ? "" : " (not installed)");
	print_list("hosts", "", &profile->hosts);
	print_list("reads", "", &profile->read);
	print_list("writes", "", &profile->write);
	print_list("toolchains", "", &profile->toolchains);
	print_list("variables", "", &profile->variables);
	print_pairs("sets", profile->set, profile->set_count);
	print_pairs("limits", profile->limits, profile->limit_count);
	struct strings names = { 0 };
	struct cordon_error err;
	if (agent_protected(arena, profile, &names, &err) == 0)
		print_list("protects", "", &names);
	print_files(arena, profile);
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static void put_list(struct json *json, const char *key, const struct strings *list)
{
	json_key_strings(json, key, list->items, list->count);
}

static void put_pairs(struct json *json, const char *key, const struct profile_pair *pairs, size_t count)
{
	json_key(json, key);
	json_object_begin(json);
	for (size_t i = 0; i < count; i++)
		json_key_string(json, pairs[i].name, pairs[i].value);
	json_object_end(json);
}

static void put_files(struct json *json, const char *key, const char *members, const struct profile_file *files,
                      size_t count)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json);
		json_key_string(json, "file", files[i].name);
		put_list(json, members, &files[i].members);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_head(struct json *json, const struct agent_found *found)
{
	json_key_string(json, "name", found->name);
	json_key_string(json, "title", found->profile.title);
	json_key_string(json, "profile", found->source.file);
	json_key_string(json, "program", found->program);
}

static void put_found(struct json *json, const struct agent_found *found)
{
	const struct agent_profile *profile = &found->profile;
	json_object_begin(json);
	put_head(json, found);
	json_key_bool(json, "terminal", profile->terminal);
	put_list(json, "hosts", &profile->hosts);
	put_list(json, "read", &profile->read);
	put_list(json, "write", &profile->write);
	put_list(json, "toolchains", &profile->toolchains);
	put_list(json, "protect", &profile->protect);
	put_list(json, "variables", &profile->variables);
	put_list(json, "copy", &profile->copy);
	put_pairs(json, "set", profile->set, profile->set_count);
	put_pairs(json, "limits", profile->limits, profile->limit_count);
	put_files(json, "part", "members", profile->parts, profile->part_count);
	put_files(json, "login", "changes", profile->logins, profile->login_count);
	json_object_end(json);
}

static int say_json(struct json *json, struct cordon_error *err)
{
	auto_free char *text = json_take(json);
	if (!text)
		return fail_oom(err);
	puts(text);
	return 0;
}

/* ---- the actions ------------------------------------------------------------------------------------------------- */

int agent_list(struct arena *arena, bool as_json, struct cordon_error *err)
{
	struct strings names;
	struct json json;
	if (agent_profile_names(arena, agent_profile_share(arena), &names, err) < 0)
		return -1;
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, "agents");
	json_array_begin(&json);
	for (size_t i = 0; i < names.count; i++) {
		struct agent_found found = { .name = names.items[i] };
		struct cordon_error why;
		bool sound = agent_find(arena, names.items[i], &found, &why) == 0;
		json_object_begin(&json);
		put_head(&json, &found);
		json_key_string(&json, "error", sound ? NULL : why.reason);
		json_object_end(&json);
		if (as_json)
			continue;
		printf("%-12s", found.name);
		report_untrusted(stdout, sound ? found.profile.title : why.reason);
		printf("%s%s", sound && !found.program ? ", not installed" : "", found.source.file ? ", by " : "");
		report_untrusted(stdout, found.source.file ? found.source.file : "");
		putchar('\n');
	}
	json_array_end(&json);
	json_object_end(&json);
	if (as_json)
		return say_json(&json, err);
	free(json_take(&json));
	return 0;
}

int agent_show(struct arena *arena, const char *name, bool as_json, struct cordon_error *err)
{
	struct agent_found found;
	struct json json;
	if (agent_find(arena, name, &found, err) < 0)
		return -1;
	if (!as_json) {
		print_found(arena, &found);
		return 0;
	}
	json_init(&json);
	put_found(&json, &found);
	return say_json(&json, err);
}
