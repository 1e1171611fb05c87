/* See shim.h. */
#include "shim.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/windows/nt.h"

#include <aclapi.h>
#include <sddl.h>

#include "base/windows/wide.h"

/* Bytes are what they are. */
__attribute__((constructor)) static void begin(void)
{
	_setmode(0, O_BINARY);
	_setmode(1, O_BINARY);
}

static bool fill_template(char *template)
{
	unsigned random[2];
	if (getrandom(random, sizeof(random), 0) < 0)
		return false;
	char digits[9];
	snprintf(digits, sizeof(digits), "%08x", random[0]);
	memcpy(template + strlen(template) - 6, digits, 6);
	return true;
}

char *mkdtemp(char *template)
{
	return !fill_template(template) || mkdir(template, 0700) < 0 ? NULL : template;
}

int mkostemp(char *template, int flags)
{
	return fill_template(template) ? open(template, O_RDWR | O_CREAT | O_EXCL | flags, 0600) : -1;
}

int unsetenv(const char *name)
{
	wchar_t wide[256];
	return text_to_wide(name, wide, 256) == 0 && SetEnvironmentVariableW(wide, NULL) ? 0 : -1;
}

struct tm *gmtime_r(const time_t *time, struct tm *ret_utc)
{
	/* Every 400 years are the same. */
	const time_t around = 400 * (time_t)31556952;
	time_t turns = *time / around - (*time % around < 0), within = *time - turns * around;
	struct tm *utc = gmtime(&within);
	if (!utc)
		return NULL;
	*ret_utc = *utc;
	ret_utc->tm_year += (int)turns * 400;
	return ret_utc;
}

int nftw(const char *path, int (*each)(const char *path, const struct stat *info, int type, struct FTW *walk), int fds,
         int flags)
{
	struct FTW walk = { 0 };
	struct stat info;
	if (lstat(path, &info) < 0)
		return -1;
	DIR *directory = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		char below[PATH_MAX];
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			nftw(below, each, fds, flags);
	}
	if (directory)
		closedir(directory);
	return each(path, &info, 0, &walk);
}

ssize_t getdelim(char **text, size_t *capacity, int delimiter, FILE *stream)
{
	size_t length = 0, got;
	(void)delimiter;
	do {
		char *grown = realloc(*text, length + 4097);
		if (!grown)
			return -1;
		*text = grown;
		*capacity = length + 4097;
		got = fread(*text + length, 1, 4096, stream);
		length += got;
	} while (got);
	(*text)[length] = '\0';
	return length ? (ssize_t)length : -1;
}

int dprintf(int fd, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	length = length < 0 ? -1 : (int)write(fd, text, (unsigned)length);
	free(text);
	return length;
}

int change_length(const char *path, off_t length)
{
	int fd = open(path, O_WRONLY);
	errno = fd < 0 ? errno : _chsize_s(fd, length);
	return fd < 0 ? -1 : close(fd) | (errno ? -1 : 0);
}

int pipe2(int ret_fds[2], int flags)
{
	return _pipe(ret_fds, 65536, O_BINARY | flags);
}

static FILETIME file_time(struct timespec time)
{
	uint64_t ticks = (uint64_t)(time.tv_sec * 10000000 + time.tv_nsec / 100) + 116444736000000000u;
	return (FILETIME){ (DWORD)ticks, (DWORD)(ticks >> 32) };
}

int utimensat(int fd, const char *path, const struct timespec times[2], int flags)
{
	HANDLE handle;
	errno = nt_open(fd, path, FILE_WRITE_ATTRIBUTES, FILE_OPEN,
	                flags & AT_SYMLINK_NOFOLLOW ? FILE_OPEN_REPARSE_POINT : 0, false, &handle);
	if (errno)
		return -1;
	FILETIME read = file_time(times[0]), written = file_time(times[1]);
	BOOL set = SetFileTime(handle, NULL, times[0].tv_nsec == UTIME_OMIT ? NULL : &read,
	                       times[1].tv_nsec == UTIME_OMIT ? NULL : &written);
	errno = set ? 0 : win32_errno(GetLastError());
	CloseHandle(handle);
	return set ? 0 : -1;
}

/* ---- access lists ------------------------------------------------------------------------------------------------ */

static DWORD rights_of(unsigned bits)
{
	return (bits & 4 ? FILE_GENERIC_READ : 0) | (bits & 1 ? FILE_GENERIC_EXECUTE : 0) |
	       (bits & 2 ? FILE_GENERIC_WRITE | FILE_DELETE_CHILD | DELETE : 0);
}

static PACL list_of(PSID owner, unsigned mode)
{
	PSID everybody = NULL;
	PACL list = calloc(1, 1024);
	ConvertStringSidToSidW(L"S-1-1-0", &everybody);
	if (list && everybody && InitializeAcl(list, 1024, ACL_REVISION)) {
		/* What an owner may do in any case is seeing the list and changing it. */
		AddAccessAllowedAce(list, ACL_REVISION,
		                    READ_CONTROL | WRITE_DAC | FILE_READ_ATTRIBUTES | rights_of(mode >> 6), owner);
		if (mode & 077)
			AddAccessAllowedAce(list, ACL_REVISION, rights_of((mode >> 3 | mode) & 7), everybody);
	}
	LocalFree(everybody);
	return list;
}

int mode_set(int fd, const char *path, unsigned mode)
{
	PSECURITY_DESCRIPTOR descriptor = NULL;
	PSID owner;
	char whole[PATH_MAX] = "";
	HANDLE handle;
	if (!*path && fd_path(fd, whole, sizeof(whole) - 1) < 0) {
		errno = EBADF;
		return -1;
	}
	errno = nt_open(fd, *path ? path : whole, READ_CONTROL | WRITE_DAC, FILE_OPEN, 0, false, &handle);
	if (errno)
		return -1;
	DWORD error = GetSecurityInfo(handle, SE_FILE_OBJECT, OWNER_SECURITY_INFORMATION, &owner, NULL, NULL, NULL,
	                              &descriptor);
	if (error == ERROR_SUCCESS) {
		PACL list = list_of(owner, mode);
		SECURITY_DESCRIPTOR changed;
		InitializeSecurityDescriptor(&changed, SECURITY_DESCRIPTOR_REVISION);
		SetSecurityDescriptorDacl(&changed, TRUE, list, FALSE);
		SetSecurityDescriptorControl(&changed, SE_DACL_PROTECTED, SE_DACL_PROTECTED);
		error = SetKernelObjectSecurity(handle, DACL_SECURITY_INFORMATION, &changed) ? ERROR_SUCCESS
		                                                                             : GetLastError();
		free(list);
		LocalFree(descriptor);
	}
	CloseHandle(handle);
	errno = win32_errno(error);
	return error == ERROR_SUCCESS ? 0 : -1;
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static bool left_out(const char *name)
{
	/* Less what a case is called besides, in which of several ways it runs. */
	size_t length = strcspn(name, " ");
	for (const char *at = getenv("TESTS_WITHOUT"); at && *at; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");
		if (word == length && !memcmp(at, name, length))
			return true;
		at += word;
	}
	return false;
}

#undef _cmocka_run_group_tests
int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests, const size_t count,
                            CMFixtureFunction setup, CMFixtureFunction teardown);
int run_cases(const char *name, const struct CMUnitTest *const tests, const size_t count, CMFixtureFunction setup,
              CMFixtureFunction teardown)
{
	struct CMUnitTest *kept = calloc(count, sizeof(*kept));
	size_t kept_count = 0;
	for (size_t i = 0; kept && i < count; i++) {
		if (left_out(tests[i].name))
			print_message("# without: %.*s\n", (int)strcspn(tests[i].name, " "), tests[i].name);
		else
			kept[kept_count++] = tests[i];
	}
	int failed = kept ? _cmocka_run_group_tests(name, kept, kept_count, setup, teardown) : -1;
	free(kept);
	return failed;
}

/* ---- what there is not ------------------------------------------------------------------------------------------- */

static int nothing(void)
{
	errno = ENOSYS;
	return -1;
}

int mkfifo(const char *path, unsigned mode)
{
	(void)path, (void)mode;
	return nothing();
}

int mknod(const char *path, unsigned mode, unsigned long long device)
{
	(void)path, (void)mode, (void)device;
	return nothing();
}

int chown(const char *path, uid_t uid, gid_t gid)
{
	(void)path, (void)uid, (void)gid;
	return nothing();
}

/* Of descriptors, all above the limit are taken. */
int setrlimit(int resource, const struct rlimit *limit)
{
	static int taken[8192], count;
	if (resource != RLIMIT_NOFILE)
		return nothing();
	while (count)
		_close(taken[--count]);
	if (limit->rlim_cur == RLIM_INFINITY)
		return 0;
	for (int fd; count < 8192 && (fd = dup(2)) >= 0;)
		taken[count++] = fd;
	int kept = 0;
	for (int i = 0; i < count; i++) {
		if ((rlim_t)taken[i] < limit->rlim_cur)
			_close(taken[i]);
		else
			taken[kept++] = taken[i];
	}
	count = kept;
	return 0;
}

int unshare(int flags)
{
	(void)flags;
	return nothing();
}

int fork(void)
{
	fail_msg("there is no fork()");
	return -1;
}

int waitpid(int pid, int *ret_status, int flags)
{
	(void)pid, (void)ret_status, (void)flags;
	return nothing();
}
