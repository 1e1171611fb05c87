/* Requests: text settings into a struct. The spelling of a value is checked here; whether it may be had is for the walk. */
#include "walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "policy/host.h"
#include "session/registry.h"

struct amount;

struct setting {
	const char *key;
	int (*set)(struct cordon_request *request, const struct setting *setting, const char *value, struct cordon_error *err);
	size_t offset;
	uint64_t least, most;           /* of an amount */
	const struct amount *amount;
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
	if (*value != '/') {
		bad(err, value, setting->key, "the path must be absolute");
		return fail_remedy(err, "write it whole, from the / on");
	}
	if (text_has_control(value))
		return bad(err, value, setting->key, "the path has a control character in it");
	return set_list(request, setting, value, err);
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
	if (strlen(value) > 4 || strspn(value, "01234567") != strlen(value) || sscanf(value, "%o%c", &mask, &rest) != 1 || mask > 0777)
		return bad(err, value, setting->key, "must be an octal number from 0 to 0777");
	request->umask = mask;
	return 0;
}

/* ---- limits ------------------------------------------------------------------------------------------------------- */

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
	snprintf(want, sizeof(want), "must be %s from %s to %s, such as %s; or none", amount->is, least, most, amount->example);
	return bad(err, value, setting->key, want);
}

/* UINT64_MAX is none, and more than any limit. */
static int set_amount(struct cordon_request *request, const struct setting *setting, const char *value, struct cordon_error *err)
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

/* ---- the rest ------------------------------------------------------------------------------------------------------ */

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

static int set_network(struct cordon_request *request, const struct setting *setting, const char *value,
                       struct cordon_error *err)
{
	bool none = !strcmp(value, "none"), all = !strcmp(value, "all");
	struct host host;
	char text[HOST_TEXT_SIZE];
	if (((none || all) && request->granted.hosts.count) ||
	    (!none && !all && (request->no_network || request->granted.network == NETWORK_ALL)))
		return bad(err, value, setting->key, "hosts stand by themselves, without none and all");
	if (none || all) {
		request->granted.network = all ? NETWORK_ALL : NETWORK_NONE;
		request->no_network = none;
		return 0;
	}
	const char *why = host_parse_rule(value, strlen(value), &host);
	if (why) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, value, "%s: must be none, all or HOST:PORT: %s", setting->key, why);
		fail_boundary(err, "request");
		return fail_remedy(err, "write such as example.com:443, *.example.com:443 or [2001:db8::1]:22");
	}
	host_text(&host, text);
	request->granted.network = NETWORK_HOSTS;
	return strings_find(&request->granted.hosts, text) >= 0 ||
	       strings_add(&request->arena, &request->granted.hosts, arena_strdup(&request->arena, text)) == 0
	               ? 0 : fail_oom(err);
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
	return strings_find(&request->private_hosts, text) >= 0 ||
	       strings_add(&request->arena, &request->private_hosts, arena_strdup(&request->arena, text)) == 0
	               ? 0 : fail_oom(err);
}

static int set_secrets(struct cordon_request *request, const struct setting *setting, const char *value,
                       struct cordon_error *err)
{
	if (strcmp(value, "redact") != 0 && strcmp(value, "report") != 0 && strcmp(value, "block") != 0)
		return bad(err, value, setting->key, "must be redact, report or block");
	return set_text(request, setting, value, err);
}

static int set_environment(struct cordon_request *request, const struct setting *setting, const char *value,
                           struct cordon_error *err)
{
	if (!strchr(value, '='))
		return bad(err, value, setting->key, "must be NAME=VALUE");
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
	{ "cpu", set_amount, AT(granted.limits.cpu_percent), 1, 1000000, &amount_share },
	{ "cwd", set_text, AT(cwd), 0, 0, NULL },
	{ "device", set_path, AT(granted.devices), 0, 0, NULL },
	{ "disk", set_amount, AT(granted.limits.disk_bytes), MiB, MiB << 30, &amount_size },
	{ "driver", set_text, AT(driver), 0, 0, NULL },
	{ "env", set_environment, AT(env), 0, 0, NULL },
	{ "find-top", set_flag, AT(find_top), 0, 0, NULL },
	{ "fresh", set_flag, AT(fresh), 0, 0, NULL },
	{ "manifest", set_text, AT(manifest), 0, 0, NULL },
	{ "max-output", set_output_cap, AT(granted.limits.stdout_bytes), 1, MiB << 30, &amount_size },
	{ "memory", set_amount, AT(granted.limits.memory_bytes), MiB, MiB << 30, &amount_size },
	{ "net", set_network, 0, 0, 0, NULL },
	{ "net-private", set_private_host, 0, 0, 0, NULL },
	{ "no-spawn", set_flag, AT(no_spawn), 0, 0, NULL },
	{ "one-stream", set_flag, AT(one_stream), 0, 0, NULL },
	{ "open-files", set_amount, AT(granted.limits.open_files), 16, 1 << 20, &amount_count },
	{ "pass-env", set_list, AT(pass_env), 0, 0, NULL },
	{ "plain", set_flag, AT(plain), 0, 0, NULL },
	{ "processes", set_amount, AT(granted.limits.processes), 1, 1 << 20, &amount_count },
	{ "program", set_path, AT(granted.programs), 0, 0, NULL },
	{ "read", set_path, AT(granted.fs_read), 0, 0, NULL },
	{ "secrets", set_secrets, AT(secrets), 0, 0, NULL },
	{ "session", set_id, AT(session), 0, 0, NULL },
	{ "socket", set_path, AT(granted.sockets), 0, 0, NULL },
	{ "spawn", set_flag, AT(granted.spawn), 0, 0, NULL },
	{ "timeout", set_amount, AT(granted.limits.wall_ms), 1, UINT64_C(366) * 24 * 3600 * 1000, &amount_time },
	{ "tmp", set_amount, AT(granted.limits.tmp_bytes), 4096, MiB << 30, &amount_size },
	{ "toolchain", set_toolchain, AT(toolchains), 0, 0, NULL },
	{ "tty", set_terminal, AT(tty), 0, 0, NULL },
	{ "umask", set_umask, 0, 0, 0, NULL },
	{ "view", set_view, 0, 0, 0, NULL },
	{ "workspace", set_text, AT(workspace), 0, 0, NULL },
	{ "write", set_path, AT(granted.fs_write), 0, 0, NULL },
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
	arena_free(&request->arena);
	free(request);
}

int cordon_request_command(struct cordon_request *request, const char *const *argv, struct cordon_error *err)
{
	struct strings copied = { 0 };
	if (call_check(err, request) < 0)
		return -1;
	if (!argv || !argv[0] || !*argv[0]) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, "", "there is no command to run");
		fail_remedy(err, "name a program, and what it is to be called with");
		return fail_boundary(err, "request");
	}
	for (; *argv; argv++)
		if (strings_add(&request->arena, &copied, arena_strdup(&request->arena, *argv)) < 0)
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
			fail(err, CORDON_E_INVALID_REQUEST, E2BIG, "", "the environment is larger than the kernel passes to a program");
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

void cordon_request_approver(struct cordon_request *request, cordon_approver_fn fn, void *arg, int interrupt_fd, int pid)
{
	if (!request)
		return;
	request->has_approver = true;
	request->approver = (struct approver){ fn, arg, interrupt_fd, pid };
}

void cordon_request_output(struct cordon_request *request, cordon_output_fn fn, void *arg)
{
	if (!request)
		return;
	request->output = fn;
	request->output_arg = arg;
}
