/* What the driver's tests start: child.exe WHAT [ARGUMENT...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <winsock2.h>
#include <windows.h>
#include <tlhelp32.h>

static void put(const wchar_t *text)
{
	char bytes[4096];
	int length = WideCharToMultiByte(CP_UTF8, 0, text, -1, bytes, sizeof(bytes), NULL, NULL);
	fwrite(bytes, 1, (size_t)(length > 0 ? length - 1 : 0), stdout);
}

/* A process of our own that sleeps; 0: it was not made. */
static DWORD start_sleeper(const wchar_t *self, DWORD flags)
{
	wchar_t line[1024];
	STARTUPINFOW startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION made;
	_snwprintf(line, 1024, L"\"%ls\" sleep", self);
	return CreateProcessW(self, line, NULL, NULL, FALSE, flags, NULL, NULL, &startup, &made) ? made.dwProcessId : 0;
}

/* Starts a program whose arguments end with the number of a handle that it inherits; its exit status. The number is beyond
 * those that a process has of itself. */
static int hand_on(int count, wchar_t **words)
{
	SECURITY_ATTRIBUTES inherit = { .nLength = sizeof(inherit), .bInheritHandle = TRUE };
	for (int i = 0; i < 500; i++)
		CreateEventW(NULL, TRUE, FALSE, NULL);
	HANDLE handle = CreateEventW(&inherit, TRUE, FALSE, NULL);
	wchar_t line[8192] = L"";
	STARTUPINFOW startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION made;
	DWORD status = 98;
	for (int i = 0; i < count; i++)
		_snwprintf(line + wcslen(line), 8192 - wcslen(line), L"\"%ls\" ", words[i]);
	_snwprintf(line + wcslen(line), 8192 - wcslen(line), L"%llu", (unsigned long long)(ULONG_PTR)handle);
	if (!handle || !CreateProcessW(words[0], line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &made))
		return 97;
	WaitForSingleObject(made.hProcess, INFINITE);
	GetExitCodeProcess(made.hProcess, &status);
	return (int)status;
}

static void base64(const char *text, char *ret)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t length = strlen(text);
	for (size_t i = 0; i < length; i += 3) {
		unsigned bits = (unsigned)(unsigned char)text[i] << 16 |
		                (unsigned)(i + 1 < length ? (unsigned char)text[i + 1] : 0) << 8 |
		                (i + 2 < length ? (unsigned char)text[i + 2] : 0);
		for (size_t part = 0; part < 4; part++)
			*ret++ = part <= length - i ? digits[bits >> (18 - 6 * part) & 63] : '=';
	}
	*ret = '\0';
}

/* Sends `text`, in which '|' ends a line and '@' is the line that shows who asks, and prints what comes. To `port` of
 * 127.0.0.1, or where that is 0 to the proxy that the environment names. 90: there is none, 91: nothing is there. */
static int talk(int port, const wchar_t *text)
{
	char login[256] = "", shown[512] = "", bytes[4096], proxy[512] = "";
	WSADATA data;
	GetEnvironmentVariableA("HTTP_PROXY", proxy, sizeof(proxy));
	if (sscanf(proxy, "http://%255[^@]@127.0.0.1:%d", login, port ? &(int){ 0 } : &port) < 2 && !port)
		return 90;
	base64(login, shown);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((u_short)port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	WSAStartup(MAKEWORD(2, 2), &data);
	SOCKET client = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(client, (struct sockaddr *)&address, sizeof(address)) != 0)
		return 91;
	for (; *text; text++) {
		int length = *text == L'|' ? snprintf(bytes, sizeof(bytes), "\r\n") :
		             *text == L'@' ? snprintf(bytes, sizeof(bytes), "Proxy-Authorization: Basic %s\r\n", shown) :
		                             snprintf(bytes, sizeof(bytes), "%c", (char)*text);
		send(client, bytes, length, 0);
	}
	for (int got; (got = recv(client, bytes, sizeof(bytes), 0)) > 0;)
		fwrite(bytes, 1, (size_t)got, stdout);
	return 0;
}

static void try_process(DWORD id)
{
	static const DWORD rights[] = { PROCESS_VM_READ, PROCESS_VM_WRITE, PROCESS_VM_OPERATION, PROCESS_CREATE_THREAD,
		                        PROCESS_DUP_HANDLE, PROCESS_QUERY_INFORMATION, PROCESS_SUSPEND_RESUME,
		                        PROCESS_TERMINATE };
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		if (OpenProcess(rights[i], FALSE, id))
			printf("process %lx\n", (unsigned long)rights[i]);
}

static void try_thread(DWORD id)
{
	static const DWORD rights[] = { THREAD_SET_CONTEXT, THREAD_GET_CONTEXT, THREAD_SUSPEND_RESUME,
		                        THREAD_TERMINATE };
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		if (OpenThread(rights[i], FALSE, id))
			printf("thread %lx\n", (unsigned long)rights[i]);
}

/* The rights with which it can open processes of cordon-proxy.exe and their threads; then how many there are. */
static int seize(void)
{
	HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS | TH32CS_SNAPTHREAD, 0);
	PROCESSENTRY32W process = { .dwSize = sizeof(process) };
	THREADENTRY32 thread = { .dwSize = sizeof(thread) };
	int processes = 0, threads = 0;
	for (BOOL more = Process32FirstW(all, &process); more; more = Process32NextW(all, &process)) {
		if (wcscmp(process.szExeFile, L"cordon-proxy.exe"))
			continue;
		try_process(process.th32ProcessID);
		processes++;
		for (more = Thread32First(all, &thread); more; more = Thread32Next(all, &thread))
			if (thread.th32OwnerProcessID == process.th32ProcessID) {
				try_thread(thread.th32ThreadID);
				threads++;
			}
	}
	printf("%d processes, %d threads\n", processes, threads);
	return 0;
}

int wmain(int argc, wchar_t **argv);
int wmain(int argc, wchar_t **argv)
{
	const wchar_t *what = argc > 1 ? argv[1] : L"";
	wchar_t self[4096];
	GetModuleFileNameW(NULL, self, 4096);
	if (!wcscmp(what, L"exit"))
		return _wtoi(argv[2]);
	if (!wcscmp(what, L"say")) {
		for (int i = 2; i < argc; i++) {
			put(argv[i]);
			putchar('\n');
		}
		fputs("on stderr\n", stderr);
		return 0;
	}
	if (!wcscmp(what, L"copy")) {
		char bytes[4096];
		for (size_t got; (got = fread(bytes, 1, sizeof(bytes), stdin)) > 0;)
			fwrite(bytes, 1, got, stdout);
		return 0;
	}
	if (!wcscmp(what, L"flood")) {
		for (int i = 0; i < 100000; i++)
			fputs("0123456789", stdout);
		return 0;
	}
	if (!wcscmp(what, L"sleep"))
		Sleep(INFINITE);
	if (!wcscmp(what, L"tree")) {
		printf("%lu\n", (unsigned long)start_sleeper(self, 0));
		fflush(stdout);
		if (argc > 2)
			Sleep(INFINITE);
		return 0;
	}
	if (!wcscmp(what, L"escape"))
		return start_sleeper(self, CREATE_BREAKAWAY_FROM_JOB) ? 1 : 0;
	if (!wcscmp(what, L"handle")) {
		DWORD flags;
		return GetHandleInformation((HANDLE)(ULONG_PTR)_wtoi64(argv[2]), &flags) ? 1 : 0;
	}
	if (!wcscmp(what, L"drown")) {
		FILE *file = _wfopen(argv[2], L"wb");
		if (!file || fprintf(file, "%lu", GetCurrentProcessId()) < 0 || fclose(file) != 0)
			return 1;
		for (;;)
			fputs("0123456789", stdout);
	}
	if (!wcscmp(what, L"alive")) {
		HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)_wtoi(argv[2]));
		return process && WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
	}
	if (!wcscmp(what, L"hand"))
		return hand_on(argc - 2, argv + 2);
	if (!wcscmp(what, L"write")) {
		FILE *file = _wfopen(argv[2], L"wb");
		return !file || fprintf(file, "%ls", argv[3]) < 0 || fclose(file) != 0;
	}
	if (!wcscmp(what, L"variable")) {
		wchar_t value[256] = L"";
		GetEnvironmentVariableW(argv[2], value, 256);
		put(value);
		return 0;
	}
	/* In the place of cordon-proxy.exe: how it ends is written beside it. 42: it finds what is its caller's. */
	if (!wcscmp(what, L"probe")) {
		int status = 0;
		wchar_t directory[1024];
		GetCurrentDirectoryW(1024, directory);
		if (_wgetenv(L"OF_THE_CALLER") || !_wgetenv(L"SYSTEMROOT") || !wcsstr(_wcslwr(directory), L"system32"))
			return 42;
		wcscpy(wcsrchr(self, L'\\') + 1, L"probe-status");
		FILE *file = _wfopen(self, L"r");
		return file && fscanf(file, "%d", &status) == 1 ? status : 0;
	}
	if (!wcscmp(what, L"talk"))
		return talk(_wtoi(argv[2]), argv[3]);
	/* Once the proxy, which begins with its first connection, has answered. */
	if (!wcscmp(what, L"seize"))
		return talk(0, argv[2]) ? 1 : seize();
	if (!wcscmp(what, L"stay")) {
		wchar_t value[256] = L"";
		GetEnvironmentVariableW(argv[2], value, 256);
		put(value);
		putchar('\n');
		fflush(stdout);
		Sleep(INFINITE);
	}
	if (!wcscmp(what, L"where")) {
		wchar_t here[1024];
		GetCurrentDirectoryW(1024, here);
		put(here);
		return 0;
	}
	if (!wcscmp(what, L"crash"))
		*(volatile int *)8 = 1;
	return 99;
}
