/* The walls for fixed requests on a made-up host, as text, compared with expected/. profile/ makes no system call, so
 * the same facts give the same walls on every machine; a change of the walls shows as a change of these files.
 *
 *     GOLDEN_UPDATE=1 build/tests/golden/test-golden      writes them anew; read the difference before committing it
 */
#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "profile/bwrap.h"
#include "profile/profile.h"
#include "profile/seccomp.h"

#define EXPECTED TESTS_DIR "/golden/expected/"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DIRECTORY(name) { .path = name, .device = 1, .inode = 2, .is_directory = true }
#define NODE(name) { .path = name, .device = 1, .inode = 3 }

/* ---- comparing -------------------------------------------------------------------------------------------------- */

static char *load(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t capacity = 0;
	if (!file)
		return strdup("");
	if (getdelim(&text, &capacity, '\0', file) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(file);
	return text;
}

static void compare(const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), EXPECTED "%s", name);
	if (getenv("GOLDEN_UPDATE")) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
		return;
	}
	char *wanted = load(path);
	size_t same = 0, line = 1;
	while (text[same] && text[same] == wanted[same])
		line += text[same++] == '\n';
	if (strcmp(text, wanted)) {
		while (same && text[same - 1] != '\n')
			same--;
		print_message("%s:%zu\n  is        %.*s\n  should be %.*s\n", path, line,
		              (int)strcspn(text + same, "\n"), text + same, (int)strcspn(wanted + same, "\n"),
		              wanted + same);
		free(wanted);
		fail();
	}
	free(wanted);
}

/* The listing of system calls has files of its own; here only which options are in force. */
static void leave_out_listing(char *text)
{
	char *listing = strstr(text, "\n  \"seccomp\": {");
	char *end = listing ? strstr(listing, "\n  }") : NULL;
	char *sets = listing ? strstr(listing, ",\n    \"sets\"") : NULL;
	assert_true(listing && sets && end && sets < end);
	memmove(sets, end, strlen(end) + 1);
	/* Nor is the architecture of the machine that runs this. */
	char *architecture = strstr(listing, "    \"architecture\"");
	assert_non_null(architecture);
	memmove(architecture, strchr(architecture, '\n') + 1, strlen(strchr(architecture, '\n') + 1) + 1);
}

/* ---- the host, the person, the defaults ------------------------------------------------------------------------- */

static struct host_entry host_items[] = {
	{ "/usr", "/usr", NULL, HOST_DIRECTORY, 0, 0, 0 },
	{ "/bin", "/usr/bin", "usr/bin", HOST_LINK, 0, 0, 0 },
	{ "/lib", "/usr/lib", "usr/lib", HOST_LINK, 0, 0, 0 },
	{ "/lib64", "/usr/lib64", "usr/lib64", HOST_LINK, 0, 0, 0 },
	{ "/opt", "/opt", NULL, HOST_DIRECTORY, 0, 0, 0 },
	{ "/etc/ld.so.cache", "/etc/ld.so.cache", NULL, HOST_FILE, 0, 0, 0 },
	{ "/etc/hosts", "/etc/hosts", NULL, HOST_FILE, 77, 0, 0 },
	{ "/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "../run/systemd/resolve/stub-resolv.conf",
	  HOST_FILE, 78, 0, 0 },
	{ "/etc/ssl", "/etc/ssl", NULL, HOST_DIRECTORY, 0, 0, 0 },
	{ "/etc/localtime", "/usr/share/zoneinfo/UTC", "/usr/share/zoneinfo/UTC", HOST_LINK, 0, 0, 0 },
};

static struct capability_set capabilities;
static struct arena *current;   /* of the request that is being made */

static __attribute__((sentinel)) struct strings texts(const char *first, ...)
{
	struct strings list = { 0 };
	va_list more;
	va_start(more, first);
	for (const char *text = first; text; text = va_arg(more, const char *))
		assert_int_equal(strings_add(current, &list, text), 0);
	va_end(more);
	return list;
}

static struct profile_input standard(struct arena *arena)
{
	assert_int_equal(capability_baseline(arena, true, &capabilities), 0);
	return (struct profile_input){
		.abilities = { "namespaces", true, true, 6, false },
		.capabilities = &capabilities,
		.view = VIEW_SYSTEM,
		.session_id = "00000000000000000000000000",
		.sandbox_id = "00000000000000000000000000",
		.workspace = DIRECTORY("/home/ada/project"),
		.cwd = "/home/ada/project",
		.home = "/home/ada",
		.data_dir = "/home/ada/.local/share/cordon",
		.host = { host_items, COUNT(host_items), COUNT(host_items) },
		.user = "ada", .uid = 1000, .gid = 1000,
		.argv = texts("make", "test", NULL),
		.environment = texts("PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/ada", "TMPDIR=/tmp", NULL),
	};
}

/* ---- one function per request: what it changes of the standard one ----------------------------------------------- */

static void as_it_is(struct profile_input *input)
{
	(void)input;
}

static void in_a_session(struct profile_input *input)
{
	static const struct place tmp = DIRECTORY("/home/ada/.local/share/cordon/tmp/0123456789abcdef");
	input->session_id = "s";
	input->workspace = (struct place)DIRECTORY("/home/ada/.local/share/cordon/workspaces/0123456789abcdef");
	input->cwd = input->home = input->workspace.path;
	input->tmp = &tmp;
}

static void in_a_session_with_a_named_directory(struct profile_input *input)
{
	input->session_id = "s";
	input->home_source = "/home/ada/.local/share/cordon/homes/0123456789abcdef";
}

static void with_grants(struct profile_input *input)
{
	static struct place reads[] = {
		DIRECTORY("/srv/data"),
		NODE("/etc/hostname"),
		DIRECTORY("/home/ada/project/vendor"),
		DIRECTORY("/tmp/input"),
		{ .path = "/mnt/big/models",
		  .alias = "/home/ada/models",
		  .device = 1,
		  .inode = 9,
		  .is_directory = true },
	};
	static struct place writes[] = { DIRECTORY("/srv/data/out"), NODE("/var/log/tool.log") };
	static struct place sockets[] = { NODE("/run/service.sock") };
	static struct place devices[] = { NODE("/dev/fuse"), DIRECTORY("/dev/dri") };
	input->reads = (struct places){ reads, COUNT(reads), 0 };
	input->writes = (struct places){ writes, COUNT(writes), 0 };
	input->sockets = (struct places){ sockets, COUNT(sockets), 0 };
	input->devices = (struct places){ devices, COUNT(devices), 0 };
	capabilities.fs_read = texts("/srv/data", "/etc/hostname", "/home/ada/project/vendor", "/tmp/input",
	                             "/home/ada/models", NULL);
	capabilities.fs_write = texts("/srv/data/out", "/var/log/tool.log", NULL);
}

static void with_names(struct profile_input *input)
{
	static struct place masked[] = { NODE("/home/ada/project/.env"), DIRECTORY("/home/ada/project/deploy/.ssh") };
	static const char *protect[] = { "/home/ada/project/.git/config", "/home/ada/project/.git/hooks",
	                                 "/home/ada/project/a/b/.git/config", NULL };
	static struct host_entry shown[] = { { "/home/ada/.nvm", "/home/ada/.nvm", NULL, HOST_DIRECTORY, 0, 0, 0 } };
	input->masked = (struct places){ masked, COUNT(masked), 0 };
	input->protect = (struct strings){ .items = protect, .count = 3 };
	input->shown = (struct host_entries){ shown, 1, 1 };
	input->git_config = "[user]\n\tname = Ada\n\temail = ada@example.org\n";
	input->unmasked = "3 directories that could not be read";
}

static void with_listed_programs_and_no_spawning(struct profile_input *input)
{
	static struct place programs[] = { NODE("/usr/bin/python3.11") };
	static struct place interpreters[] = { NODE("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2") };
	input->programs = (struct places){ programs, 1, 0 };
	input->interpreters = (struct places){ interpreters, 1, 0 };
	input->libraries = texts("/usr/lib/x86_64-linux-gnu", "/usr/lib/python3.11", NULL);
	input->argv = texts("/usr/bin/python3.11", "-c", "pass", NULL);
	capabilities.spawn = false;
	capabilities.programs = texts("/usr/bin/python3.11", NULL);
}

static void with_all_of_the_host(struct profile_input *input)
{
	static struct place masked[] = { DIRECTORY("/root/.ssh"), NODE("/home/ada/.netrc") };
	input->view = VIEW_HOST_READONLY;
	input->home = "/tmp/home";
	input->masked = (struct places){ masked, COUNT(masked), 0 };
}

static void with_nothing_of_the_host(struct profile_input *input)
{
	static struct place reads[] = {
		DIRECTORY("/usr"),
		{ .path = "/usr/bin", .alias = "/bin", .device = 1, .inode = 4, .is_directory = true },
	};
	input->view = VIEW_BARE;
	input->reads = (struct places){ reads, COUNT(reads), 0 };
}

static void by_landlock(struct profile_input *input)
{
	with_grants(input);
	with_names(input);
	input->abilities = (struct profile_abilities){ "landlock", false, false, 6, false };
	input->scratch = input->home = "/home/ada/.local/share/cordon/scratch/00000000000000000000000000";
}

static void with_the_network_and_a_terminal(struct profile_input *input)
{
	capabilities.network = NETWORK_ALL;
	capabilities.limits.wall_ms = 1500;
	capabilities.limits.processes = 7;
	input->tty = true;
}

static void with_listed_hosts(struct profile_input *input)
{
	(void)input;
	capabilities.network = NETWORK_HOSTS;
	capabilities.hosts = texts("example.com:443", "git.example.com:22", "git.example.com:443", "*.example.org:443",
	                           "203.0.113.7:8080", NULL);
}

static void with_listed_hosts_and_all_of_the_host(struct profile_input *input)
{
	with_listed_hosts(input);
	with_all_of_the_host(input);
}

static void with_listed_hosts_and_all_of_etc(struct profile_input *input)
{
	static struct place reads[] = { DIRECTORY("/etc") };
	with_listed_hosts(input);
	input->reads = (struct places){ reads, 1, 0 };
	input->git_config = "[user]\n\tname = Ada\n";
}

static void where_the_data_would_show(struct profile_input *input)
{
	static struct place reads[] = { DIRECTORY("/home/ada") };
	in_a_session(input);
	input->reads = (struct places){ reads, 1, 0 };
}

static void beneath_var_tmp(struct profile_input *input)
{
	input->workspace = (struct place)DIRECTORY("/var/tmp/project");
	input->cwd = "/var/tmp/project/sub";
}

static const struct golden {
	const char *name;
	void (*change)(struct profile_input *input);
	bool bwrap;
} requests[] = {
	{ "standard", as_it_is, true },
	{ "session", in_a_session, false },
	{ "session-in-a-named-directory", in_a_session_with_a_named_directory, true },
	{ "grants", with_grants, true },
	{ "names", with_names, true },
	{ "programs", with_listed_programs_and_no_spawning, false },
	{ "host-readonly", with_all_of_the_host, true },
	{ "bare", with_nothing_of_the_host, false },
	{ "landlock", by_landlock, false },
	{ "network-and-terminal", with_the_network_and_a_terminal, true },
	{ "hosts", with_listed_hosts, true },
	{ "hosts-host-readonly", with_listed_hosts_and_all_of_the_host, true },
	{ "hosts-etc", with_listed_hosts_and_all_of_etc, true },
	{ "data-shown", where_the_data_would_show, false },
	{ "var-tmp", beneath_var_tmp, false },
};

static struct profile make(struct arena *arena, const struct golden *golden)
{
	struct profile profile;
	current = arena;
	struct profile_input input = standard(arena);
	golden->change(&input);
	assert_int_equal(profile_make(arena, &input, &profile), 0);
	if (profile.network == NETWORK_HOSTS)
		assert_int_equal(egress_make(arena, &capabilities.hosts, &profile.egress, NULL), 0);
	return profile;
}

static void test_profile(void **state)
{
	const struct golden *golden = *state;
	struct arena arena = { 0 };
	struct profile profile = make(&arena, golden);
	struct json json;
	char name[96];
	json_init(&json);
	json.pretty = true;
	profile_write_json(&json, &profile);
	char *text = json_take(&json);
	assert_non_null(text);
	if (strlen(text) && text[strlen(text) - 1] != '\n') {
		text = realloc(text, strlen(text) + 2);
		strcat(text, "\n");
	}
	leave_out_listing(text);
	snprintf(name, sizeof(name), "%s.json", golden->name);
	compare(name, text);
	free(text);
	arena_free(&arena);
}

/* One argument a line; what bubblewrap reads from descriptors comes after. */
static void test_bwrap(void **state)
{
	const struct golden *golden = *state;
	struct arena arena = { 0 };
	struct profile profile = make(&arena, golden);
	struct bwrap_plan plan = { 0 };
	char name[96], *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(bwrap_render(&arena, &profile, 1000, 1000, 4, 5, &plan), 0);
	for (size_t i = 0; i < plan.arguments.count; i++)
		fprintf(out, "%s%s",
		        i && strncmp(plan.arguments.items[i], "--", 2) ? " "
		        : i                                            ? "\n"
		                                                       : "",
		        plan.arguments.items[i]);
	fputc('\n', out);
	for (size_t i = 0; i < plan.text_count; i++)
		fprintf(out, "\n%d:\n%s", plan.texts[i].fd, plan.texts[i].text);
	fclose(out);
	snprintf(name, sizeof(name), "%s.bwrap", golden->name);
	compare(name, text);
	free(text);
	arena_free(&arena);
}

static const struct listing {
	const char *name;
	uint32_t architecture;
	unsigned options;
} listings[] = {
	{ "seccomp-x86_64.json", AUDIT_ARCH_X86_64, SECCOMP_NONE },
	{ "seccomp-x86_64-all-options.json", AUDIT_ARCH_X86_64, (1u << SECCOMP_OPTION_MAX) - 1 },
	{ "seccomp-arm64.json", AUDIT_ARCH_AARCH64, SECCOMP_NONE },
};

static void test_listing(void **state)
{
	const struct listing *listing = *state;
	struct json json;
	json_init(&json);
	json.pretty = true;
	seccomp_listing(&json, listing->architecture, listing->options);
	char *text = json_take(&json);
	assert_non_null(text);
	compare(listing->name, text);
	free(text);
}

/* The same input makes the same profile: twice in one process, from memory that was used before. */
static void test_pure(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(requests); i++) {
		char *texts[2];
		for (int turn = 0; turn < 2; turn++) {
			struct arena arena = { 0 };
			struct json json;
			struct profile profile = make(&arena, &requests[i]);
			json_init(&json);
			profile_write_json(&json, &profile);
			texts[turn] = json_take(&json);
			arena_free(&arena);
		}
		assert_string_equal(texts[0], texts[1]);
		free(texts[0]);
		free(texts[1]);
	}
}

int main(void)
{
	struct CMUnitTest tests[2 * COUNT(requests) + COUNT(listings) + 1];
	static char names[2 * COUNT(requests)][96];
	size_t count = 0;
	for (size_t i = 0; i < COUNT(requests); i++) {
		snprintf(names[2 * i], sizeof(names[0]), "profile %s", requests[i].name);
		tests[count++] = (struct CMUnitTest){ names[2 * i], test_profile, NULL, NULL, (void *)&requests[i] };
		snprintf(names[2 * i + 1], sizeof(names[0]), "bwrap %s", requests[i].name);
		if (requests[i].bwrap)
			tests[count++] =
				(struct CMUnitTest){ names[2 * i + 1], test_bwrap, NULL, NULL, (void *)&requests[i] };
	}
	for (size_t i = 0; i < COUNT(listings); i++)
		tests[count++] =
			(struct CMUnitTest){ listings[i].name, test_listing, NULL, NULL, (void *)&listings[i] };
	tests[count++] = (struct CMUnitTest){ "the same input makes the same profile", test_pure, NULL, NULL, NULL };
	return _cmocka_run_group_tests("golden", tests, count, NULL, NULL);
}
