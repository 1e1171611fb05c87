/* wsl.exe, executed by its full path: see wsl.h. */
#include "driver/wsl/wsl.h"

#include <sodium/utils.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"
#include "driver/windows/windows.h"

#define TIMEOUT_MS 30000
#define LOOK_MS 2
#define PART 65536

int wsl_fail(struct cordon_error *err, const char *subject, const char *what)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, subject, "%s", what);
	fail_boundary(err, cordon_wall_name(CORDON_WALL_FILESYSTEM));
	return fail_remedy(err, "see `cordon wsl status`");
}

int wsl_program(wchar_t ret_path[MAX_PATH], struct cordon_error *err)
{
	static const wchar_t name[] = L"\\wsl.exe";
	UINT length = GetSystemDirectoryW(ret_path, MAX_PATH);
	if (!length || length + ARRAY_SIZE(name) > MAX_PATH)
		return wsl_fail(err, "wsl.exe", "the system directory cannot be told");
	wcscat(ret_path, name);
	DWORD attributes = GetFileAttributesW(ret_path);
	if (attributes == INVALID_FILE_ATTRIBUTES ||
	    attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT))
		return wsl_fail(err, "wsl.exe", "the Windows Subsystem for Linux is not installed");
	return 0;
}

wchar_t *wsl_environment(void)
{
	wchar_t *all = GetEnvironmentStringsW();
	size_t size = 2;
	for (wchar_t *at = all; at && *at; at += wcslen(at) + 1)
		size += wcslen(at) + 1;
	wchar_t *kept = calloc(size, sizeof(*kept)), *to = kept;
	for (wchar_t *at = all; kept && at && *at; at += wcslen(at) + 1)
		if (_wcsnicmp(at, L"WSL", 3) != 0) {
			wcscpy(to, at);
			to += wcslen(to) + 1;
		}
	if (all)
		FreeEnvironmentStringsW(all);
	return kept;
}

int wsl_open_summed(const char *path, HANDLE *ret_file, char ret_sum[WSL_SUM_SIZE], struct cordon_error *err)
{
	crypto_hash_sha256_state state;
	unsigned char hash[crypto_hash_sha256_BYTES];
	char native[PATH_MAX];
	wchar_t wide[PATH_MAX];
	DWORD got = 0;
	BY_HANDLE_FILE_INFORMATION info;
	const char *why = windows_path_native(path, native, sizeof(native));
	if (why || text_to_wide(native, wide, PATH_MAX) < 0)
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "%s", why ? why : "the path is no text");
	/* Nobody writes to it or replaces it while it is open. */
	HANDLE file =
		CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, FILE_FLAG_SEQUENTIAL_SCAN, NULL);
	if (file == INVALID_HANDLE_VALUE || !GetFileInformationByHandle(file, &info) ||
	    GetFileType(file) != FILE_TYPE_DISK) {
		if (file != INVALID_HANDLE_VALUE)
			CloseHandle(file);
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "the file cannot be opened (Windows error %lu)",
		            (unsigned long)GetLastError());
	}
	auto_free char *part = malloc(PART);
	bool whole = part != NULL;
	crypto_hash_sha256_init(&state);
	do {
		whole = whole && ReadFile(file, part, PART, &got, NULL);
		if (whole)
			sha256_update(&state, part, got);
	} while (whole && got);
	if (!whole || SetFilePointer(file, 0, NULL, FILE_BEGIN) == INVALID_SET_FILE_POINTER) {
		CloseHandle(file);
		return fail(err, CORDON_E_INVALID_REQUEST, 0, path, "the file cannot be read");
	}
	sha256_final(&state, hash);
	sodium_bin2hex(ret_sum, WSL_SUM_SIZE, hash, sizeof(hash));
	*ret_file = file;
	return 0;
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

struct calling {
	const struct wsl_call *call;
	struct arena *arena;
	HANDLE process, input, output, complaints;      /* ours of the pipes */
	size_t written, capacity;
	crypto_hash_sha256_state state;
	struct wsl_answer *answer;
	size_t complained;
	char raw_complaint[256];
};

static void close_handle(HANDLE *handle)
{
	if (*handle)
		CloseHandle(*handle);
	*handle = NULL;
}

static void write_some(struct calling *calling)
{
	DWORD done = 0;
	const struct wsl_call *call = calling->call;
	if (!calling->input)
		return;
	if (calling->written < call->length && !WriteFile(calling->input, call->text + calling->written,
	                                                  (DWORD)(call->length - calling->written), &done, NULL))
		calling->written = call->length;
	calling->written += done;
	if (calling->written >= call->length)
		close_handle(&calling->input);
}

static int keep(struct calling *calling, const char *bytes, size_t length)
{
	struct wsl_answer *answer = calling->answer;
	if (calling->call->hash) {
		sha256_update(&calling->state, bytes, length);
		return 0;
	}
	if (answer->length + length > WSL_OUTPUT_MAX)
		return -1;
	if (answer->length + length + 1 > calling->capacity) {
		size_t capacity = 2 * (answer->length + length + 1);
		char *grown = arena_alloc(calling->arena, capacity);
		if (!grown)
			return -1;
		memcpy(grown, answer->out, answer->length);
		answer->out = grown;
		calling->capacity = capacity;
	}
	memcpy(answer->out + answer->length, bytes, length);
	answer->out[answer->length += length] = '\0';
	return 0;
}

/* 1: there was something; 0: nothing yet, or no more; -1: it cannot be kept. */
static int read_some(struct calling *calling, HANDLE *pipe)
{
	char part[8192];
	DWORD there = 0, got = 0;
	if (!*pipe)
		return 0;
	if (!PeekNamedPipe(*pipe, NULL, 0, NULL, &there, NULL)) {
		close_handle(pipe);
		return 0;
	}
	if (!there || !ReadFile(*pipe, part, there < sizeof(part) ? there : sizeof(part), &got, NULL) || !got)
		return 0;
	if (pipe == &calling->output)
		return keep(calling, part, got) < 0 ? -1 : 1;
	size_t room = sizeof(calling->raw_complaint) - calling->complained;
	memcpy(calling->raw_complaint + calling->complained, part, got < room ? got : room);
	calling->complained += got < room ? got : room;
	return 1;
}

static int follow(struct calling *calling, struct cordon_error *err)
{
	unsigned limit = calling->call->timeout_ms ? calling->call->timeout_ms : TIMEOUT_MS;
	for (uint64_t begun = GetTickCount64();;) {
		write_some(calling);
		bool ended = WaitForSingleObject(calling->process, 0) == WAIT_OBJECT_0;
		int out = read_some(calling, &calling->output), complaint = read_some(calling, &calling->complaints);
		if (out < 0)
			return wsl_fail(err, "wsl.exe", "it prints more than it should");
		/* What it left running may hold the pipes, and is not waited for. */
		if (ended && out + complaint == 0)
			return 0;
		if (GetTickCount64() - begun >= limit)
			return wsl_fail(err, "wsl.exe", "it does not end");
		if (out + complaint == 0)
			Sleep(LOOK_MS);
	}
}

static int launch(struct calling *calling, const wchar_t *program, wchar_t *line, wchar_t *environment,
                  HANDLE theirs[3], struct cordon_error *err)
{
	char room[256];
	SIZE_T size = sizeof(room);
	STARTUPINFOEXW startup = { .StartupInfo = { .cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES,
		                                    .hStdInput = theirs[0], .hStdOutput = theirs[1],
		                                    .hStdError = theirs[2] },
		                   .lpAttributeList = (LPPROC_THREAD_ATTRIBUTE_LIST)(void *)room };
	PROCESS_INFORMATION made;
	if (!InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &size) ||
	    !UpdateProcThreadAttribute(startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, theirs,
	                               3 * sizeof(HANDLE), NULL, NULL))
		return wsl_fail(err, "wsl.exe", "the list of handles that are inherited cannot be made");
	BOOL started = CreateProcessW(program, line, NULL, NULL, TRUE,
	                              CREATE_UNICODE_ENVIRONMENT | CREATE_NO_WINDOW | EXTENDED_STARTUPINFO_PRESENT,
	                              environment, NULL, &startup.StartupInfo, &made);
	DeleteProcThreadAttributeList(startup.lpAttributeList);
	if (!started)
		return wsl_fail(err, "wsl.exe", "it cannot be executed");
	CloseHandle(made.hThread);
	calling->process = made.hProcess;
	return 0;
}

static int prepare(struct calling *calling, HANDLE theirs[3], struct cordon_error *err)
{
	const struct wsl_call *call = calling->call;
	wchar_t program[MAX_PATH];
	size_t count = 0;
	while (call->words[count])
		count++;
	const char **argv = arena_alloc(calling->arena, (count + 1) * sizeof(*argv));
	auto_free wchar_t *environment = wsl_environment();
	if (!argv || !environment)
		return fail_oom(err);
	argv[0] = "wsl.exe";
	memcpy(argv + 1, call->words, count * sizeof(*argv));
	char *line = windows_command_line(calling->arena, argv, count + 1);
	auto_free wchar_t *wide = line ? calloc(strlen(line) + 1, sizeof(*wide)) : NULL;
	if (!wide || text_to_wide(line, wide, strlen(line) + 1) < 0)
		return fail_oom(err);
	if (wsl_program(program, err) < 0)
		return -1;
	bool piped = windows_pipe(&calling->output, &theirs[1], false) &&
	             windows_pipe(&calling->complaints, &theirs[2], false);
	if (piped && call->file)
		piped = DuplicateHandle(GetCurrentProcess(), call->file, GetCurrentProcess(), &theirs[0], 0, TRUE,
		                        DUPLICATE_SAME_ACCESS);
	else if (piped)
		piped = windows_pipe(&calling->input, &theirs[0], true);
	if (!piped)
		return fail(err, CORDON_E_RESOURCE_EXHAUSTED, 0, "wsl.exe", "a pipe cannot be made (Windows error %lu)",
		            (unsigned long)GetLastError());
	return launch(calling, program, wide, environment, theirs, err);
}

int wsl_run(struct arena *arena, const struct wsl_call *call, struct wsl_answer *ret_answer, struct cordon_error *err)
{
	struct wsl_answer answer = { .out = arena_strdup(arena, "") };
	struct calling calling = { .call = call, .arena = arena, .answer = &answer };
	HANDLE theirs[3] = { NULL };
	unsigned char hash[crypto_hash_sha256_BYTES];
	DWORD status = 0;
	if (!answer.out)
		return fail_oom(err);
	crypto_hash_sha256_init(&calling.state);
	int result = prepare(&calling, theirs, err);
	for (int i = 0; i < 3; i++)
		close_handle(&theirs[i]);
	if (result == 0)
		result = follow(&calling, err);
	if (result < 0 && calling.process)
		TerminateProcess(calling.process, 1);
	if (result == 0 && !GetExitCodeProcess(calling.process, &status))
		result = wsl_fail(err, "wsl.exe", "its exit status cannot be told");
	close_handle(&calling.process);
	close_handle(&calling.input);
	close_handle(&calling.output);
	close_handle(&calling.complaints);
	if (result < 0)
		return -1;
	answer.status = (int)status;
	sha256_final(&calling.state, hash);
	sodium_bin2hex(answer.sum, sizeof(answer.sum), hash, sizeof(hash));
	char *complaint = wsl_decode(arena, calling.raw_complaint, calling.complained);
	snprintf(answer.complaint, sizeof(answer.complaint), "%s", complaint ? complaint : "");
	answer.complaint[strcspn(answer.complaint, "\r\n")] = '\0';
	*ret_answer = answer;
	return 0;
}
