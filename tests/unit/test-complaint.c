/* Words by which programs tell that a limit was met. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "run/complaint.h"

static void test_what_programs_say(void **state)
{
	(void)state;
	static const struct {
		const char *said;
		enum complaint complaint;
	} rows[] = {
		{ "", COMPLAINT_NONE },
		{ "cat: x: No such file or directory\n", COMPLAINT_NONE },
		{ "sh: 1: Cannot fork\n", COMPLAINT_PROCESSES },
		{ "bash: fork: retry: Resource temporarily unavailable\n", COMPLAINT_PROCESSES },
		{ "RuntimeError: can't start new thread\n", COMPLAINT_PROCESSES },
		{ "BlockingIOError: [Errno 11] Resource temporarily unavailable\n", COMPLAINT_PROCESSES },
		{ "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory\n",
		  COMPLAINT_PROCESSES },
		{ "OSError: [Errno 24] Too many open files: 'x'\n", COMPLAINT_FILES },
		{ "Error: EMFILE: too many open files, open 'x'\n", COMPLAINT_FILES },
		{ "dd: error writing '/tmp/x': No space left on device\n", COMPLAINT_SPACE },
		{ "cp: error writing 'x': Disk quota exceeded\n", COMPLAINT_SPACE },
		{ "MemoryError\n", COMPLAINT_MEMORY },
		{ "touch: cannot touch '/etc/x': Read-only file system\n", COMPLAINT_READ_ONLY },
		{ "Error: EROFS: read-only file system, open '/etc/x'\n", COMPLAINT_READ_ONLY },
		{ "terminate called after throwing an instance of 'std::bad_alloc'\n", COMPLAINT_MEMORY },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(complaint_find(rows[i].said, strlen(rows[i].said)), rows[i].complaint);
}

static void test_which_file_is_missed(void **state)
{
	(void)state;
	static const struct {
		const char *said, *path;
		bool is_write;
	} rows[] = {
		{ "", NULL, false },
		{ "cat: x: No such file or directory\n", NULL, false },
		{ "all is well in /srv/x\n", NULL, false },
		{ "one\ncat: /srv/data/x: No such file or directory\ncat: /srv/y: No such file or directory\n",
		  "/srv/data/x", false },
		{ "ls: cannot access '/home/ada/x y': No such file or directory\n", "/home/ada/x y", false },
		{ "/bin/sh: 1: cannot create /etc/x: Read-only file system\n", "/etc/x", true },
		{ "FileNotFoundError: [Errno 2] No such file or directory: '/srv/in.csv'\n", "/srv/in.csv", false },
		{ "Error: ENOENT: no such file or directory, open '/srv/in.csv'\n", "/srv/in.csv", false },
		{ "open /srv/in.csv: permission denied\n", "/srv/in.csv", false },
		{ "touch: cannot touch '/mnt/x': Read-only file system\n", "/mnt/x", true },
		{ "cat: /srv/$(reboot): No such file or directory\n", NULL, false },
		{ "cat: '/srv/$(reboot)': No such file or directory\n", NULL, false },
		{ "sh: 1: cannot open /home/ada/My Files/x: No such file\nor: No such file or directory\n", NULL,
		  false },
		{ "cat: '/home/ada/x: No such file or directory\n", "/home/ada/x", false },
		{ "cat: \xe2\x80\x98/home/ada/My Files/x\xe2\x80\x99: No such file or directory\n",
		  "/home/ada/My Files/x", false },
		{ "open(\"/srv/a b\"): No such file or directory", "/srv/a b", false },
		{ "cannot stat `/srv/a b': No such file or directory", "/srv/a b", false },
		{ "ENOENT: opening /srv/a, which is there\n", "/srv/a", false },
		{ "No such file or directory: /srv/a.\r\n", "/srv/a", false },
		{ "No such file or directory: /srv/Mr. A/x\n", NULL, false },
		{ "cat: ../srv/x: No such file or directory\n", "../srv/x", false },
		{ "cat: a/../srv/x: No such file or directory\n", NULL, false },
		{ "touch: cannot touch '/srv/y': No such file or directory\n", "/srv/y", true },
		{ "mkdir: cannot create directory \xe2\x80\x98/opt/foo\xe2\x80\x99: Permission denied\n", "/opt/foo",
		  true },
		{ "sh: 1: cannot create /var/lib/foo: Directory nonexistent\n", "/var/lib/foo", true },
		{ "GET http://h/x: No such file or directory\n", NULL, false },
		{ "fatal: '/srv/origin' does not appear to be a git repository\n", "/srv/origin", false },
		{ "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
		  "/var/run/docker.sock", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct complaint_path found = { .path = "" };
		bool is_found = complaint_find_path(rows[i].said, strlen(rows[i].said), &found);
		assert_int_equal(is_found, rows[i].path != NULL);
		if (!is_found)
			continue;
		assert_string_equal(found.path, rows[i].path);
		assert_int_equal(found.is_write, rows[i].is_write);
	}
}

static void test_which_host_was_not_reached(void **state)
{
	(void)state;
	static const struct {
		const char *said, *host;
		int port;
	} rows[] = {
		{ "", NULL, 0 },
		{ "ssh: Could not resolve hostname github.com: Temporary failure in name resolution\r\n", "github.com",
		  22 },
		{ "ssh: connect to host github.com port 22: Connection refused\n", "github.com", 22 },
		{ "x\ncurl: (7) Failed to connect to localhost port 8080 after 0 ms: Could not connect to server\n",
		  "localhost", 8080 },
		{ "Failed to connect to a port 99999: x", NULL, 0 },
		{ "Failed to connect to a port x", NULL, 0 },
		{ "Failed to connect to $(reboot) port 80", NULL, 0 },
		{ "Failed to connect to --net port 80", NULL, 0 },
		{ "Failed to connect to a port 80", "a", 80 },
		{ "Failed to connect to a po", NULL, 0 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct complaint_connection found;
		assert_int_equal(complaint_find_connection(rows[i].said, strlen(rows[i].said), &found),
		                 rows[i].host != NULL);
		if (!rows[i].host)
			continue;
		assert_string_equal(found.host, rows[i].host);
		assert_int_equal(found.port, rows[i].port);
	}
}

static void test_no_nul_is_needed(void **state)
{
	(void)state;
	static const char bytes[] = { 0, 'E', 'M', 'F', 'I', 'L', 'E' };
	assert_int_equal(complaint_find(bytes, sizeof(bytes)), COMPLAINT_FILES);
	assert_int_equal(complaint_find(bytes, sizeof(bytes) - 1), COMPLAINT_NONE);
}

static void test_words_of_what_cannot_be_changed(void **state)
{
	(void)state;
	static const char said[] = "mv: started on a/b\nmv: cannot move 'sub dir' to 'a/c': Device or resource "
	                           "busy\nrm x\nError: EROFS: '.git/x'";
	static const char *const words[] = { "mv",     "cannot", "move",     "sub",  "dir",   "to",    "a/c",
		                             "Device", "or",     "resource", "busy", "Error", "EROFS", ".git/x" };
	char word[16];
	size_t at = 0;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		assert_true(complaint_next_word(said, strlen(said), &at, word, sizeof(word)));
		assert_string_equal(word, words[i]);
	}
	assert_false(complaint_next_word(said, strlen(said), &at, word, sizeof(word)));
	assert_false(complaint_next_word(said, strlen(said), &at, word, sizeof(word)));
	at = 0;
	assert_true(complaint_next_word("/much/too/long/for/it EBUSY", 27, &at, word, sizeof(word)));
	assert_string_equal(word, "EBUSY");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_programs_say),
		                            cmocka_unit_test(test_which_file_is_missed),
		                            cmocka_unit_test(test_no_nul_is_needed),
		                            cmocka_unit_test(test_which_host_was_not_reached),
		                            cmocka_unit_test(test_words_of_what_cannot_be_changed) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
