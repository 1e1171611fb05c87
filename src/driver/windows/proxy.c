/* The process of cordon-proxy: see driver/proxy.h. The program lies beside cordon's own. It has a restricted token of
 * its own at Low integrity, which the filters of commands let pass, and a job object in which no other process fits;
 * its standard input has the words by which it takes its socket, and it inherits no other handle. Commands run at the
 * same integrity level as the same user: what keeps them from its memory, where their tokens and the secrets are, is
 * the access list of the process and its threads. In the place of a pidfd there is the handle of the job: what is in it
 * ends with the last handle of it. */
#include <sys/socket.h>

#include "driver/windows/windows.h"

#include <pthread.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/windows/nt.h"
#include "cordon.h"
#include "driver/proxy.h"
#include "profile/unwall.h"

#define END_MS 2000

static pthread_once_t program_once = PTHREAD_ONCE_INIT;
static wchar_t program[PATH_MAX];
static int program_fd = -1, program_error;

static int unavailable(struct cordon_error *err, int os_errno, const char *reason)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, os_errno, "cordon-proxy", "%s", reason);
	fail_boundary(err, "network");
	return fail_remedy(err, "use --net none, or --net all for the host's whole network");
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

/* As long as it is open nothing writes to it, and no other takes its place: a command might, before it is started. */
static int open_beside(void)
{
	static const wchar_t name[] = L"cordon-proxy.exe";
	DWORD length = GetModuleFileNameW(NULL, program, PATH_MAX);
	wchar_t *slash = wcsrchr(program, L'\\');
	if (!length || !slash || (size_t)(slash + 1 - program) + ARRAY_SIZE(name) > PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	wcscpy(slash + 1, name);
	HANDLE file = CreateFileW(program, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING,
	                          FILE_FLAG_OPEN_REPARSE_POINT, NULL);
	if (file != INVALID_HANDLE_VALUE)
		return nt_descriptor(file, O_RDONLY);
	errno = win32_errno(GetLastError());
	return -1;
}

static void find_program(void)
{
	struct stat info;
	auto_close int fd = open_beside();
	if (fd < 0 || fstat(fd, &info) < 0)
		program_error = errno;
	else if (!S_ISREG(info.st_mode) || info.st_mode & (S_IWGRP | S_IWOTH))
		program_error = EPERM;
	else
		program_fd = take_fd(&fd);
}

int proxy_program_fd(struct cordon_error *err)
{
	pthread_once(&program_once, find_program);
	if (program_fd >= 0)
		return program_fd;
	if (program_error != ENOENT)
		return unavailable(err, program_error == EPERM ? 0 : program_error,
		                   program_error == EPERM ? "the program beside cordon can be changed by others" :
		                                            "the program beside cordon cannot be used");
	unavailable(err, 0, "the program that comes with cordon is not beside it");
	return fail_remedy(err, "put it there; or use --net none, or --net all for the host's whole network");
}

int proxy_gateway_fd(struct cordon_error *err)
{
	return unavailable(err, 0, "gateways are not built for Windows");
}

/* ---- its port ------------------------------------------------------------------------------------------------------ */

int windows_proxy_listen(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	auto_close int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, WINDOWS_PROXY_BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return -1;
	*ret_port = ntohs(address.sin_port);
	return take_fd(&fd);
}

/* ---- its process --------------------------------------------------------------------------------------------------- */

int proxy_open(struct proxy_process *ret_process, struct cordon_error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make the proxy's socket");
	*ret_process = (struct proxy_process){ .fd = ends[0], .child_fd = ends[1], .pidfd = -1 };
	return 0;
}

/* What must read back, or nothing is started. Programs for tests leave out what does not where they run. */
static uint32_t required(void)
{
	uint32_t walls = WALL_BIT(PRIVILEGES) | WALL_BIT(FILESYSTEM) | WALL_BIT(LIFETIME) | WALL_BIT(IPC) | WALL_BIT(SPAWN);
#ifdef CORDON_UNWALL
	walls &= ~profile_unwalled(getenv("CORDON_UNWALL"));
#endif
	return walls;
}

static int raise_walls(HANDLE *ret_token, HANDLE *ret_job, struct cordon_error *err)
{
	static const struct profile alone = { .spawn = false };
	uint32_t of_token = 0, of_job = 0;
	if (windows_token(WINDOWS_TOKEN_OF_PROXY, ret_token, &of_token, err) < 0 ||
	    windows_job(&alone, ret_job, &of_job, err) < 0)
		return -1;
	uint32_t missing = required() & ~(of_token | of_job);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (missing & UINT32_C(1) << wall)
			return windows_fail(err, (enum cordon_wall)wall, 0,
			                    "a setting of the proxy's own does not read back");
	return 0;
}

/* What Winsock finds its libraries by, and nothing of the caller's. */
static void make_environment(wchar_t ret_block[MAX_PATH + 16])
{
	wchar_t directory[MAX_PATH + 1] = L"";
	UINT length = GetSystemWindowsDirectoryW(directory, MAX_PATH + 1);
	int end = swprintf(ret_block, MAX_PATH + 14, L"SYSTEMROOT=%ls", length <= MAX_PATH ? directory : L"");
	ret_block[end + 1] = L'\0';
}

/* Libraries are looked for in the working directory, too, and a command writes to the caller's: so it is the system's.
 * Without a console, for which there would be a process more. */
bool windows_proxy_create(HANDLE token, wchar_t *line, HANDLE input, PROCESS_INFORMATION *ret_made)
{
	wchar_t environment[MAX_PATH + 16], directory[MAX_PATH + 1];
	char room[256];
	SIZE_T size = sizeof(room);
	STARTUPINFOEXW startup = { .StartupInfo = { .cb = sizeof(startup),
		                                    .dwFlags = STARTF_USESTDHANDLES,
		                                    .hStdInput = input },
		                   .lpAttributeList = (LPPROC_THREAD_ATTRIBUTE_LIST)(void *)room };
	SECURITY_ATTRIBUTES closed = { .nLength = sizeof(closed),
		                       .lpSecurityDescriptor = windows_closed_descriptor() };
	UINT length = GetSystemDirectoryW(directory, MAX_PATH + 1);
	bool made = false;
	make_environment(environment);
	if (!closed.lpSecurityDescriptor || !length || length > MAX_PATH ||
	    !InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &size)) {
		LocalFree(closed.lpSecurityDescriptor);
		return false;
	}
	if (!input || UpdateProcThreadAttribute(startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &input,
	                                        sizeof(input), NULL, NULL))
		made = CreateProcessAsUserW(token, program, line, &closed, &closed, input != NULL,
		                            CREATE_SUSPENDED | DETACHED_PROCESS | EXTENDED_STARTUPINFO_PRESENT |
		                                    CREATE_UNICODE_ENVIRONMENT,
		                            environment, directory, &startup.StartupInfo, ret_made);
	DWORD error = GetLastError();
	DeleteProcThreadAttributeList(startup.lpAttributeList);
	LocalFree(closed.lpSecurityDescriptor);
	SetLastError(error);
	return made;
}

/* Looked at, and given the words by which it takes its socket. */
static int brief(const struct proxy_process *process, const PROCESS_INFORMATION *made, HANDLE job, HANDLE input,
                 struct cordon_error *err)
{
	struct socket_passed words;
	BOOL in_job = FALSE;
	DWORD sent;
	if (!AssignProcessToJobObject(job, made->hProcess) || !IsProcessInJob(made->hProcess, job, &in_job) || !in_job)
		return windows_fail(err, CORDON_WALL_LIFETIME, GetLastError(), "the proxy is not in its job object");
	socket_has_peer(process->fd, made->dwProcessId);
	if (socket_pass(process->fd, process->child_fd, &words) < 0 ||
	    !WriteFile(input, words.bytes, sizeof(words.bytes), &sent, NULL) || sent != sizeof(words.bytes))
		return unavailable(err, errno, "the proxy cannot be given its socket");
	return 0;
}

/* Suspended, and let go in its job. */
static int create(const struct proxy_process *process, HANDLE token, HANDLE job, HANDLE ends[2],
                  struct cordon_error *err)
{
	PROCESS_INFORMATION made;
	wchar_t line[64];
	swprintf(line, ARRAY_SIZE(line), L"cordon-proxy %hs", CORDON_VERSION);
	if (!windows_proxy_create(token, line, ends[1], &made))
		return windows_fail(err, CORDON_WALL_NETWORK, GetLastError(), "the proxy cannot be started");
	int result = brief(process, &made, job, ends[0], err);
	if (result == 0)
		ResumeThread(made.hThread);
	else
		TerminateProcess(made.hProcess, 1);
	CloseHandle(made.hThread);
	CloseHandle(made.hProcess);
	return result;
}

int proxy_start(struct proxy_process *process, int fd, struct cordon_error *err)
{
	HANDLE token = NULL, job = NULL, ends[2] = { NULL };
	(void)fd;
	int result = raise_walls(&token, &job, err);
	if (result == 0)
		result = windows_pipe(&ends[0], &ends[1], true) ? create(process, token, job, ends, err) :
		                                                  unavailable(err, 0, "a pipe cannot be made");
	close(take_fd(&process->child_fd));
	for (int i = 0; i < 2; i++)
		if (ends[i])
			CloseHandle(ends[i]);
	if (token)
		CloseHandle(token);
	/* Handles are numbers of 32 bits. */
	if (result == 0)
		process->pidfd = (int)(intptr_t)job;
	else if (job)
		CloseHandle(job);
	return result;
}

static HANDLE job_of(const struct proxy_process *process)
{
	return process->pidfd > 0 ? (HANDLE)(intptr_t)process->pidfd : NULL;
}

void proxy_kill(const struct proxy_process *process)
{
	if (job_of(process))
		TerminateJobObject(job_of(process), 1);
}

void proxy_end(struct proxy_process *process)
{
	HANDLE job = job_of(process);
	proxy_kill(process);
	if (job) {
		windows_job_await(job, END_MS);
		CloseHandle(job);
	}
	process->pidfd = -1;
	close_fd(&process->fd);
	close_fd(&process->child_fd);
}
