/* Paths of Windows and their mapping: as a person writes them, and as Windows is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/windows/path.h"

static void what_is_written_is_mapped(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "C:\\Users\\ada\\x", "/c/Users/ada/x" },
		{ "c:/data", "/c/data" },
		{ "D:\\", "/d/" },
		{ "/c/x y", "/c/x y" },
		{ "/C/X", "/c/X" },
		{ "C:\\a\\..\\b", "/c/a/../b" },
		{ "/d", "/d" },
		{ "C:\\h\xc3\xa9\\\xe6\x97\xa5", "/c/h\xc3\xa9/\xe6\x97\xa5" },
		{ "C:\\connect", "/c/connect" },
		{ "C:\\com", "/c/com" },
		{ "C:\\com10", "/c/com10" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[256] = "";
		assert_null(windows_path_read(rows[i][0], path, sizeof(path)));
		assert_string_equal(path, rows[i][1]);
	}
}

static void what_cannot_be_mapped_is_refused(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "\\\\server\\share", "another machine" },
		{ "//server/share", "another machine" },
		{ "\\\\?\\C:\\x", "another machine" },
		{ "C:x", "drive's own" },
		{ "C:", "drive's own" },
		{ "\\x", "names no drive" },
		{ "/usr/bin", "names no drive" },
		{ "x\\y", "absolute" },
		{ "C:\\nul", "device" },
		{ "C:\\a\\COM1.txt", "device" },
		{ "C:\\aux \\x", "dot or space" },
		{ "C:\\a.", "dot or space" },
		{ "C:\\a ", "dot or space" },
		{ "C:\\a:stream", "stream" },
		{ "C:\\a\\b?c", "none of" },
		{ "C:\\a|b", "none of" },
		{ "C:\\a\x01", "none of" },
		{ "C:\\lpt\xc2\xb9", "device" },
		{ "", "absolute" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[256];
		const char *why = windows_path_read(rows[i][0], path, sizeof(path));
		if (!why || !strstr(why, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], why ? why : "is taken");
	}
	char small[8];
	assert_non_null(windows_path_read("C:\\longer", small, sizeof(small)));
}

static void windows_is_told(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "/c/Users/ada", "C:\\Users\\ada" }, { "/c", "C:\\" },  { "/c/", "C:\\" },
		{ "/z//a///b/", "Z:\\a\\b" },         { "a/b", "a\\b" }, { "", "" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char native[256];
		assert_null(windows_path_native(rows[i][0], native, sizeof(native)));
		assert_string_equal(native, rows[i][1]);
	}
	static const char *const refused[] = { "/", "/usr", "/c/nul", "/c/a\\b", "a:b", "/c/x." };
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char native[256];
		if (!windows_path_native(refused[i], native, sizeof(native)))
			fail_msg("%s is taken for %s", refused[i], native);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_mapped),
		cmocka_unit_test(what_cannot_be_mapped_is_refused),
		cmocka_unit_test(windows_is_told),
	};
	return cmocka_run_group_tests_name("windows-path", tests, NULL, NULL);
}
