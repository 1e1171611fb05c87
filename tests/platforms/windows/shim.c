/* See shim.h. */
#include "shim.h"

#include <dirent.h>
#include <ftw.h>
#include <windows.h>

#include "base/windows/wide.h"

char *mkdtemp(char *template)
{
	unsigned random[2];
	if (getrandom(random, sizeof(random), 0) < 0)
		return NULL;
	char digits[9];
	snprintf(digits, sizeof(digits), "%08x", random[0]);
	memcpy(template + strlen(template) - 6, digits, 6);
	return mkdir(template, 0700) < 0 ? NULL : template;
}

int unsetenv(const char *name)
{
	wchar_t wide[256];
	return text_to_wide(name, wide, 256) == 0 && SetEnvironmentVariableW(wide, NULL) ? 0 : -1;
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
