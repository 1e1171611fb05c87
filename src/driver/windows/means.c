/* What Windows has for probing and for limits: see driver/machine.h. A job object holds them, if it says so when asked.
 */
#include "driver/windows/windows.h"

#include "base/windows/path.h"
#include "base/windows/wide.h"
#include "driver/machine.h"

/* In its own words, beneath the directory that `get` tells. */
static const char *mapped(UINT (*get)(wchar_t *path, UINT size), const char *name, const char *otherwise,
                          char path[PATH_MAX])
{
	wchar_t wide[MAX_PATH + 1];
	char native[PATH_MAX];
	UINT length = get(wide, MAX_PATH + 1);
	if (!length || length > MAX_PATH || wide_to_text(wide, native, sizeof(native)) < 0 ||
	    windows_path_read(native, path, PATH_MAX - 32))
		return otherwise;
	size_t end = strlen(path);
	while (end && path[end - 1] == '/')
		end--;
	strcpy(path + end, name);
	return path;
}

static UINT system_directory(wchar_t *path, UINT size)
{
	return GetSystemDirectoryW(path, size);
}

static UINT temporary_directory(wchar_t *path, UINT size)
{
	return GetTempPathW(size, path);
}

const char *driver_probe_program(void)
{
	static char path[PATH_MAX];
	return mapped(system_directory, "/hostname.exe", "/c/Windows/System32/hostname.exe", path);
}

const char *driver_temporary_directory(void)
{
	static char path[PATH_MAX];
	return mapped(temporary_directory, "", "/c/Windows/Temp", path);
}

void driver_groups_look(const char *directory, struct driver_groups *ret_groups)
{
	const uint32_t limits = WALL_BIT(LIMIT_MEMORY) | WALL_BIT(LIMIT_PROCESSES) | WALL_BIT(LIMIT_CPU);
	const struct profile profile = { .spawn = true,
					 .limits = { .memory_bytes = 1 << 30, .processes = 64, .cpu_percent = 50 } };
	struct cordon_error untold;
	HANDLE job;
	uint32_t held;
	(void)directory;
	*ret_groups = (struct driver_groups){ .why = "the limits of a job object do not read back" };
	if (windows_job(&profile, &job, &held, &untold) < 0)
		return;
	CloseHandle(job);
	if (held & limits)
		*ret_groups = (struct driver_groups){ .mechanism = "job object",
						      .offers = held & limits,
						      .path = "each command's own" };
}

const char *driver_groups_fix(void)
{
	return "use a Windows that enforces the limits of job objects";
}
