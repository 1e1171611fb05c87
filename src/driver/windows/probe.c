/* Are connections denied? That filters read back does not say that they match: so, with the token of the command, a
 * process of cordon-proxy tries to connect to a listener that is there for it alone, which must fail, and where hosts
 * are listed to the port of the proxy, which must succeed (proxy/begin-windows.c). */
#include <sys/socket.h>

#include "driver/windows/windows.h"

#include "base/cleanup.h"

#define PROBE_MS 10000

/* The status that it ends with; -1: it was not started, or does not end. */
static int run(HANDLE token, HANDLE job, wchar_t *line)
{
	PROCESS_INFORMATION made;
	DWORD status = 0;
	if (!windows_proxy_create(token, line, NULL, &made))
		return -1;
	bool ended = AssignProcessToJobObject(job, made.hProcess) && ResumeThread(made.hThread) != (DWORD)-1 &&
	             WaitForSingleObject(made.hProcess, PROBE_MS) == WAIT_OBJECT_0 &&
	             GetExitCodeProcess(made.hProcess, &status);
	TerminateProcess(made.hProcess, 1);
	CloseHandle(made.hThread);
	CloseHandle(made.hProcess);
	return ended ? (int)status : -1;
}

bool windows_probe(HANDLE token, int listener, uint16_t port, const char **ret_why)
{
	static const struct profile alone = { .spawn = false };
	static const char *const whys[] = {
		NULL,
		"the filters of the Windows Filtering Platform are set, and deny no connection",
		"the filters of the Windows Filtering Platform are set, and do not let the proxy be reached",
	};
	struct cordon_error untold;
	wchar_t line[64];
	uint16_t denied;
	uint32_t held;
	HANDLE job;
	auto_close int other = windows_proxy_listen(&denied);
	*ret_why = "whether connections are denied cannot be tried";
	if (other < 0 || windows_job(&alone, &job, &held, &untold) < 0)
		return false;
	swprintf(line, ARRAY_SIZE(line), L"cordon-proxy probe %u %u", (unsigned)denied, (unsigned)port);
	int status = run(token, job, line);
	CloseHandle(job);
	/* What connected while that was tried is no client of the proxy's. Not more than fits: others may go on
	 * connecting. */
	for (int i = 0, fd; i < WINDOWS_PROXY_BACKLOG && listener >= 0; i++)
		if ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
			close(fd);
	if (status >= 0 && status < (int)ARRAY_SIZE(whys))
		*ret_why = whys[status];
	return status == 0;
}
