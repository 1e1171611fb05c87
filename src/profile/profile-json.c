/* A profile as JSON: what `cordon profile` shows and golden tests compare. */

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/profile.h"
#include "profile/seccomp.h"

struct flag_name {
	unsigned flag;
	const char *name;
};

static void write_flags(struct json *json, const char *key, unsigned flags, const struct flag_name *names, size_t count)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < count; i++)
		if (flags & names[i].flag)
			json_text(json, names[i].name);
	json_array_end(json);
}

static void write_mounts(struct json *json, const struct mount_plan *plan)
{
	static const struct flag_name names[] = {
		{ MOUNT_READ_ONLY, "read_only" }, { MOUNT_NO_EXEC, "no_exec" },   { MOUNT_GRANTED, "granted" },
		{ MOUNT_OWNED, "owned" },         { MOUNT_OPTIONAL, "optional" }, { MOUNT_DEVICE, "device" },
		{ MOUNT_BASE, "base" },
	};
	json_key(json, "mounts");
	json_array_begin(json);
	for (size_t i = 0; i < plan->count; i++) {
		const struct mount_op *op = &plan->ops[i];
		json_object_begin(json);
		json_key_string(json, "kind", mount_kind_names[op->kind]);
		json_key_string(json, "target", op->target);
		if (op->source)
			json_key_string(json, op->kind == MOUNT_TEXT || op->kind == MOUNT_REPLACE ? "text" : "source",
			                op->source);
		if (op->layer)
			json_key_string(json, "layer", op->layer);
		if (op->kind == MOUNT_SCRATCH)
			json_key_uint(json, "size", op->size);
		if (op->flags)
			write_flags(json, "flags", op->flags, names, ARRAY_SIZE(names));
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_landlock(struct json *json, const struct landlock_plan *plan)
{
	static const struct flag_name names[] = {
		{ LANDLOCK_SEE, "see" }, { LANDLOCK_START, "start" },         { LANDLOCK_CHANGE, "change" },
		{ LANDLOCK_USE, "use" }, { LANDLOCK_IF_PUBLIC, "if_public" },
	};
	json_key(json, "landlock");
	json_array_begin(json);
	for (size_t i = 0; i < plan->count; i++) {
		json_object_begin(json);
		json_key_string(json, "path", plan->rules[i].path);
		write_flags(json, "access", plan->rules[i].access, names, ARRAY_SIZE(names));
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_limits(struct json *json, const struct limits *limits)
{
	json_key(json, "limits");
	json_object_begin(json);
	json_key_uint(json, "memory_bytes", limits->memory_bytes);
	json_key_uint(json, "cpu_percent", limits->cpu_percent);
	json_key_uint(json, "processes", limits->processes);
	json_key_uint(json, "disk_bytes", limits->disk_bytes);
	json_key_uint(json, "wall_ms", limits->wall_ms);
	json_key_uint(json, "stdout_bytes", limits->stdout_bytes);
	json_key_uint(json, "stderr_bytes", limits->stderr_bytes);
	json_key_uint(json, "open_files", limits->open_files);
	json_key_uint(json, "tmp_bytes", limits->tmp_bytes);
	json_object_end(json);
}

static void write_address(struct json *json, const char *key, const struct address *address)
{
	char text[ADDRESS_TEXT_SIZE];
	if (!address->length)
		return;
	address_text(address, text);
	json_key_string(json, key, text);
}

static void write_egress(struct json *json, const struct egress_plan *plan)
{
	json_key(json, "hosts");
	json_array_begin(json);
	for (size_t i = 0; i < plan->rule_count; i++) {
		json_object_begin(json);
		json_key_string(json, "host", plan->rules[i].text);
		write_address(json, "inside_v4", &plan->rules[i].v4);
		write_address(json, "inside_v6", &plan->rules[i].v6);
		json_object_end(json);
	}
	json_array_end(json);
	json_key(json, "listeners");
	json_array_begin(json);
	for (size_t i = 0; i < plan->count; i++) {
		json_object_begin(json);
		json_key_string(json, "use", egress_use_names[plan->listeners[i].use]);
		write_address(json, "address", &plan->listeners[i].address);
		json_key_uint(json, "port", plan->listeners[i].port);
		json_object_end(json);
	}
	json_array_end(json);
}

void profile_write_json(struct json *json, const struct profile *profile)
{
	json_object_begin(json);
	json_key_string(json, "driver", profile->driver);
	json_key_string(json, "view", view_names[profile->view]);
	json_key_string(json, "session", profile->session_id);
	json_key_string(json, "workspace", profile->workspace);
	json_key_string(json, "cwd", profile->cwd);
	json_key_string(json, "home", profile->home);
	json_key_strings(json, "argv", profile->argv.items, profile->argv.count);
	json_key_strings(json, "environment", profile->environment.items, profile->environment.count);
	json_key_string(json, "network", network_mode_names[profile->network]);
	if (profile->egress.count)
		write_egress(json, &profile->egress);
	json_key_bool(json, "spawn", profile->spawn);
	json_key_bool(json, "tty", profile->tty);
	json_key_strings(json, "programs", profile->programs.items, profile->programs.count);
	write_limits(json, &profile->limits);
	json_key(json, "walls");
	json_array_begin(json);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (profile->walls & (UINT32_C(1) << wall))
			json_text(json, cordon_wall_name(wall));
	json_array_end(json);
	if (profile->required) {
		json_key(json, "required");
		json_array_begin(json);
		for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
			if (profile->required & (UINT32_C(1) << wall))
				json_text(json, cordon_wall_name(wall));
		json_array_end(json);
	}
	write_mounts(json, &profile->mounts);
	write_landlock(json, &profile->landlock);
	json_key(json, "seccomp");
	seccomp_listing(json, seccomp_native_arch, profile->seccomp);
	if (profile->unmasked)
		json_key_string(json, "unmasked", profile->unmasked);
	json_object_end(json);
}
