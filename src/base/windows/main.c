/* Where a program of cordon's begins on Windows: with its arguments in UTF-8, and streams that carry bytes as they are.
 */
#include <fcntl.h>
#include <windows.h>

#include "base/windows/wide.h"

int main(int argc, char **argv);
int wmain(int argc, wchar_t **wide);

/* What is closed, or was never there, takes and gives nothing. */
static void open_streams(void)
{
	for (int fd = 0; fd < 3; fd++) {
		intptr_t handle = _get_osfhandle(fd);
		int null = handle == -1 || handle == -2 ? _wopen(L"NUL", fd ? _O_WRONLY : _O_RDONLY) : -1;
		if (null >= 0 && null != fd) {
			_dup2(null, fd);
			_close(null);
		}
		_setmode(fd, _O_BINARY);
	}
	SetConsoleOutputCP(CP_UTF8);
}

int wmain(int argc, wchar_t **wide)
{
	char **argv = calloc((size_t)argc + 1, sizeof(*argv));
	for (int i = 0; argv && i < argc; i++) {
		size_t size = 3 * wcslen(wide[i]) + 1;
		argv[i] = malloc(size);
		if (!argv[i] || wide_to_text(wide[i], argv[i], size) < 0) {
			fputs("cordon: an argument is no text\n", stderr);
			return 125;
		}
	}
	open_streams();
	return argv ? main(argc, argv) : 125;
}
