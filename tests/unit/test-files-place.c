/* Which paths a file tool may open, and as what. Each with openat2() and without. */
#include "files-ground.h"
#include "system-has.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "files/read.h"

static void fill(void)
{
	put("outside/secret", "secret");
	put("work/file", "text");
	put("read/other", "other");
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	put("work/dir/inner", "inner");
	if (HAS_LINKS) {
		assert_int_equal(symlink("dir/inner", at("work/link-in")), 0);
		assert_int_equal(symlink("../outside/secret", at("work/link-out")), 0);
		assert_int_equal(symlink(at("outside"), at("work/link-absolute")), 0);
		assert_int_equal(symlink("nothing", at("work/link-dangling")), 0);
		assert_int_equal(symlink("/proc/self/root", at("work/link-magic")), 0);
		assert_int_equal(symlink("link-loop", at("work/link-loop")), 0);
	}
	if (HAS_SPECIAL_FILES)
		put("work/name\nwith\nnewlines", "odd");
}

static const struct {
	const char *path;               /* %s is the ground */
	unsigned how;
	enum cordon_class class;
} rows[] = {
	{ "file", 0, CORDON_OK },
	{ "./dir//inner", 0, CORDON_OK },
	{ "dir/../file", 0, CORDON_OK },
	{ "link-in", 0, CORDON_OK },
	{ "link-in", FILES_WRITE, CORDON_OK },
	{ "name\nwith\nnewlines", FILES_WRITE, CORDON_OK },
	{ "%s/work/file", 0, CORDON_OK },
	{ "%s/work//./dir/../file", 0, CORDON_OK },
	{ "%s/read/other", 0, CORDON_OK },
	{ "../read/other", 0, CORDON_E_CAPABILITY_DENIED },     /* by way of nothing that was granted */
	{ ".", 0, CORDON_OK },
	{ "new", FILES_WRITE | FILES_MAY_MISS, CORDON_OK },
	{ "new", 0, CORDON_E_NOT_FOUND },
	{ "new/deeper", FILES_WRITE | FILES_MAY_MISS, CORDON_E_NOT_FOUND },
	{ "file/deeper", 0, CORDON_E_NOT_FOUND },
	{ "", 0, CORDON_E_INVALID_REQUEST },
	{ "..", 0, CORDON_E_CAPABILITY_DENIED },
	{ "../outside/secret", 0, CORDON_E_CAPABILITY_DENIED },
	{ "dir/../../outside/secret", 0, CORDON_E_CAPABILITY_DENIED },
	{ "%s/outside/secret", 0, CORDON_E_CAPABILITY_DENIED },
	{ "%s/work/../outside/secret", 0, CORDON_E_CAPABILITY_DENIED },
	{ "%s/workx", 0, CORDON_E_CAPABILITY_DENIED },
	{ "/etc/passwd", 0, CORDON_E_CAPABILITY_DENIED },
	{ "/proc/self/root%s/outside/secret", 0, CORDON_E_CAPABILITY_DENIED },
	{ "link-magic/etc/passwd", 0, CORDON_E_CAPABILITY_DENIED },
	{ "link-out", 0, CORDON_E_CAPABILITY_DENIED },
	{ "link-out", FILES_WRITE | FILES_MAY_MISS, CORDON_E_CAPABILITY_DENIED },
	{ "link-absolute/secret", 0, CORDON_E_CAPABILITY_DENIED },
	{ "link-absolute/new", FILES_WRITE | FILES_MAY_MISS, CORDON_E_CAPABILITY_DENIED },
	{ "link-absolute/secret", FILES_WRITE | FILES_NO_FOLLOW, CORDON_E_CAPABILITY_DENIED },
	{ "link-out", FILES_WRITE | FILES_NO_FOLLOW, CORDON_OK },       /* the link itself */
	{ "link-dangling", 0, CORDON_E_NOT_FOUND },
	{ "link-dangling", FILES_WRITE | FILES_MAY_MISS, CORDON_E_CAPABILITY_DENIED },
	{ "link-loop", 0, CORDON_E_CAPABILITY_DENIED },
	{ "%s/read/other", FILES_WRITE, CORDON_E_CAPABILITY_DENIED },
	{ "%s/read/new", FILES_WRITE | FILES_MAY_MISS, CORDON_E_CAPABILITY_DENIED },
	{ "%s/work", FILES_WRITE, CORDON_E_INVALID_REQUEST },
	{ "%s/work", FILES_WRITE | FILES_NO_FOLLOW, CORDON_E_INVALID_REQUEST },
	{ "dir/..", FILES_WRITE | FILES_NO_FOLLOW, CORDON_E_INVALID_REQUEST },
};

static void paths_open_or_do_not(void **state)
{
	(void)state;
	fill();
	for (int round = 0; round < 2; round++) {
		ground_no_openat2 = round;
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			char path[256];
			if ((!HAS_LINKS && strstr(rows[i].path, "link")) ||
			    (!HAS_SPECIAL_FILES && strchr(rows[i].path, '\n')))
				continue;
			_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"")
			snprintf(path, sizeof(path), rows[i].path, ground);
			_Pragma("GCC diagnostic pop")
			enum cordon_class class = refused(path, rows[i].how);
			if (class != rows[i].class)
				fail_msg("%s (%u, openat2 %d): %s %s", path, rows[i].how, !round,
				         cordon_class_name(class), ground_err.reason);
		}
	}
}

static void relative_paths_begin_at_the_cwd(void **state)
{
	struct files_place place;
	(void)state;
	fill();
	char cwd[128];
	snprintf(cwd, sizeof(cwd), "%s", at("work/dir"));
	files.cwd = cwd;
	assert_int_equal(opens("inner", 0, &place), CORDON_OK);
	assert_string_equal(place.path, at("work/dir/inner"));
	files_place_close(&place);
	assert_int_equal(refused("../file", 0), CORDON_OK);
	assert_int_equal(refused("../../outside/secret", 0), CORDON_E_CAPABILITY_DENIED);
}

static void names_are_refused_whatever_the_case(void **state)
{
	static const char *const hidden[] = {
		".env", ".ENV", ".Env.local", "id_rsa", "dir/.SSH/config", ".aws/credentials", "x.PEM"
	};
	static const char *const kept[] = { ".cordon.toml", ".CORDON.toml",          ".git/config",
		                            ".GIT/Config",  ".git/hooks/pre-commit", ".git/hooks" };
	(void)state;
	fill();
	const char *const directories[] = { "work/dir/.SSH", "work/.aws", "work/.git", "work/.git/hooks", "work/.GIT" };
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		assert_true(mkdir(at(directories[i]), 0755) == 0 || (!HAS_CASE && errno == EEXIST));
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		char path[64];
		snprintf(path, sizeof(path), "work/%s", hidden[i]);
		assert_int_equal(refused(hidden[i], FILES_WRITE | FILES_MAY_MISS), CORDON_E_CAPABILITY_DENIED);
		put(path, "secret");
		assert_int_equal(refused(hidden[i], 0), CORDON_E_CAPABILITY_DENIED);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_int_equal(refused(kept[i], FILES_WRITE | FILES_MAY_MISS), CORDON_E_CAPABILITY_DENIED);
	put("work/.git/config", "[core]\n");
	assert_int_equal(refused(".git/config", 0), CORDON_OK);
	/* By another name. */
	if (!HAS_LINKS)
		return;
	assert_int_equal(symlink(".env", at("work/innocent")), 0);
	assert_int_equal(refused("innocent", 0), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(symlink(".git/config", at("work/settings")), 0);
	assert_int_equal(refused("settings", FILES_WRITE), CORDON_E_CAPABILITY_DENIED);
}

static void a_repository_is_not_made_by_parts(void **state)
{
	(void)state;
	assert_int_equal(mkdir(at("work/bare"), 0755), 0);
	assert_int_equal(mkdir(at("work/bare/objects"), 0755), 0);
	assert_int_equal(mkdir(at("work/bare/hooks"), 0755), 0);
	put("work/bare/HEAD", "ref: refs/heads/main\n");
	assert_int_equal(refused("bare/config", FILES_WRITE | FILES_MAY_MISS), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(refused("bare/hooks/pre-commit", FILES_WRITE | FILES_MAY_MISS), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(refused("bare/notes", FILES_WRITE | FILES_MAY_MISS), CORDON_OK);
	assert_int_equal(unlink(at("work/bare/HEAD")), 0);
	assert_int_equal(refused("bare/config", FILES_WRITE | FILES_MAY_MISS), CORDON_OK);
	put("work/bare/config", "");
	assert_int_equal(refused("bare/HEAD", FILES_WRITE | FILES_MAY_MISS), CORDON_E_CAPABILITY_DENIED);
}

static void only_regular_files_have_content(void **state)
{
	struct files_place place;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct files_content content;
	static const char *const others[] = { "dir", "pipe", "socket" };
	size_t count = HAS_SPECIAL_FILES ? ARRAY_SIZE(others) : 1;
	(void)state;
	fill();
	assert_true(!HAS_SPECIAL_FILES || mkfifo(at("work/pipe"), 0644) == 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", at("work/socket"));
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(!HAS_SPECIAL_FILES || bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(opens(others[i], 0, &place), CORDON_OK);
		assert_int_equal(files_read(&place, &(struct files_read){ 0 }, &content, &ground_err), -1);
		assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
		assert_non_null(strstr(ground_err.reason, "not a regular file"));
		files_place_close(&place);
	}
}

/* Where somebody granted them; one that never ends, and one that is never ready. */
static void devices_have_no_content(void **state)
{
	static const char *const devices[] = { "/dev/zero", "/dev/null", "/dev/random", "/dev/tty", "/dev/full" };
	struct files_root root = { .path = "/dev",
		                   .fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC),
		                   .writable = true };
	const struct files before = files;
	struct files_place place;
	struct files_content content;
	struct files_written written;
	(void)state;
	files.roots = &root;
	files.root_count = 1;
	files.cwd = "/dev";
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (access(devices[i], F_OK) < 0)
			continue;
		assert_int_equal(opens(devices[i], FILES_WRITE, &place), CORDON_OK);
		assert_int_equal(files_read(&place, &(struct files_read){ 0 }, &content, &ground_err), -1);
		assert_non_null(strstr(ground_err.reason, "not a regular file"));
		assert_int_equal(
			files_read(&place, &(struct files_read){ .limit = 1, .bytes = true }, &content, &ground_err),
			-1);
		assert_int_equal(files_send(&place, NULL, &content, &ground_err), -1);
		assert_non_null(strstr(ground_err.reason, "not a regular file"));
		assert_int_equal(
			files_edit(&files, &place, &(struct edit){ "a", "b", 1, 1, false }, NULL, &written, &ground_err),
			-1);
		assert_non_null(strstr(ground_err.reason, "not a regular file"));
		files_place_close(&place);
	}
	close(root.fd);
	files = before;
	/* Not tried on the machine's own. */
	if (mknod(at("work/device"), S_IFCHR | 0666, makedev(1, 3)) < 0)
		return;
	assert_int_equal(opens("device", FILES_WRITE, &place), CORDON_OK);
	assert_int_equal(files_write(&files, &place, &(struct files_write){ .data = "a", .length = 1 }, &written, &ground_err),
	                 -1);
	assert_int_equal(ground_err.class, CORDON_E_INVALID_REQUEST);
	files_place_close(&place);
}

static void tool_rules_hold_for_both_names(void **state)
{
	struct files_place place;
	(void)state;
	fill();
	assert_int_equal(
		strings_add(files.arena, &ground_rules.denied_paths, arena_strdup(files.arena, at("work/dir"))), 0);
	assert_int_equal(refused("dir/inner", 0), CORDON_E_CAPABILITY_DENIED);
	assert_true(!HAS_LINKS || refused("link-in", 0) == CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(refused("file", 0), CORDON_OK);
	assert_int_equal(rules_add(files.arena, &ground_rules, "read", at("work/file"), RULE_ASK, "here", NULL), 0);
	assert_int_equal(opens("file", 0, &place), CORDON_OK);
	assert_true(place.asks);
	files_place_close(&place);
	assert_int_equal(strings_add(files.arena, &ground_rules.allowed_paths, arena_strdup(files.arena, at("read"))),
	                 0);
	assert_int_equal(refused("file", 0), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(refused(at("read/other"), 0), CORDON_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths_open_or_do_not, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(relative_paths_begin_at_the_cwd, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(names_are_refused_whatever_the_case, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(a_repository_is_not_made_by_parts, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(devices_have_no_content, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(only_regular_files_have_content, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(tool_rules_hold_for_both_names, ground_setup, ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
