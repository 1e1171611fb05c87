/* Requests: text settings into a struct. The spelling of a value is checked here; whether it may be granted is decided
 * by the walk. */
#include "walk.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/json.h"
#include "base/path-given.h"
#include "base/text.h"
#include "base/ulimit.h"
#include "egress/publish.h"
#include "policy/env.h"
#include "policy/host.h"
#include "session/registry.h"

#define CLIENT_REF_MAX 1024

struct amount;

struct setting {
	const char *key;
	int (*set)(struct cordon_request *request, const struct setting *setting, const char *value,
	           struct cordon_error *err);
	size_t offset;
	uint64_t least, most;           /* of an amount */
	const struct amount *amount;
	const char *summary;
};

static int bad(struct cordon_error *err, const char *value, const char *key, const char *want)
{
	fail(err, CORDON_E_INVALID_REQUEST, 0, value, "%s: %s", key, want);
	fail_remedy(err, "give it another value, or leave it out: see cordon help run");
	return fail_boundary(err, "request");
}

static int set_text(struct cordon_request *request, const struct setting *setting, const char *value,
                    struct cordon_error *err)
{
	if (!*value)
		return bad(err, value, setting->key, "must not be empty");
	const char *copy = arena_strdup(&request->arena, value);
	if (!copy)
		return fail_oom(err);
	memcpy((char *)request + setting->offset, &copy, sizeof(copy));
	return 0;
}

static int set_id(struct cordon_request *request, const struct setting *setting, const char *value,
                  struct cordon_error *err)
{
	return registry_check_id(value, err) < 0 ? -1 : set_text(request, setting, value, err);
}

static int add_once(struct cordon_request *request, struct strings *list, const char *text, struct cordon_error *err)
{
	return strings_find(list, text) >= 0 ||
	       strings_add(&request->arena, list, arena_strdup(&request->arena, text)) == 0
	               ? 0 : fail_oom(err);
}

static int set_list(struct cordon_request *request, const struct setting *setting, const char *value,
                    struct cordon_error *err)
{
	struct strings *list = (struct strings *)(void *)((char *)request + setting->offset);
	if (!*value)
		return bad(err, value, setting->key, "must not be empty");
	return strings_add(&request->arena, list, arena_strdup(&request->arena, value)) < 0 ? fail_oom(err) : 0;
}

static int set_path(struct cordon_request *request, const struct setting *setting, const char *value,
                    struct cordon_error *err)
{
	char room[PATH_MAX];
	const char *why, *given = value;
	if (!*value)
		return bad(err, value, setting->key, "the path is empty");
	if (!(value = path_given(given, room, sizeof(room), &why)))
		return bad(err, given, setting->key, why);
	if (*value != '/') {
		bad(err, value, setting->key, "the path must be absolute");
		return fail_remedy(err, "write it whole, from the / on");
	}
	if (text_has_control(value))
		return bad(err, value, setting->key, "the path has a control character in it");
	return set_list(request, setting, value, err);
}

/* Where it begins is known when the command is started. */
static int set_directory(struct cordon_request *request, const struct setting *setting, const char *value,
                         struct cordon_error *err)
{
	char room[PATH_MAX];
	const char *why, *given = path_given(value, room, sizeof(room), &why);
	return given ? set_text(request, setting, given, err) : bad(err, value, setting->key, why);
}

static int set_flag(struct cordon_request *request, const struct setting *setting, const char *value,
                    struct cordon_error *err)
{
	bool on = !strcmp(value, "true");
	if (!on && strcmp(value, "false"))
		return bad(err, value, setting->key, "must be true or false");
	memcpy((char *)request + setting->offset, &on, sizeof(on));
	return 0;
}

/* "true", "false", or the size it is to have: "24x80". */
static int set_terminal(struct cordon_request *request, const struct setting *setting, const char *value,
                        struct cordon_error *err)
{
	unsigned short rows, columns;
	char rest;
	if (sscanf(value, "%4hux%4hu%c", &rows, &columns, &rest) != 2)
		return set_flag(request, setting, value, err);
	request->tty = true;
	request->rows = rows;
	request->columns = columns;
	return 0;
}

static int set_umask(struct cordon_request *request, const struct setting *setting, const char *value,
                     struct cordon_error *err)
{
	unsigned mask;
	char rest;
	if (strlen(value) > 4 || strspn(value, "01234567") != strlen(value) ||
	    sscanf(value, "%o%c", &mask, &rest) != 1 || mask > 0777)
		return bad(err, value, setting->key, "must be an octal number from 0 to 0777");
	request->umask = mask;
	return 0;
}

static int set_ulimit(struct cordon_request *request, const struct setting *setting, const char *value,
                      struct cordon_error *err)
{
	const char *why = ulimit_add(&request->ulimits, value);
	return why ? bad(err, value, setting->key, why) : 0;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void format_number(uint64_t number, char ret_text[TEXT_AMOUNT_SIZE])
{
	snprintf(ret_text, TEXT_AMOUNT_SIZE, "%" PRIu64, number);
}

static bool parse_count(const char *text, uint64_t *ret_number)
{
	return text_parse_number(text, UINT64_MAX - 1, ret_number);
}

static const struct amount {
	const char *is, *example;
	bool (*parse)(const char *text, uint64_t *ret_number);
	void (*format)(uint64_t number, char ret_text[TEXT_AMOUNT_SIZE]);
} amount_size = { "a size", "512m or 2g", text_parse_size, text_format_size },
  amount_time = { "a time", "1500ms, 90s or 5m", text_parse_duration, text_format_duration },
  amount_share = { "a share of one core", "50% or 150%", text_parse_percent, format_number },
  amount_count = { "a number", "64", parse_count, format_number };

static int bad_amount(const struct setting *setting, const char *value, struct cordon_error *err)
{
	const struct amount *amount = setting->amount;
	char least[TEXT_AMOUNT_SIZE], most[TEXT_AMOUNT_SIZE], want[128];
	amount->format(setting->least, least);
	amount->format(setting->most, most);
	snprintf(want, sizeof(want), "must be %s from %s to %s, such as %s; or none", amount->is, least, most,
	         amount->example);
	return bad(err, value, setting->key, want);
}

/* UINT64_MAX is none, and more than any limit. */
static int set_amount(struct cordon_request *request, const struct setting *setting, const char *value,
                      struct cordon_error *err)
{
	uint64_t number = UINT64_MAX;
	if (strcmp(value, "none") &&
	    (!setting->amount->parse(value, &number) || number < setting->least || number > setting->most))
		return bad_amount(setting, value, err);
	memcpy((char *)request + setting->offset, &number, sizeof(number));
	return 0;
}

static int set_output_cap(struct cordon_request *request, const struct setting *setting, const char *value,
                          struct cordon_error *err)
{
	if (set_amount(request, setting, strcmp(value, "unlimited") ? value : "none", err) < 0)
		return -1;
	request->granted.limits.stderr_bytes = request->granted.limits.stdout_bytes;
	return 0;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static int set_view(struct cordon_request *request, const struct setting *setting, const char *value,
                    struct cordon_error *err)
{
	for (int view = 0; view < VIEW_MAX; view++)
		if (!strcmp(view_names[view], value)) {
			request->view = view;
			request->view_named = true;
			return 0;
		}
	const char *nearest = text_nearest(value, view_names, VIEW_MAX);
	bad(err, value, setting->key, "must be system, host-readonly or bare");
	return nearest ? fail_remedy(err, "did you mean %s?", nearest) : -1;
}

/* What a group stands for is known once the configuration is: capability_granted(). */
static int set_network(struct cordon_request *request, const struct setting *setting, const char *value,
                       struct cordon_error *err)
{
	bool none = !strcmp(value, "none"), all = !strcmp(value, "all");
	struct host host;
	char text[HOST_TEXT_SIZE];
	if (((none || all) && (request->granted.hosts.count || request->groups.count)) ||
	    (!none && !all && (request->no_network || request->granted.network == NETWORK_ALL)))
		return bad(err, value, setting->key, "hosts cannot be combined with none or all");
	if (none || all) {
		request->granted.network = all ? NETWORK_ALL : NETWORK_NONE;
		request->no_network = none;
		return 0;
	}
	if (host_is_group(value)) {
		request->granted.network = NETWORK_HOSTS;
		return add_once(request, &request->groups, value, err);
	}
	const char *why = host_parse_rule(value, strlen(value), &host);
	if (why) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, value, "%s: must be none, all, HOST:PORT or a group: %s",
		     setting->key, why);
		fail_boundary(err, "request");
		return fail_remedy(err, "write such as example.com:443, *.example.com:443 or [2001:db8::1]:22");
	}
	host_text(&host, text);
	request->granted.network = NETWORK_HOSTS;
	return add_once(request, &request->granted.hosts, text, err);
}

/* It grants the host as well: to say where a host may be that cannot be reached would be of no use. */
static int set_private_host(struct cordon_request *request, const struct setting *setting, const char *value,
                            struct cordon_error *err)
{
	struct host host;
	char text[HOST_TEXT_SIZE];
	const char *why = host_parse_name_port(value, strlen(value), &host);
	if (why) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, value, "%s: must be NAME:PORT: %s", setting->key, why);
		fail_boundary(err, "request");
		return fail_remedy(err, "write such as packages.example.com:443; an address is granted by --net");
	}
	if (set_network(request, setting, value, err) < 0)
		return -1;
	host_text(&host, text);
	return add_once(request, &request->private_hosts, text, err);
}

static int set_input(struct cordon_request *request, const struct setting *setting, const char *value,
                     struct cordon_error *err)
{
	request->stream_input = !strcmp(value, "stream");
	return request->stream_input || !strcmp(value, "empty")
	               ? 0 : bad(err, value, setting->key, "must be stream or empty");
}

static bool parse_port(const char *text, size_t length, unsigned *ret_port)
{
	unsigned port = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9' || length > 5)
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	*ret_port = port;
	return port > 0 && port <= UINT16_MAX;
}

/* [HOST_PORT:]PORT */
static int set_publish(struct cordon_request *request, const struct setting *setting, const char *value,
                       struct cordon_error *err)
{
	const char *colon = strchr(value, ':'), *inside = colon ? colon + 1 : value;
	char entry[16];
	unsigned outer, inner;
	if (!parse_port(inside, strlen(inside), &inner) ||
	    !parse_port(value, colon ? (size_t)(colon - value) : strlen(value), &outer))
		return bad(err, value, setting->key,
		           "must be PORT or HOST_PORT:PORT, each from 1 to 65535, such as 3000 or 8080:3000");
	int length = snprintf(entry, sizeof(entry), "%u:", outer);
	for (size_t i = 0; i < request->granted.publish.count; i++)
		if (!strncmp(request->granted.publish.items[i], entry, (size_t)length))
			return bad(err, value, setting->key,
			           "a port of this machine can be published for one port only");
	if (request->granted.publish.count >= PUBLISH_MAX)
		return bad(err, value, setting->key, "too many ports");
	snprintf(entry + length, sizeof(entry) - (size_t)length, "%u", inner);
	return add_once(request, &request->granted.publish, entry, err);
}

static int set_secrets(struct cordon_request *request, const struct setting *setting, const char *value,
                       struct cordon_error *err)
{
	if (strcmp(value, "redact") != 0 && strcmp(value, "report") != 0 && strcmp(value, "block") != 0)
		return bad(err, value, setting->key, "must be redact, report or block");
	return set_text(request, setting, value, err);
}

static int set_client_ref(struct cordon_request *request, const struct setting *setting, const char *value,
                          struct cordon_error *err)
{
	if (strlen(value) > CLIENT_REF_MAX || text_has_control(value))
		return bad(err, "", setting->key, "must be at most 1024 bytes without a control character");
	return set_text(request, setting, value, err);
}

static int set_environment(struct cordon_request *request, const struct setting *setting, const char *value,
                           struct cordon_error *err)
{
	if (!strchr(value, '='))
		return bad(err, value, setting->key, "must be NAME=VALUE");
	return set_list(request, setting, value, err);
}

int cordon_variable_check(const char *name, struct cordon_error *err)
{
	return call_check(err, name) < 0 ? -1 : env_check_name(name, strlen(name), err);
}

static int set_protected(struct cordon_request *request, const struct setting *setting, const char *value,
                         struct cordon_error *err)
{
	struct cordon_error why;
	struct glob glob;
	if (glob_compile(&request->arena, value, 0, &glob, &why) < 0)
		return bad(err, value, setting->key, why.reason);
	if (glob.absolute || text_has_control(value))
		return bad(err, value, setting->key, "must be a name relative to what is writable");
	return set_list(request, setting, value, err);
}

static int set_toolchain(struct cordon_request *request, const struct setting *setting, const char *value,
                         struct cordon_error *err)
{
	request->choose_toolchains = true;
	return strcmp(value, "none") ? set_list(request, setting, value, err) : 0;
}

#define AT(field) offsetof(struct cordon_request, field)
#define MiB (UINT64_C(1) << 20)

static const struct setting settings[] = {
	{ "agent", set_flag, AT(of_agent), 0, 0, NULL, "the session to be made is one of an agent's commands" },
	{ "ask", set_flag, AT(ask_events), 0, 0, NULL, "the questions of a process are events" },
	{ "client-asks", set_flag, AT(approver.is_client), 0, 0, NULL,
	  "its approver is behind a client that may answer by itself" },
	{ "client-ref", set_client_ref, AT(client_ref), 0, 0, NULL, "what the caller knows it by, for the ledger" },
	{ "cpu", set_amount, AT(granted.limits.cpu_percent), 1, 1000000, &amount_share, "processor time, of one core" },
	{ "cwd", set_directory, AT(cwd), 0, 0, NULL, "the working directory" },
	{ "device", set_path, AT(granted.devices), 0, 0, NULL, "a device node" },
	{ "disk", set_amount, AT(granted.limits.disk_bytes), MiB, MiB << 30, &amount_size, "disk space" },
	{ "driver", set_text, AT(driver), 0, 0, NULL, "what raises the walls" },
	{ "env", set_environment, AT(env), 0, 0, NULL, "a variable, NAME=VALUE" },
	{ "find-top", set_flag, AT(find_top), 0, 0, NULL,
	  "the workspace is the git working tree that `workspace` lies in" },
	{ "fresh", set_flag, AT(fresh), 0, 0, NULL, "a sandbox of its own" },
	{ "hand-on", set_flag, AT(hand_on), 0, 0, NULL, "output without a limit is handed on and not kept" },
	{ "idle-expiry", set_amount, AT(idle_expiry_ms), 1000, UINT64_C(3660) * 24 * 3600 * 1000, &amount_time,
	  "a session to be made ends after so long without a command" },
	{ "judged", set_flag, AT(judged), 0, 0, NULL, "output is handed on once it was searched for secrets" },
	{ "manifest", set_text, AT(manifest), 0, 0, NULL, "a manifest that declares what the command may reach" },
	{ "max-output", set_output_cap, AT(granted.limits.stdout_bytes), 1, MiB << 30, &amount_size,
	  "how much of each stream is kept" },
	{ "memory", set_amount, AT(granted.limits.memory_bytes), MiB, MiB << 30, &amount_size, "memory" },
	{ "net", set_network, 0, 0, 0, NULL, "none, all, HOST:PORT, or a group of hosts" },
	{ "net-private", set_private_host, 0, 0, 0, NULL, "HOST:PORT that may be at a private address" },
	{ "no-caches", set_flag, AT(no_caches), 0, 0, NULL, "the package caches of the host are not shown" },
	{ "no-spawn", set_flag, AT(no_spawn), 0, 0, NULL, "it cannot start other programs" },
	{ "one-stream", set_flag, AT(one_stream), 0, 0, NULL, "standard error is the pipe of standard output" },
	{ "open-files", set_amount, AT(granted.limits.open_files), 16, 1 << 20, &amount_count, "open files" },
	{ "pass-env", set_list, AT(pass_env), 0, 0, NULL, "the caller's variables of this name, or PREFIX_*" },
	{ "plain", set_flag, AT(plain), 0, 0, NULL, "the limits of a person's own command" },
	{ "processes", set_amount, AT(granted.limits.processes), 1, 1 << 20, &amount_count, "processes" },
	{ "program", set_path, AT(granted.programs), 0, 0, NULL, "an executable that may start; without one, any" },
	{ "protect", set_protected, AT(granted.protect), 0, 0, NULL,
	  "a name that stays read-only, as capabilities.protect has it" },
	{ "publish", set_publish, 0, 0, 0, NULL, "a port of the sandbox that is reached from this machine's loopback" },
	{ "read", set_path, AT(granted.fs_read), 0, 0, NULL, "a path that can be read" },
	{ "secrets", set_secrets, AT(secrets), 0, 0, NULL, "what is done about secrets: redact, report or block" },
	{ "session", set_id, AT(session), 0, 0, NULL, "the session the command belongs to" },
	{ "socket", set_path, AT(granted.sockets), 0, 0, NULL, "a unix socket that can be connected to" },
	{ "spawn", set_flag, AT(granted.spawn), 0, 0, NULL, "it may start other programs" },
	{ "stdin", set_input, 0, 0, 0, NULL, "of a process: stream or empty" },
	{ "timeout", set_amount, AT(granted.limits.wall_ms), 1, UINT64_C(366) * 24 * 3600 * 1000, &amount_time,
	  "wall time" },
	{ "tmp", set_amount, AT(granted.limits.tmp_bytes), 4096, MiB << 30, &amount_size,
	  "the size of /tmp and of a home in memory" },
	{ "toolchain", set_toolchain, AT(toolchains), 0, 0, NULL, "a toolchain that is shown; or none" },
	{ "tty", set_terminal, AT(tty), 0, 0, NULL, "a terminal: true, or its size, 24x80" },
	{ "ulimit", set_ulimit, 0, 0, 0, NULL, "a resource limit, NAME=SOFT[:HARD]" },
	{ "umask", set_umask, 0, 0, 0, NULL, "the file mode creation mask, in octal" },
	{ "view", set_view, 0, 0, 0, NULL, "system, host-readonly or bare" },
	{ "workspace", set_text, AT(workspace), 0, 0, NULL, "the directory the command works in" },
	{ "write", set_path, AT(granted.fs_write), 0, 0, NULL, "a path that can be read and written" },
};

int cordon_request_set(struct cordon_request *request, const char *key, const char *value, struct cordon_error *err)
{
	const char *keys[ARRAY_SIZE(settings)];
	if (call_check(err, request, key, value) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		if (!strcmp(settings[i].key, key))
			return settings[i].set(request, &settings[i], value, err);
		keys[i] = settings[i].key;
	}
	const char *nearest = text_nearest(key, keys, ARRAY_SIZE(keys));
	fail(err, CORDON_E_INVALID_REQUEST, 0, key, "there is no such setting");
	fail_boundary(err, "request");
	return nearest ? fail_remedy(err, "did you mean %s?", nearest) : -1;
}

static void write_setting(struct json *json, const struct setting *setting)
{
	bool repeats = setting->set == set_list || setting->set == set_path || setting->set == set_protected ||
	               setting->set == set_environment || setting->set == set_toolchain || setting->set == set_ulimit ||
	               setting->set == set_network || setting->set == set_private_host || setting->set == set_publish;
	char text[TEXT_AMOUNT_SIZE];
	json_object_begin(json);
	json_key_string(json, "key", setting->key);
	json_key_string(json, "type",
	                setting->amount          ? setting->amount->is :
	                setting->set == set_flag ? "true or false" :
	                                           "text");
	json_key_bool(json, "repeats", repeats);
	if (setting->amount) {
		setting->amount->format(setting->least, text);
		json_key_string(json, "least", text);
		setting->amount->format(setting->most, text);
		json_key_string(json, "most", text);
	}
	json_key_string(json, "summary", setting->summary);
	json_object_end(json);
}

char *cordon_settings_json(void)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key(&json, "settings");
	json_array_begin(&json);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		write_setting(&json, &settings[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_take(&json);
}

int cordon_request_new(struct cordon_request **ret_request, struct cordon_error *err)
{
	if (call_check(err, ret_request) < 0)
		return -1;
	struct cordon_request *request = calloc(1, sizeof(*request));
	if (!request)
		return fail_oom(err);
	request->stdin_fd = -1;
	request->refs = 1;
	request->rows = 24;
	request->umask = 022;
	request->columns = 80;
	*ret_request = request;
	return 0;
}

void cordon_request_unref(struct cordon_request *request)
{
	if (!request || atomic_fetch_sub(&request->refs, 1) > 1)
		return;
	/* It has the caller's environment in it. */
	arena_wipe(&request->arena);
	free(request);
}

int cordon_request_command(struct cordon_request *request, const char *const *argv, struct cordon_error *err)
{
	struct strings copied = { 0 };
	if (call_check(err, request) < 0)
		return -1;
	if (!argv || !argv[0] || !*argv[0]) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "", "there is no command to run");
		fail_remedy(err, "name a program and its arguments");
		return fail_boundary(err, "request");
	}
	char room[PATH_MAX];
	const char *why, *program = path_given(argv[0], room, sizeof(room), &why);
	if (!program)
		return bad(err, argv[0], "program", why);
	for (size_t i = 0; argv[i]; i++)
		if (strings_add(&request->arena, &copied, arena_strdup(&request->arena, i ? argv[i] : program)) < 0)
			return fail_oom(err);
	request->argv = copied;
	return 0;
}

/* No more than the kernel passes to a program: three quarters of 8 MiB, each string with its pointer. */
#define ENVIRONMENT_MAX (6u << 20)

int cordon_request_environment(struct cordon_request *request, const char *const *environment, struct cordon_error *err)
{
	size_t count = 0, size = 0;
	if (call_check(err, request, environment) < 0)
		return -1;
	for (; environment[count]; count++) {
		size += strnlen(environment[count], ENVIRONMENT_MAX) + 1 + sizeof(*environment);
		if (size > ENVIRONMENT_MAX) {
			fail(err, CORDON_E_INVALID_REQUEST, E2BIG, "",
			     "the environment is larger than the kernel passes to a program");
			return fail_boundary(err, "environment");
		}
	}
	char **copied = arena_alloc(&request->arena, (count + 1) * sizeof(*copied));
	for (size_t i = 0; copied && i < count; i++)
		if (!(copied[i] = arena_strdup(&request->arena, environment[i])))
			return fail_oom(err);
	if (!copied)
		return fail_oom(err);
	copied[count] = NULL;
	request->environment = copied;
	return 0;
}

char *const *request_environment(const struct cordon_request *request)
{
	return request && request->environment ? request->environment : environ;
}

const char *request_variable(const struct cordon_request *request, const char *name)
{
	size_t length = strlen(name);
	for (char *const *at = request_environment(request); at && *at; at++)
		if (!strncmp(*at, name, length) && (*at)[length] == '=')
			return *at + length + 1;
	return NULL;
}

void cordon_request_stdin(struct cordon_request *request, int fd)
{
	if (request)
		request->stdin_fd = fd;
}

void cordon_request_approver(struct cordon_request *request, cordon_approver_fn fn, void *arg, int interrupt_fd,
                             int pid)
{
	if (!request)
		return;
	request->has_approver = true;
	request->approver = (struct approver){ fn, arg, interrupt_fd, pid, request->approver.is_client };
}

void cordon_request_output(struct cordon_request *request, cordon_output_fn fn, void *arg)
{
	if (!request)
		return;
	request->output = fn;
	request->output_arg = arg;
}
