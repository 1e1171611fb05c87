/* The WSL driver against a stand-in for wsl.exe, which lies in wine's own system directory (fake-wsl.c): what is asked
 * of it, in which order, and what is refused. No Linux runs here: what the distro would do is in the stand-in's script.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "driver/machine.h"
#include "driver/windows/windows.h"
#include "driver/wsl/inside.h"
#include "ran.h"

#include <cmocka.h>

#define IN "--distribution cordon-sandbox "
#define ROOT IN "--user root --cd / --exec "
#define USER IN "--cd / --exec "
#define SPLIT "\t"

static char here[PATH_MAX], place[PATH_MAX + 16], data[PATH_MAX + 16], work[PATH_MAX + 16], rootfs[PATH_MAX + 32],
	program[PATH_MAX + 32];
static char sum[WSL_SUM_SIZE];

static void put(const char *name, const char *bytes, size_t length)
{
	char path[PATH_MAX + 64];
	snprintf(path, sizeof(path), "%s/%s", place, name);
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, (unsigned)length), (int)length);
}

static char *get(const char *name)
{
	char path[PATH_MAX + 64];
	static char text[262144];
	snprintf(path, sizeof(path), "%s/%s", place, name);
	auto_close int fd = open(path, O_RDONLY);
	int got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[got < 0 ? 0 : got] = '\0';
	return text;
}

/* As wsl.exe writes. */
static void put_wide(const char *name, const char *text)
{
	char bytes[2048];
	size_t length = 0;
	for (; *text; text++) {
		bytes[length++] = *text;
		bytes[length++] = '\0';
	}
	put(name, bytes, length);
}

/* ---- a distro that does as it should ----------------------------------------------------------------------------- */

static const char good[] =
	ROOT "/bin/dd of=/etc/cordon-distro" SPLIT "0" SPLIT ">mark\n"
	ROOT "/bin/cat /etc/cordon-distro" SPLIT "0" SPLIT "mark\n"
	ROOT "/bin/cat /etc/passwd" SPLIT "0" SPLIT "passwd\n"
	ROOT "/bin/dd of=/etc/passwd" SPLIT "0" SPLIT ">passwd-new\n"
	ROOT "/bin/mkdir" SPLIT "0" SPLIT "-\n"
	ROOT "/bin/chown" SPLIT "0" SPLIT "-\n"
	ROOT "/bin/chmod" SPLIT "0" SPLIT "-\n"
	ROOT "/bin/dd of=/opt/cordon/cordon" SPLIT "0" SPLIT ">program-inside\n"
	ROOT "/bin/cat /opt/cordon/cordon" SPLIT "0" SPLIT "program-inside\n"
	ROOT "/bin/dd of=/opt/cordon/up" SPLIT "0" SPLIT "-\n"
	ROOT "/bin/dd of=/opt/cordon/down" SPLIT "0" SPLIT "-\n"
	ROOT "/bin/cat /opt/cordon/up /opt/cordon/down" SPLIT "0" SPLIT "scripts\n"
	ROOT "/bin/dd of=/etc/wsl.conf" SPLIT "0" SPLIT ">conf\n"
	ROOT "/bin/cat /etc/wsl.conf" SPLIT "0" SPLIT "conf\n"
	ROOT "/bin/cat /proc/self/mounts" SPLIT "0" SPLIT "&mounts\n"
	ROOT "/bin/sh /opt/cordon/up" SPLIT "0" SPLIT ">up-input\n"
	ROOT "/bin/sh /opt/cordon/down" SPLIT "0" SPLIT "-\n"
	ROOT "/bin/dd of=/run/cordon/" SPLIT "0" SPLIT ">written-last\n"
	USER "/usr/bin/id -u" SPLIT "0" SPLIT "uid\n"
	USER "/usr/bin/env" SPLIT "0" SPLIT "env\n"
	USER "/opt/cordon/cordon doctor --json" SPLIT "0" SPLIT "doctor\n"
	"--import cordon-sandbox" SPLIT "0" SPLIT ">imported\n"
	"--terminate cordon-sandbox" SPLIT "0" SPLIT "-\n"
	"--unregister cordon-sandbox" SPLIT "0" SPLIT "-\n";

static void write_doctor(const char *without)
{
	char text[4096] = "{\"default_driver\":\"namespaces\",\"drivers\":[{\"name\":\"bwrap\",\"works\":false},{"
	                  "\"name\":\"namespaces\",\"works\":true,\"walls\":[";
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		const char *name = cordon_wall_name((enum cordon_wall)wall);
		if (!without || strcmp(name, without) != 0)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
			         "%s{\"wall\":\"%s\",\"mechanism\":\"m\",\"holds\":true}",
			         text[strlen(text) - 1] == '[' ? "" : ",", name);
	}
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "]}],\"holds\":true}");
	put("doctor", text, strlen(text));
}

/* `first`: lines that count before those of a good distro. */
static void play(const char *first, const char *list)
{
	char text[16384], mounts[4096];
	int name = 0;
	snprintf(text, sizeof(text), "%s%s", first, good);
	put("script", text, strlen(text));
	put("calls", "", 0);
	for (char input[32]; name < 100; name++) {
		snprintf(input, sizeof(input), "%s/input-%d", "wsl-place", name);
		unlink(input);
	}
	put_wide("list", list);
	put_wide("listed", "  NAME STATE VERSION\r\n* Ubuntu Running 2\r\n  cordon-sandbox   Stopped   2\r\n");
	put_wide("not-listed", "  NAME STATE VERSION\r\n* Ubuntu Running 2\r\n");
	put("passwd", "root:x:0:0:root:/root:/bin/sh", 29);
	put("uid", "64817\n", 6);
	put("env", "HOME=/home/cordon\nPATH=/usr/bin:/bin\n", 37);
	snprintf(text, sizeof(text), "%s%s", wsl_up, wsl_down);
	put("scripts", text, strlen(text));
	snprintf(mounts, sizeof(mounts),
	         "/dev/sdc / ext4 rw 0 0\ndrivers /usr/lib/wsl/drivers 9p ro,aname=drivers;fmask=222 0 0\n"
	         "C:\\134 /workspace/@ 9p rw,nosuid,aname=drvfs;path=Z:%s;uid=64817,trans=fd 0 0\n", work + 2);
	for (char *at = strstr(mounts, "path="); *at && *at != ';'; at++)
		if (*at == '/') {
			memmove(at + 4, at + 1, strlen(at));
			memcpy(at, "\\134", 4);
		}
	put("mounts", mounts, strlen(mounts));
	write_doctor(NULL);
}

#define FRESH "!--list --verbose" SPLIT "0" SPLIT "not-listed\n"
#define THERE "--list --verbose" SPLIT "0" SPLIT "listed\n"
#define GONE "--list --verbose" SPLIT "0" SPLIT "not-listed\n"

static int set_up_distro(struct cordon_error *err)
{
	const struct wsl_setup setup = { .rootfs = rootfs, .sum = sum, .program = program };
	return wsl_set_up(data, &setup, err);
}

/* A distro that is set up and cordon's. */
static void ready(const char *first)
{
	struct cordon_error err = { 0 };
	char text[8192];
	play(FRESH THERE, "");
	if (set_up_distro(&err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
	snprintf(text, sizeof(text), "%s" THERE, first);
	char mark[128], *now = get("mark");
	snprintf(mark, sizeof(mark), "%s", now);
	play(text, "");
}

static size_t count_calls(const char *with)
{
	size_t count = 0;
	for (const char *at = get("calls"); (at = strstr(at, with)); at++)
		count++;
	return count;
}

static int begin(void **state)
{
	char path[PATH_MAX + 64];
	(void)state;
	snprintf(path, sizeof(path), "%s/wsl/record", data);
	unlink(path);
	put("script", "", 0);
	put("calls", "", 0);
	return 0;
}

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static void the_sequence_of_a_setup(void **state)
{
	static const char *const wanted[] = {
		"--list --verbose",
		"--import cordon-sandbox ",
		ROOT "/bin/dd of=/etc/cordon-distro < 27 bytes",
		ROOT "/bin/cat /etc/passwd",
		ROOT "/bin/dd of=/etc/passwd < ",
		ROOT "/bin/mkdir -p /opt/cordon /workspace /home/cordon",
		ROOT "/bin/chown 64817:64817 /home/cordon",
		ROOT "/bin/chmod 0700 /home/cordon",
		ROOT "/bin/dd of=/opt/cordon/cordon < 100000 bytes",
		ROOT "/bin/chmod 0755 /opt/cordon/cordon",
		ROOT "/bin/dd of=/opt/cordon/up < ",
		ROOT "/bin/dd of=/opt/cordon/down < ",
		ROOT "/bin/dd of=/etc/wsl.conf < ",
		"--terminate cordon-sandbox",
		"--list --verbose",
		ROOT "/bin/cat /etc/cordon-distro",
		ROOT "/bin/cat /etc/wsl.conf",
		ROOT "/bin/cat /opt/cordon/up /opt/cordon/down",
		USER "/usr/bin/id -u",
		ROOT "/bin/cat /proc/self/mounts",
		USER "/usr/bin/env",
		ROOT "/bin/cat /opt/cordon/cordon",
		USER "/opt/cordon/cordon doctor --json",
	};
	struct cordon_error err = { 0 };
	(void)state;
	SetEnvironmentVariableW(L"WSLENV", L"SECRET/u");
	play(FRESH THERE, "");
	if (set_up_distro(&err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
	SetEnvironmentVariableW(L"WSLENV", NULL);
	const char *at = get("calls");
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (strncmp(at, wanted[i], strlen(wanted[i])) != 0)
			fail_msg("call %zu is %.*s, and should be %s", i, (int)strcspn(at, "\n"), at, wanted[i]);
		at += strcspn(at, "\n") + 1;
	}
	assert_string_equal(at, "");
	assert_null(strstr(get("calls"), "WSLENV"));
	/* The archive, whole, by standard input; into cordon's own data. */
	assert_non_null(strstr(get("calls"), "wsl-data\\wsl\\disk - --version 2 < 300000 bytes"));
	assert_string_equal(get("conf"), wsl_settings);
	assert_non_null(strstr(get("conf"), "[automount]\nenabled=false\n"));
	assert_non_null(strstr(get("conf"), "[interop]\nenabled=false\nappendWindowsPath=false\n"));
	assert_non_null(strstr(get("conf"), "[user]\ndefault=cordon\n"));
	assert_string_equal(get("passwd-new"),
	                    "root:x:0:0:root:/root:/bin/sh\ncordon:x:64817:64817::/home/cordon:/bin/sh\n");
}

static void another_sum_imports_nothing(void **state)
{
	struct cordon_error err = { 0 };
	struct wsl_setup setup = { .rootfs = rootfs, .sum = sum, .program = program };
	char wrong[WSL_SUM_SIZE];
	(void)state;
	play(FRESH THERE, "");
	strcpy(wrong, sum);
	wrong[63] = wrong[63] == '0' ? '1' : '0';
	setup.sum = wrong;
	assert_int_equal(wsl_set_up(data, &setup, &err), -1);
	assert_non_null(strstr(err.reason, sum));
	setup.sum = "abc";
	assert_int_equal(wsl_set_up(data, &setup, &err), -1);
	setup.sum = sum;
	setup.rootfs = "/z/no/such/file";
	assert_int_equal(wsl_set_up(data, &setup, &err), -1);
	assert_string_equal(get("calls"), "");
}

static void a_distro_that_is_there_is_left_alone(void **state)
{
	struct cordon_error err = { 0 };
	(void)state;
	play(THERE, "");
	put("mark", "01KA2F8S5T0QJ4ZP0000000000\n", 27);
	assert_int_equal(set_up_distro(&err), -1);
	assert_non_null(strstr(err.reason, "not cordon's"));
	assert_int_equal(count_calls("--import") + count_calls("--unregister") + count_calls("/bin/dd"), 0);
	ready("");
	assert_int_equal(set_up_distro(&err), -1);
	assert_non_null(strstr(err.reason, "already"));
	assert_int_equal(count_calls("--import") + count_calls("--unregister") + count_calls("/bin/dd"), 0);
}

/* Each thing that does not read back, and by which name it is refused; what was half made is gone then. */
static void what_does_not_read_back_refuses(void **state)
{
	static const struct {
		const char *script, *name;
	} rows[] = {
		{ ROOT "/bin/cat /etc/wsl.conf" SPLIT "0" SPLIT "uid\n", "settings" },
		{ ROOT "/bin/cat /etc/wsl.conf" SPLIT "1" SPLIT "-\n", "settings" },
		{ ROOT "/bin/cat /opt/cordon/up /opt/cordon/down" SPLIT "0" SPLIT "uid\n", "scripts" },
		{ USER "/usr/bin/id -u" SPLIT "0" SPLIT "root-uid\n", "user" },
		{ ROOT "/bin/cat /proc/self/mounts" SPLIT "0" SPLIT "mounts-with-drive\n", "drives" },
		{ ROOT "/bin/cat /proc/self/mounts" SPLIT "0" SPLIT "-\n", "drives" },
		{ USER "/usr/bin/env" SPLIT "0" SPLIT "env-with-interop\n", "interop" },
		{ USER "/usr/bin/env" SPLIT "0" SPLIT "-\n", "interop" },
		{ ROOT "/bin/cat /opt/cordon/cordon" SPLIT "0" SPLIT "uid\n", "program" },
		{ USER "/opt/cordon/cordon doctor --json" SPLIT "1" SPLIT "doctor\n", "walls" },
		{ USER "/opt/cordon/cordon doctor --json" SPLIT "0" SPLIT "uid\n", "walls" },
	};
	(void)state;
	put("root-uid", "0\n", 2);
	static const char drive[] =
		"/dev/sdc / ext4 rw 0 0\nC:\\134 /mnt/c 9p rw,aname=drvfs;path=C:\\134,trans=fd 0 0\n";
	static const char interop[] = "PATH=/bin\nWSL_INTEROP=/run/WSL/8_interop\n";
	put("mounts-with-drive", drive, sizeof(drive) - 1);
	put("env-with-interop", interop, sizeof(interop) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cordon_error err = { 0 };
		char script[2048];
		begin(NULL);
		/* Before it was removed it is listed; then not. */
		snprintf(script, sizeof(script), FRESH "!" THERE GONE "%s", rows[i].script);
		play(script, "");
		assert_int_equal(set_up_distro(&err), -1);
		assert_int_equal(err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
		assert_string_equal(err.subject, rows[i].name);
		assert_int_equal(count_calls("--unregister cordon-sandbox"), 1);
	}
}

static void a_failure_on_the_way_leaves_nothing(void **state)
{
	static const char *const rows[] = { "--import" SPLIT "1" SPLIT "uid\n",
		                            ROOT "/bin/dd of=/etc/wsl.conf" SPLIT "1" SPLIT "-\n",
		                            ROOT "/bin/cat /etc/passwd" SPLIT "0" SPLIT "passwd-new\n" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cordon_error err = { 0 };
		struct wsl_record record;
		char script[2048];
		snprintf(script, sizeof(script), FRESH GONE "%s", rows[i]);
		play(script, "");
		put("passwd-new", "cordon:x:1000:1000::/home/x:/bin/sh\n", 36);
		assert_int_equal(set_up_distro(&err), -1);
		assert_int_equal(count_calls("--unregister cordon-sandbox"), 1);
		assert_false(wsl_record_read(data, &record));
	}
}

/* ---- looking and removing ---------------------------------------------------------------------------------------- */

static void status_says_what_reads_back(void **state)
{
	struct arena arena = { 0 };
	struct wsl_status status;
	struct cordon_error err = { 0 };
	(void)state;
	play(GONE, "");
	assert_int_equal(wsl_status(&arena, data, &status, &err), 0);
	assert_false(status.registered || status.holds);
	assert_int_equal(count_calls("--exec"), 0);
	ready("");
	assert_int_equal(wsl_status(&arena, data, &status, &err), 0);
	assert_true(status.registered && status.holds);
	assert_int_equal(status.count, 10);
	assert_string_equal(status.mechanisms[CORDON_WALL_FILESYSTEM], "WSL: m");
	/* One of another's: nothing but its mark is asked for. */
	ready("");
	put("mark", "01KA2F8S5T0QJ4ZP0000000000\n", 27);
	assert_int_equal(wsl_status(&arena, data, &status, &err), 0);
	assert_true(status.registered && !status.holds);
	assert_int_equal(count_calls("--exec"), 1);
	/* WSL 1 has no kernel of its own. */
	ready("--list --verbose" SPLIT "0" SPLIT "list\n");
	put_wide("list", "  NAME STATE VERSION\r\n  cordon-sandbox   Stopped   1\r\n");
	assert_int_equal(wsl_status(&arena, data, &status, &err), 0);
	assert_false(status.holds);
	arena_free(&arena);
}

static void reset_asks_for_the_name(void **state)
{
	struct cordon_error err = { 0 };
	struct wsl_record record;
	(void)state;
	ready("");
	assert_int_equal(wsl_reset(data, "Ubuntu", &err), -1);
	assert_int_equal(wsl_reset(data, "", &err), -1);
	assert_string_equal(get("calls"), "");
	put("mark", "01KA2F8S5T0QJ4ZP0000000000\n", 27);
	assert_int_equal(wsl_reset(data, WSL_DISTRO, &err), -1);
	assert_non_null(strstr(err.reason, "no mark"));
	assert_int_equal(count_calls("--unregister"), 0);
	ready("!" THERE GONE);
	assert_int_equal(wsl_reset(data, WSL_DISTRO, &err), 0);
	assert_int_equal(count_calls("--unregister cordon-sandbox"), 1);
	assert_false(wsl_record_read(data, &record));
	/* It says that it did, and it is still there. */
	ready("");
	assert_int_equal(wsl_reset(data, WSL_DISTRO, &err), -1);
	assert_true(wsl_record_read(data, &record));
	play(GONE, "");
	assert_int_equal(wsl_reset(data, WSL_DISTRO, &err), -1);
	assert_int_equal(err.class, CORDON_E_NOT_FOUND);
}

/* ---- a command --------------------------------------------------------------------------------------------------- */

static struct ran ran;

static void prepare(void)
{
	static const char *environment[] = { "PATH=C:\\windows", "TOKEN=it's", "TEMP=C:\\t" },
			  *argv[] = { "make", "two words", "a'b", "" };
	ran = (struct ran){ 0 };
	ran.op = (struct mount_op){ .kind = MOUNT_BIND, .flags = MOUNT_GRANTED, .source = work, .target = work };
	ran.profile = (struct profile){ .driver = "wsl",
		                        .cwd = work,
		                        .workspace = work,
		                        .program = "make",
		                        .network = NETWORK_NONE,
		                        .spawn = true,
		                        .argv = { .items = argv, .count = ARRAY_SIZE(argv) },
		                        .environment = { .items = environment, .count = ARRAY_SIZE(environment) },
		                        .mounts = { .ops = &ran.op, .count = 1 },
		                        .walls = WALLS_ALL & ~WALL_BIT(PROGRAMS) };
	ran_prepare(&ran);
}

static int raise_walls(void)
{
	const struct walls walls = { .arena = &ran.arena, .profile = &ran.profile, .cwd_fd = -1, .data_dir = data };
	return driver_wsl.raise(&driver_wsl, &walls, &ran.sandbox, &ran.err);
}

static void finish(void)
{
	assert_int_equal(driver_wsl.start(ran.sandbox, &ran.command, &ran.running, &ran.err), 0);
	ran_finish(&ran);
}

static void clear(void)
{
	ran_clear(&ran, &driver_wsl);
}

#define COMMAND_IS(status, answer) USER "/bin/sh /run/cordon/" SPLIT status SPLIT answer "\n"

static void a_command_runs_in_it(void **state)
{
	const char *isolation[CORDON_WALL_MAX];
	char id[WSL_ID_SIZE], wanted[8192];
	(void)state;
	ready(COMMAND_IS("7", "said"));
	put("said", "from inside\n", 12);
	prepare();
	if (raise_walls() < 0)
		fail_msg("%s: %s", ran.err.subject, ran.err.reason);
	driver_wsl.describe(ran.sandbox, &ran.arena, &ran.profile, isolation);
	assert_string_equal(isolation[CORDON_WALL_NETWORK], "WSL: m");
	assert_null(isolation[CORDON_WALL_PROGRAMS]);
	assert_string_equal(isolation[CORDON_WALL_LIFETIME], "none");
	finish();
	assert_int_equal(ran.outcome.exit_code, 7);
	assert_string_equal(ran.outcome.streams[CORDON_STDOUT].data, "from inside\n");
	clear();
	snprintf(id, sizeof(id), "%s", get("id"));
	snprintf(wanted, sizeof(wanted),
	         "echo $$ > /run/cordon/%s/pid || exit 125\nexec /opt/cordon/cordon run --quiet --no-ask --no-daemon "
	         "--config '/run/cordon/%s/config.toml'"
	         " --workspace '/workspace/%s' --cwd '/workspace/%s' --net none --spawn --env 'TOKEN=it'\\''s' -- "
	         "'make' 'two words' 'a'\\''b' ''\n",
	         id, id, id, id);
	assert_string_equal(get("written-last"), wanted);
	char *input = get("up-input"), *end = strstr(input, "\\wsl-work\n");
	assert_true(input[0] == 'Z' && end && !end[strlen("\\wsl-work\n")]);
	/* In the user's own name, and no word of the command in the list of processes. */
	snprintf(wanted, sizeof(wanted), USER "/bin/sh /run/cordon/%s/command\n", id);
	assert_int_equal(count_calls(wanted), 1);
	assert_int_equal(count_calls("two words"), 0);
	snprintf(wanted, sizeof(wanted), ROOT "/bin/sh /opt/cordon/down %s\n", id);
	assert_int_equal(count_calls(wanted), 1);
	assert_int_equal(count_calls("--terminate"), 0);
}

static void input_goes_through(void **state)
{
	char path[PATH_MAX + 64];
	(void)state;
	ready(COMMAND_IS("0", "="));
	put("input", "to be said again\n", 17);
	snprintf(path, sizeof(path), "%s/input", place);
	auto_close int fd = open(path, O_RDONLY);
	prepare();
	assert_int_equal(raise_walls(), 0);
	ran.command.stdin_fd = fd;
	finish();
	assert_string_equal(ran.outcome.streams[CORDON_STDOUT].data, "to be said again\n");
	assert_int_equal(ran.outcome.exit_code, 0);
	clear();
}

static void refused(const char *wall)
{
	assert_int_equal(raise_walls(), -1);
	assert_int_equal(ran.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(ran.err.boundary, wall);
	assert_int_equal(count_calls("/bin/sh /run/cordon/"), 0);
	clear();
}

static void no_command_without_its_walls(void **state)
{
	struct mount_op more[2];
	(void)state;
	static const char elsewhere[] =
		"/dev/sdc / ext4 rw 0 0\nC:\\134 /workspace/@ 9p rw,aname=drvfs;path=C:\\134,trans=fd 0 0\n";
	put("mounts-elsewhere", elsewhere, sizeof(elsewhere) - 1);
	ready("!" ROOT "/bin/cat /proc/self/mounts" SPLIT "0" SPLIT "&mounts\n" ROOT "/bin/cat /proc/self/mounts" SPLIT
	      "0" SPLIT "&mounts-elsewhere\n");
	prepare();
	refused("filesystem");
	assert_int_equal(count_calls("/opt/cordon/down "), 1);
	ready(ROOT "/bin/sh /opt/cordon/up" SPLIT "1" SPLIT "-\n");
	prepare();
	refused("filesystem");
	/* A wall that its doctor does not name. */
	ready("");
	write_doctor("network");
	prepare();
	refused("network");
	assert_int_equal(count_calls("/bin/sh /opt/cordon/up "), 0);
	/* More than one directory, hosts, a terminal. */
	ready("");
	prepare();
	more[0] = ran.op;
	more[1] = (struct mount_op){
		.kind = MOUNT_BIND, .flags = MOUNT_GRANTED | MOUNT_READ_ONLY, .source = "/c/other", .target = "/c/other"
	};
	ran.profile.mounts = (struct mount_plan){ .ops = more, .count = 2 };
	refused("filesystem");
	prepare();
	ran.profile.network = NETWORK_HOSTS;
	refused("network");
	prepare();
	ran.profile.tty = true;
	refused("terminal");
	assert_string_equal(get("calls"), "");
}

/* Where the distro cannot take a command down, it goes down itself. */
static void what_cannot_be_taken_down_ends_with_the_distro(void **state)
{
	(void)state;
	ready(COMMAND_IS("0", "-") ROOT "/bin/sh /opt/cordon/down" SPLIT "1" SPLIT "-\n");
	prepare();
	assert_int_equal(raise_walls(), 0);
	finish();
	clear();
	assert_int_equal(count_calls("--terminate cordon-sandbox"), 1);
}

static void what_was_killed_is_taken_down(void **state)
{
	char id[WSL_ID_SIZE], wanted[128], path[PATH_MAX + 64];
	struct stat info;
	(void)state;
	ready("");
	prepare();
	assert_int_equal(raise_walls(), 0);
	snprintf(id, sizeof(id), "%s", get("id"));
	snprintf(path, sizeof(path), "%s/wsl/%s", data, id);
	snprintf(wanted, sizeof(wanted), ROOT "/bin/sh /opt/cordon/down %s\n", id);
	/* Its process lives. */
	assert_int_equal(stat(path, &info), 0);
	driver_sweep(data);
	assert_int_equal(count_calls(wanted), 0);
	clear();
	assert_int_equal(count_calls(wanted), 1);
	assert_int_not_equal(stat(path, &info), 0);
	/* As it leaves it when it is killed. */
	ready("");
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	driver_sweep(data);
	assert_int_equal(count_calls(wanted), 1);
	assert_int_not_equal(stat(path, &info), 0);
	driver_sweep(data);
	assert_int_equal(count_calls(wanted), 1);
}

/* ---- the program itself ------------------------------------------------------------------------------------------ */

static void another_wsl_exe_is_not_run(void **state)
{
	struct arena arena = { 0 };
	struct wsl_status status;
	struct cordon_error err = { 0 };
	wchar_t real[MAX_PATH], aside[MAX_PATH];
	(void)state;
	assert_int_equal(wsl_program(real, &err), 0);
	swprintf(aside, MAX_PATH, L"%ls.aside", real);
	/* One lies in the current directory, which comes first where a program is looked for by its name. */
	assert_true(CopyFileW(real, L"wsl.exe", FALSE));
	assert_true(MoveFileW(real, aside));
	play(GONE, "");
	assert_int_equal(wsl_status(&arena, data, &status, &err), -1);
	assert_int_equal(err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(get("calls"), "");
	assert_true(MoveFileW(aside, real));
	assert_true(DeleteFileW(L"wsl.exe"));
	assert_int_equal(wsl_status(&arena, data, &status, &err), 0);
	arena_free(&arena);
}

static void what_prints_too_much_is_refused(void **state)
{
	struct arena arena = { 0 };
	struct wsl_status status;
	struct cordon_error err = { 0 };
	(void)state;
	static char much[WSL_OUTPUT_MAX + 4096];
	memset(much, 'x', sizeof(much));
	play("--list --verbose" SPLIT "0" SPLIT "much\n", "");
	put("much", much, sizeof(much));
	assert_int_equal(wsl_status(&arena, data, &status, &err), -1);
	arena_free(&arena);
}

static void make_file(const char *path, size_t size, char sum_of[WSL_SUM_SIZE])
{
	unsigned char hash[32];
	char *bytes = malloc(size);
	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	sha256(hash, bytes, size);
	for (size_t i = 0; i < 32; i++)
		snprintf(sum_of + 2 * i, 3, "%02x", hash[i]);
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, bytes, (unsigned)size), (int)size);
	free(bytes);
}

static int make_ground(void **state)
{
	char unused[WSL_SUM_SIZE];
	(void)state;
	mkdir(place, 0700);
	mkdir(data, 0700);
	mkdir(work, 0700);
	make_file(rootfs, 300000, sum);
	make_file(program, 100000, unused);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_sequence_of_a_setup, begin),
		cmocka_unit_test_setup(another_sum_imports_nothing, begin),
		cmocka_unit_test_setup(a_distro_that_is_there_is_left_alone, begin),
		cmocka_unit_test_setup(what_does_not_read_back_refuses, begin),
		cmocka_unit_test_setup(a_failure_on_the_way_leaves_nothing, begin),
		cmocka_unit_test_setup(status_says_what_reads_back, begin),
		cmocka_unit_test_setup(reset_asks_for_the_name, begin),
		cmocka_unit_test_setup(a_command_runs_in_it, begin),
		cmocka_unit_test_setup(input_goes_through, begin),
		cmocka_unit_test_setup(no_command_without_its_walls, begin),
		cmocka_unit_test_setup(what_cannot_be_taken_down_ends_with_the_distro, begin),
		cmocka_unit_test_setup(what_was_killed_is_taken_down, begin),
		cmocka_unit_test_setup(another_wsl_exe_is_not_run, begin),
		cmocka_unit_test_setup(what_prints_too_much_is_refused, begin),
	};
	wchar_t wide[PATH_MAX];
	if (!getcwd(here, sizeof(here)))
		return 1;
	snprintf(place, sizeof(place), "%s/wsl-place", here);
	snprintf(data, sizeof(data), "%s/wsl-data", here);
	snprintf(work, sizeof(work), "%s/wsl-work", here);
	snprintf(rootfs, sizeof(rootfs), "%s/rootfs.tar.gz", here);
	snprintf(program, sizeof(program), "%s/cordon-linux", here);
	swprintf(wide, PATH_MAX, L"%c:%hs", place[1] - 'a' + 'A', place + 2);
	SetEnvironmentVariableW(L"FAKE_WSL", wide);
	return cmocka_run_group_tests_name("wsl", tests, make_ground, NULL);
}
