/* Writing, editing, making, removing, renaming. */
#include "files-ground.h"
#include "system-has.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files/write.h"

static struct files_written written;
static const char *comes_before_rename;         /* a file that is there when the next rename is made */

/* In the place of libc's. */
int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	int (*real)(int, const char *, int, const char *, unsigned);
	*(void **)&real = dlsym(RTLD_NEXT, "renameat2");
	if (comes_before_rename)
		put(comes_before_rename, "");
	comes_before_rename = NULL;
	return real(from_fd, from, to_fd, to, flags);
}

static enum cordon_class write_text(const char *path, const struct files_write *write)
{
	struct files_place place;
	enum cordon_class class = opens(path, FILES_WRITE | FILES_MAY_MISS, &place);
	if (class != CORDON_OK)
		return class;
	int result = files_write(&files, &place, write, &written, &ground_err);
	files_place_close(&place);
	return result < 0 ? (enum cordon_class)ground_err.class : CORDON_OK;
}

static enum cordon_class write_simply(const char *path, const char *text)
{
	return write_text(path, &(struct files_write){ .data = text, .length = strlen(text) });
}

static size_t count_entries(const char *path)
{
	size_t count = 0;
	DIR *directory = opendir(at(path));
	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2;
}

static void writing(void **state)
{
	struct stat info;
	(void)state;
	assert_int_equal(write_simply("new", "one"), CORDON_OK);
	assert_true(written.created);
	assert_string_equal(get("work/new"), "one");
	assert_int_equal(chmod(at("work/new"), 0750), 0);
	assert_int_equal(write_simply("new", "two"), CORDON_OK);
	assert_false(written.created);
	assert_string_equal(get("work/new"), "two");
	assert_int_equal(stat(at("work/new"), &info), 0);
	assert_true(!HAS_MODES || (info.st_mode & 07777) == 0750);
	/* A program that becomes another loses its bits. */
	assert_int_equal(chmod(at("work/new"), 04755), 0);
	assert_int_equal(write_simply("new", "three"), CORDON_OK);
	assert_int_equal(stat(at("work/new"), &info), 0);
	assert_true(!HAS_MODES || (info.st_mode & 07777) == 0755);
	assert_int_equal(write_text("new", &(struct files_write){ .data = "", .create = true }),
	                 CORDON_E_INVALID_REQUEST);
	assert_int_equal(write_simply("empty", ""), CORDON_OK);
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	assert_int_equal(write_simply("dir", "text"), CORDON_E_INVALID_REQUEST);
	assert_int_equal(count_entries("work"), 3);
}

static void a_link_inside_is_written_through_and_stays(void **state)
{
	struct stat info;
	(void)state;
	put("work/target", "old");
	assert_int_equal(symlink("target", at("work/link")), 0);
	assert_int_equal(write_simply("link", "new"), CORDON_OK);
	assert_string_equal(get("work/target"), "new");
	assert_int_equal(lstat(at("work/link"), &info), 0);
	assert_true(S_ISLNK(info.st_mode));
}

static void a_hard_link_to_an_outside_file_is_never_written(void **state)
{
	(void)state;
	put("outside/kept", "kept");
	assert_int_equal(link(at("outside/kept"), at("work/linked")), 0);
	assert_int_equal(write_simply("linked", "mine"), CORDON_OK);
	assert_string_equal(get("outside/kept"), "kept");
	assert_string_equal(get("work/linked"), "mine");
	assert_int_equal(unlink(at("work/linked")), 0);
	assert_int_equal(link(at("outside/kept"), at("work/linked")), 0);
	struct files_place place;
	assert_int_equal(opens("linked", FILES_WRITE, &place), CORDON_OK);
	assert_int_equal(
		files_edit(&files, &place, &(struct edit){ "kept", "gone", 4, 4, false }, NULL, &written, &ground_err),
		0);
	files_place_close(&place);
	assert_string_equal(get("outside/kept"), "kept");
	assert_string_equal(get("work/linked"), "gone");
}

static void versions(void **state)
{
	struct files_place place;
	char version[FILES_VERSION_SIZE];
	(void)state;
	put("work/file", "one");
	files_version("one", 3, version);
	assert_int_equal(write_text("file", &(struct files_write){ .data = "two", .length = 3, .version = version }),
	                 CORDON_OK);
	assert_int_equal(write_text("file", &(struct files_write){ .data = "3", .length = 1, .version = version }),
	                 CORDON_E_SESSION_BUSY);
	assert_string_equal(get("work/file"), "two");
	assert_int_equal(write_text("none", &(struct files_write){ .data = "3", .length = 1, .version = version }),
	                 CORDON_E_SESSION_BUSY);
	assert_int_equal(opens("file", FILES_WRITE, &place), CORDON_OK);
	assert_int_equal(
		files_edit(&files, &place, &(struct edit){ "two", "2", 3, 1, false }, version, &written, &ground_err),
		-1);
	assert_int_equal(ground_err.class, CORDON_E_SESSION_BUSY);
	files_place_close(&place);
	assert_int_equal(count_entries("work"), 1);
}

static void a_file_that_changes_during_an_edit_is_not_replaced(void **state)
{
	struct files_place place;
	const struct edited edited = { .data = (char[]){ "edited" }, .length = 6 };
	(void)state;
	/* In its place, as large, in the same tick of the clock; and by rename. */
	for (int round = 0; round < 3; round++) {
		struct stat before;
		put("work/file", "before");
		assert_int_equal(opens("file", FILES_WRITE, &place), CORDON_OK);
		assert_int_equal(fstat(place.fd, &before), 0);
		if (round == 0) {
			put("work/file", "AFTER!");
		} else if (round == 1) {
			put("work/other", "before");
			assert_int_equal(rename(at("work/other"), at("work/file")), 0);
		}
		int result = files_replace(&files, &place, &before, "before", 6, &edited, &ground_err);
		files_place_close(&place);
		assert_int_equal(result, round == 2 ? 0 : -1);
		if (round < 2)
			assert_int_equal(ground_err.class, CORDON_E_SESSION_BUSY);
		assert_string_equal(get("work/file"), round == 0 ? "AFTER!" : round == 1 ? "before" : "edited");
		assert_int_equal(count_entries("work"), 1);
	}
}

/* 5 GB, nearly all of it a hole: an edit is refused before it is read, and a write is as large as what is written. */
static void a_large_file_is_not_read_to_be_changed(void **state)
{
	struct files_place place;
	struct stat info;
	(void)state;
	put("work/sparse", "some text\n");
	assert_int_equal(truncate(at("work/sparse"), INT64_C(5) << 30), 0);
	assert_int_equal(opens("sparse", FILES_WRITE, &place), CORDON_OK);
	assert_int_equal(
		files_edit(&files, &place, &(struct edit){ "some", "more", 4, 4, false }, NULL, &written, &ground_err),
		-1);
	assert_int_equal(ground_err.class, CORDON_E_LIMIT_EXCEEDED);
	files_place_close(&place);
	assert_int_equal(stat(at("work/sparse"), &info), 0);
	assert_int_equal(info.st_size, INT64_C(5) << 30);
	assert_int_equal(write_simply("sparse", "short"), CORDON_OK);
	assert_string_equal(get("work/sparse"), "short");
	assert_int_equal(count_entries("work"), 1);
}

/* In a mount namespace of its own, with 64 KiB of space. */
static int fill_disk(void)
{
	struct files_root small = { .path = at("work"), .writable = true };
	auto_free char *much = malloc(1 << 20);
	char path[128];
	snprintf(path, sizeof(path), "%s", at("work"));
	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("tmpfs", path, "tmpfs", 0, "size=64k") < 0)
		return 77;
	memset(much, 'x', 1 << 20);
	small.path = path;
	small.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	files.roots = &small;
	files.root_count = 1;
	files.cwd = path;
	put("work/file", "kept");
	if (write_text("file", &(struct files_write){ .data = much, .length = 1 << 20 }) != CORDON_E_RESOURCE_EXHAUSTED)
		return 1;
	if (strcmp(get("work/file"), "kept") != 0 || count_entries("work") != 1)
		return 2;
	return write_text("new", &(struct files_write){ .data = much, .length = 1 << 20 }) ==
	                               CORDON_E_RESOURCE_EXHAUSTED &&
	                       count_entries("work") == 1
	               ? 0
	               : 3;
}

static void a_full_disk_leaves_the_old_content(void **state)
{
	int status;
	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fill_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("# skip: cannot: user-namespace: no mount namespace for a small file system\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static enum cordon_class remove_it(const char *path, bool recursive)
{
	struct files_place place;
	enum cordon_class class = opens(path, FILES_WRITE | FILES_NO_FOLLOW, &place);
	if (class != CORDON_OK)
		return class;
	int result = files_remove(&files, &place, recursive, &ground_err);
	files_place_close(&place);
	return result < 0 ? (enum cordon_class)ground_err.class : CORDON_OK;
}

static void removing(void **state)
{
	(void)state;
	put("outside/kept", "kept");
	put("work/file", "text");
	if (HAS_LINKS) {
		assert_int_equal(symlink("../outside/kept", at("work/link")), 0);
		assert_int_equal(symlink("../outside", at("work/directory-link")), 0);
	}
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	put("work/dir/inner", "text");
	assert_int_equal(remove_it("file", false), CORDON_OK);
	assert_int_equal(remove_it("file", false), CORDON_E_NOT_FOUND);
	if (HAS_LINKS) {
		assert_int_equal(remove_it("link", false), CORDON_OK);
		assert_int_equal(remove_it("directory-link", true), CORDON_OK);
	}
	assert_string_equal(get("outside/kept"), "kept");
	assert_int_equal(remove_it("dir", false), CORDON_E_INVALID_REQUEST);
	assert_int_equal(mkdir(at("work/dir/.git"), 0755), 0);
	put("work/dir/.git/config", "");
	assert_int_equal(remove_it("dir", true), CORDON_E_CAPABILITY_DENIED);
	assert_non_null(strstr(ground_err.reason, ".git/config"));
	assert_int_equal(unlink(at("work/dir/.git/config")), 0);
	put("work/dir/.env", "");
	assert_int_equal(remove_it("dir", true), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(unlink(at("work/dir/.env")), 0);
	assert_int_equal(remove_it("dir", true), CORDON_OK);
	assert_int_equal(count_entries("work"), 0);
}

static enum cordon_class rename_it(const char *from, const char *to, bool replace)
{
	struct files_place source, target;
	enum cordon_class class = opens(from, FILES_WRITE | FILES_NO_FOLLOW, &source);
	if (class != CORDON_OK)
		return class;
	class = opens(to, FILES_WRITE | FILES_NO_FOLLOW | FILES_MAY_MISS, &target);
	if (class == CORDON_OK) {
		if (files_rename(&files, &source, &target, replace, &ground_err) < 0)
			class = ground_err.class;
		files_place_close(&target);
	}
	files_place_close(&source);
	return class;
}

static void renaming(void **state)
{
	struct files_place place;
	(void)state;
	put("work/one", "1");
	put("work/two", "2");
	assert_int_equal(rename_it("one", "two", false), CORDON_E_INVALID_REQUEST);
	assert_int_equal(rename_it("one", "two", true), CORDON_OK);
	assert_string_equal(get("work/two"), "1");
	assert_int_equal(rename_it("two", "../outside/two", false), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(rename_it("two", ".env", false), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(rename_it("two", ".git", false), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(opens("dir", FILES_WRITE | FILES_NO_FOLLOW | FILES_MAY_MISS, &place), CORDON_OK);
	assert_int_equal(files_mkdir(&files, &place, &ground_err), 0);
	files_place_close(&place);
	/* What is harmless there would run here. */
	assert_int_equal(mkdir(at("work/dir/hooks"), 0755), 0);
	put("work/dir/hooks/pre-commit", "#!/bin/sh\n");
	assert_int_equal(rename_it("dir", ".git", false), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(rename_it("dir", "moved", false), CORDON_OK);
	put("work/moved/.env", "secret");
	assert_int_equal(rename_it("moved", "again", false), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(rename_it("moved/.env", "plain", false), CORDON_E_CAPABILITY_DENIED);
}

/* What a link called .hg leads to has hgrc in it by a name that nothing protects. */
static void a_link_takes_no_place_of_a_directory_with_protected_names(void **state)
{
	(void)state;
	assert_int_equal(mkdir(at("work/plain"), 0755), 0);
	put("work/plain/hgrc", "");
	assert_int_equal(symlink("plain", at("work/link")), 0);
	assert_int_equal(rename_it("link", ".hg", false), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(rename_it("link", ".HG", false), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(rename_it("link", "hg", false), CORDON_OK);
}

static enum cordon_class write_after(const char *path, const char *from, const char *to)
{
	struct files_place place;
	assert_int_equal(opens(path, FILES_WRITE | FILES_MAY_MISS, &place), CORDON_OK);
	assert_int_equal(rename(at(from), at(to)), 0);
	int result = files_write(&files, &place, &(struct files_write){ .data = "" }, &written, &ground_err);
	files_place_close(&place);
	return result < 0 ? (enum cordon_class)ground_err.class : CORDON_OK;
}

static void a_directory_that_gets_another_name_before_the_file_is_there(void **state)
{
	struct files_place place;
	(void)state;
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	assert_int_equal(write_after("dir/hgrc", "work/dir", "work/moved"), CORDON_OK);
	assert_int_equal(unlink(at("work/moved/hgrc")), 0);
	assert_int_equal(write_after("moved/hgrc", "work/moved", "work/.hg"), CORDON_E_CAPABILITY_DENIED);
	assert_int_equal(count_entries("work/.hg"), 0);
	/* In the very moment when the file comes into place. */
	assert_int_equal(rename(at("work/.hg"), at("work/dir")), 0);
	assert_int_equal(opens("dir/hgrc", FILES_WRITE | FILES_MAY_MISS, &place), CORDON_OK);
	put("work/dir/hgrc", "");
	assert_int_equal(rename(at("work/dir"), at("work/.hg")), 0);
	assert_int_equal(files_settle(&files, &place, 0, &ground_err), -1);
	files_place_close(&place);
	assert_int_equal(count_entries("work/.hg"), 0);
}

static void what_completes_a_repository_meanwhile(void **state)
{
	struct files_place place;
	(void)state;
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	assert_int_equal(opens("dir/objects", FILES_WRITE | FILES_NO_FOLLOW | FILES_MAY_MISS, &place), CORDON_OK);
	put("work/dir/HEAD", "ref: refs/heads/main\n");
	assert_int_equal(files_mkdir(&files, &place, &ground_err), -1);
	files_place_close(&place);
	assert_int_equal(count_entries("work/dir"), 1);
}

static void what_comes_into_a_directory_while_it_is_renamed(void **state)
{
	(void)state;
	assert_int_equal(mkdir(at("work/dir"), 0755), 0);
	comes_before_rename = "work/dir/hgrc";
	assert_int_equal(rename_it("dir", ".hg", false), CORDON_E_CAPABILITY_DENIED);
	assert_null(comes_before_rename);
	assert_int_equal(count_entries("work/dir"), 1);
	assert_int_equal(rename_it("dir", "other", false), CORDON_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writing, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(a_link_inside_is_written_through_and_stays, ground_setup,
		                                ground_teardown),
		cmocka_unit_test_setup_teardown(a_hard_link_to_an_outside_file_is_never_written, ground_setup,
		                                ground_teardown),
		cmocka_unit_test_setup_teardown(versions, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(a_file_that_changes_during_an_edit_is_not_replaced, ground_setup,
		                                ground_teardown),
		cmocka_unit_test_setup_teardown(a_large_file_is_not_read_to_be_changed, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_leaves_the_old_content, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(removing, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(renaming, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(a_link_takes_no_place_of_a_directory_with_protected_names, ground_setup,
		                                ground_teardown),
		cmocka_unit_test_setup_teardown(a_directory_that_gets_another_name_before_the_file_is_there,
		                                ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(what_completes_a_repository_meanwhile, ground_setup, ground_teardown),
		cmocka_unit_test_setup_teardown(what_comes_into_a_directory_while_it_is_renamed, ground_setup,
		                                ground_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
