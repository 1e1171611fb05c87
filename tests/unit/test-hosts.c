/* The hosts file: what is found in it, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/hosts.h"
#include "system-has.h"

static size_t find(const char *text, size_t length, const char *name, char ret_first[ADDRESS_TEXT_SIZE])
{
	/* An exact copy, so that a read past its end is seen. */
	char *copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, text, length);
	struct hosts hosts = { copy, length };
	struct address address = { .length = 4 };
	size_t count = hosts_find(&hosts, name, &address, 1);
	address_text(&address, ret_first);
	hosts_free(&hosts);
	assert_null(hosts.text);
	return count;
}

static const struct {
	const char *text, *name;
	size_t count;
	const char *first;
} rows[] = {
	{ "", "a", 0, NULL },
	{ "\n\n", "a", 0, NULL },
	{ "1.2.3.4", "a", 0, NULL },
	{ "1.2.3.4 ", "a", 0, NULL },
	{ "1.2.3.4 a", "a", 1, "1.2.3.4" },
	{ "1.2.3.4 a\n", "a", 1, "1.2.3.4" },
	{ "1.2.3.4\ta\r\n", "a", 1, "1.2.3.4" },
	{ "  1.2.3.4   b  a  c\n", "a", 1, "1.2.3.4" },
	{ "1.2.3.4 A.Example.\n", "a.example", 1, "1.2.3.4" },
	{ "1.2.3.4 a..\n", "a", 0, NULL },
	{ "1.2.3.4 ab\n", "a", 0, NULL },
	{ "1.2.3.4 a\n", "ab", 0, NULL },
	{ "#1.2.3.4 a\n", "a", 0, NULL },
	{ "1.2.3.4 # a\n", "a", 0, NULL },
	{ "1.2.3.4 #a", "a", 0, NULL },
	{ "1.2.3.4 b#a\n", "b", 1, "1.2.3.4" },
	{ "1.2.3.4 a\n5.6.7.8 a\n", "a", 2, "1.2.3.4" },
	{ "::1 a\n", "a", 1, "::1" },
	{ "127.1 a\n", "a", 0, NULL },
	{ "0x7f.1 a\n", "a", 0, NULL },
	{ "fe80::1%lo a\n", "a", 0, NULL },
	{ "[::1] a\n", "a", 0, NULL },
	{ "a 1.2.3.4\n", "a", 0, NULL },
	{ "1.2.3.4 a a a\n", "a", 1, "1.2.3.4" },
	{ "1.2.3.4\na\n", "a", 0, NULL },
	{ "1.2.3.4 1.2.3.4\n", "1.2.3.4", 1, "1.2.3.4" },
};

static void lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char first[ADDRESS_TEXT_SIZE];
		if (find(rows[i].text, strlen(rows[i].text), rows[i].name, first) != rows[i].count ||
		    (rows[i].first && strcmp(first, rows[i].first)))
			fail_msg("%s", rows[i].text);
	}
	char first[ADDRESS_TEXT_SIZE];
	assert_int_equal(find("1.2.3.4 a\0b c\n", 14, "c", first), 1);
	assert_int_equal(find("1.2.3.4 a\0\n", 11, "a", first), 0);
	assert_int_equal(find("1.2.3.4\0 a\n", 11, "a", first), 0);
}

static void files(void **state)
{
	(void)state;
	char path[] = "/tmp/cordon-test-hosts-XXXXXX";
	struct hosts hosts = { 0 };
	struct cordon_error err = { 0 };
	struct address address;
	int fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hosts_read(path, &hosts, &err), 0);
	assert_int_equal(hosts_find(&hosts, "a", &address, 1), 0);
	hosts_free(&hosts);
	for (int i = 0; i < 5000; i++)
		assert_true(dprintf(fd, "10.0.%d.%d host-%d\n", i >> 8, i & 255, i) > 0);
	assert_int_equal(hosts_read(path, &hosts, &err), 0);
	assert_int_equal(hosts_find(&hosts, "host-4999", &address, 1), 1);
	assert_int_equal(address.bytes[3], 4999 & 255);
	hosts_free(&hosts);
	assert_int_equal(ftruncate(fd, (off_t)HOSTS_SIZE_MAX), 0);
	assert_int_equal(hosts_read(path, &hosts, &err), 0);
	hosts_free(&hosts);
	assert_int_equal(ftruncate(fd, (off_t)HOSTS_SIZE_MAX + 1), 0);
	assert_int_equal(hosts_read(path, &hosts, &err), -1);
	assert_int_equal(err.os_errno, EFBIG);
	close(fd);
	unlink(path);
	/* No file at all is an empty one; what is no file is not waited for. */
	assert_int_equal(hosts_read(path, &hosts, &err), 0);
	assert_int_equal(hosts_find(&hosts, "a", &address, 1), 0);
	hosts_free(&hosts);
	assert_int_equal(hosts_read(".", &hosts, &err), -1);
	if (HAS_SPECIAL_FILES) {
		assert_int_equal(mkfifo(path, 0600), 0);
		assert_int_equal(hosts_read(path, &hosts, &err), -1);
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lines), cmocka_unit_test(files) };
	return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
