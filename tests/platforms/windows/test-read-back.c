/* What reads back is accepted: the Windows driver with stand-ins for the few calls by which it reads settings of a
 * token and a job, which wine does not tell as they were set, and with the stand-in for fwpuclnt.dll (fake-wfp.c). So a
 * driver that refuses always is found out; and for each setting, one that reads back otherwise refuses by the wall's
 * name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "driver/proxy.h"
#include "driver/windows/windows.h"
#include "fake-wfp.h"

#include <sddl.h>

#include <cmocka.h>

/* ---- the stand-ins ----------------------------------------------------------------------------------------------- */

static HANDLE restricted;               /* the token that was made last */
static PSID denied[64];
static DWORD denied_count;
static struct {
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
	JOBOBJECT_BASIC_UI_RESTRICTIONS ui;
	JOBOBJECT_CPU_RATE_CONTROL_INFORMATION cpu;
} set;
static enum {
	TRUE_WORD,
	TOKEN_MEDIUM,
	TOKEN_PRIVILEGES_KEPT,
	TOKEN_GROUP_KEPT,
	TOKEN_OTHERS_ALIKE,
	TOKEN_OPEN,
	JOB_NOT_KILLED,
	JOB_BREAKAWAY,
	JOB_MEMORY_MORE,
	JOB_MEMORY_NONE,
	JOB_PROCESSES_MORE,
	JOB_UI_LESS,
	JOB_CPU_MORE
} lie;

#define REAL(library, name, type) ((type)(void *)GetProcAddress(GetModuleHandleW(library), name))

static BOOL WINAPI make_restricted(HANDLE token, DWORD flags, DWORD count, PSID_AND_ATTRIBUTES sids, DWORD privileges,
                                   PLUID_AND_ATTRIBUTES list, DWORD restricting, PSID_AND_ATTRIBUTES restrict_to,
                                   PHANDLE ret_token)
{
	BOOL(WINAPI * real)
	(HANDLE, DWORD, DWORD, PSID_AND_ATTRIBUTES, DWORD, PLUID_AND_ATTRIBUTES, DWORD, PSID_AND_ATTRIBUTES, PHANDLE) =
		REAL(L"advapi32", "CreateRestrictedToken", void *);
	assert_int_equal(flags, 1);
	assert_true(count < 64);
	for (denied_count = 0; denied_count < count; denied_count++) {
		free(denied[denied_count]);
		denied[denied_count] = malloc(GetLengthSid(sids[denied_count].Sid));
		CopySid(GetLengthSid(sids[denied_count].Sid), denied[denied_count], sids[denied_count].Sid);
	}
	if (!real(token, flags, count, sids, privileges, list, restricting, restrict_to, ret_token))
		return FALSE;
	restricted = *ret_token;
	return TRUE;
}

static void deny_groups(TOKEN_GROUPS *groups)
{
	for (DWORD i = 0; i < groups->GroupCount; i++)
		for (DWORD d = 0; d < denied_count; d++)
			if (EqualSid(groups->Groups[i].Sid, denied[d]))
				groups->Groups[i].Attributes = SE_GROUP_USE_FOR_DENY_ONLY;
	for (DWORD i = 0; lie == TOKEN_GROUP_KEPT && i < groups->GroupCount; i++)
		if (groups->Groups[i].Attributes == SE_GROUP_USE_FOR_DENY_ONLY) {
			groups->Groups[i].Attributes = SE_GROUP_ENABLED;
			return;
		}
}

static BOOL WINAPI token_information(HANDLE token, TOKEN_INFORMATION_CLASS class, PVOID bytes, DWORD size,
                                     PDWORD ret_size)
{
	static BYTE low[] = { 1, 1, 0, 0, 0, 0, 0, 16, 0x00, 0x10, 0, 0 },
		    medium[] = { 1, 1, 0, 0, 0, 0, 0, 16, 0x00, 0x20, 0, 0 };
	BOOL(WINAPI * real)
	(HANDLE, TOKEN_INFORMATION_CLASS, PVOID, DWORD, PDWORD) = REAL(L"advapi32", "GetTokenInformation", void *);
	BOOL done = real(token, class, bytes, size, ret_size);
	if (!done || !bytes)
		return done;
	if (class == TokenIntegrityLevel)
		((TOKEN_MANDATORY_LABEL *)bytes)->Label.Sid = lie == TOKEN_MEDIUM ? medium : low;
	if (class == TokenPrivileges && token == restricted)
		((TOKEN_PRIVILEGES *)bytes)->PrivilegeCount = lie == TOKEN_PRIVILEGES_KEPT ? 2 : 1;
	if (class == TokenGroups && token == restricted)
		deny_groups(bytes);
	if (class == TokenDefaultDacl && lie == TOKEN_OPEN)
		((TOKEN_DEFAULT_DACL *)bytes)->DefaultDacl->AceCount--;
	if (class == TokenGroups && token != restricted && lie == TOKEN_OTHERS_ALIKE)
		deny_groups(bytes);
	return TRUE;
}

static BOOL WINAPI set_job(HANDLE job, JOBOBJECTINFOCLASS class, PVOID bytes, DWORD size)
{
	BOOL(WINAPI * real)
	(HANDLE, JOBOBJECTINFOCLASS, PVOID, DWORD) = REAL(L"kernel32", "SetInformationJobObject", void *);
	if (class == JobObjectExtendedLimitInformation) {
		set.limits = *(JOBOBJECT_EXTENDED_LIMIT_INFORMATION *)bytes;
		/* As Windows keeps it. */
		set.limits.JobMemoryLimit &= ~(SIZE_T)4095;
	} else if (class == JobObjectBasicUIRestrictions) {
		set.ui = *(JOBOBJECT_BASIC_UI_RESTRICTIONS *)bytes;
	} else if (class == JobObjectCpuRateControlInformation) {
		set.cpu = *(JOBOBJECT_CPU_RATE_CONTROL_INFORMATION *)bytes;
		return TRUE;
	}
	return real(job, class, bytes, size);
}

static BOOL WINAPI query_job(HANDLE job, JOBOBJECTINFOCLASS class, PVOID bytes, DWORD size, PDWORD ret_size)
{
	BOOL(WINAPI * real)
	(HANDLE, JOBOBJECTINFOCLASS, PVOID, DWORD, PDWORD) = REAL(L"kernel32", "QueryInformationJobObject", void *);
	if (class == JobObjectExtendedLimitInformation) {
		JOBOBJECT_EXTENDED_LIMIT_INFORMATION *limits = bytes;
		*limits = set.limits;
		if (lie == JOB_NOT_KILLED)
			limits->BasicLimitInformation.LimitFlags &= ~(DWORD)JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
		if (lie == JOB_BREAKAWAY)
			limits->BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
		limits->JobMemoryLimit += lie == JOB_MEMORY_MORE ? 4096 : 0;
		if (lie == JOB_MEMORY_NONE)
			limits->BasicLimitInformation.LimitFlags &= ~(DWORD)JOB_OBJECT_LIMIT_JOB_MEMORY;
		limits->BasicLimitInformation.ActiveProcessLimit += lie == JOB_PROCESSES_MORE;
		return TRUE;
	}
	if (class == JobObjectBasicUIRestrictions) {
		*(JOBOBJECT_BASIC_UI_RESTRICTIONS *)bytes = set.ui;
		((JOBOBJECT_BASIC_UI_RESTRICTIONS *)bytes)->UIRestrictionsClass &=
			lie == JOB_UI_LESS ? ~(DWORD)1 : ~(DWORD)0;
		return TRUE;
	}
	if (class == JobObjectCpuRateControlInformation) {
		*(JOBOBJECT_CPU_RATE_CONTROL_INFORMATION *)bytes = set.cpu;
		((JOBOBJECT_CPU_RATE_CONTROL_INFORMATION *)bytes)->CpuRate += lie == JOB_CPU_MORE;
		return TRUE;
	}
	return real(job, class, bytes, size, ret_size);
}

/* What the import libraries would define. */
void *__imp_CreateRestrictedToken = (void *)make_restricted, *__imp_GetTokenInformation = (void *)token_information;
void *__imp_SetInformationJobObject = (void *)set_job, *__imp_QueryInformationJobObject = (void *)query_job;

static struct fake_wfp *wfp;

/* ---- a command --------------------------------------------------------------------------------------------------- */

static char here[PATH_MAX], data[PATH_MAX + 8], child[PATH_MAX + 16];
static struct ran {
	struct arena arena;
	struct profile profile;
	struct sandbox *sandbox;
	struct cordon_error err;
} ran;

#define HELD                                                                                                           \
	(WALL_BIT(FILESYSTEM) | WALL_BIT(PRIVILEGES) | WALL_BIT(LIFETIME) | WALL_BIT(IPC) | WALL_BIT(SPAWN) |          \
	 WALL_BIT(NETWORK) | WALL_BIT(LIMIT_MEMORY) | WALL_BIT(LIMIT_PROCESSES) | WALL_BIT(LIMIT_CPU))

static enum network_mode network;

/* How the stand-in for cordon-proxy.exe, which is child.exe, ends when it is to see what the filters do. */
static void say_probe(int status)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof(path), "%s/probe-status", here);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%d", status);
	assert_int_equal(fclose(file), 0);
}

static int raise_all(void)
{
	static const char *environment[] = { "SystemRoot=C:\\windows" };
	ran = (struct ran){ 0 };
	assert_int_equal(strings_add(&ran.arena, &ran.profile.argv, child), 0);
	assert_int_equal(strings_add(&ran.arena, &ran.profile.argv, "exit"), 0);
	assert_int_equal(strings_add(&ran.arena, &ran.profile.argv, "4"), 0);
	assert_int_equal(strings_add(&ran.arena, &ran.profile.candidates, child), 0);
	ran.profile.environment = (struct strings){ .items = environment, .count = 1 };
	ran.profile.driver = "windows";
	ran.profile.cwd = ran.profile.workspace = here;
	ran.profile.program = child;
	ran.profile.network = network;
	ran.profile.walls = HELD | WALL_BIT(DESCRIPTORS) | WALL_BIT(MASKED);
	/* No multiple of a page. */
	ran.profile.limits = (struct limits){ .memory_bytes = (64 << 20) + 100, .processes = 8, .cpu_percent = 50 };
	const struct walls walls = { .arena = &ran.arena, .profile = &ran.profile, .cwd_fd = -1, .data_dir = data };
	return driver_windows.raise(&driver_windows, &walls, &ran.sandbox, &ran.err);
}

static void clear(void)
{
	if (ran.sandbox)
		driver_windows.lower(ran.sandbox);
	arena_free(&ran.arena);
	ran = (struct ran){ 0 };
}

static int begin(void **state)
{
	(void)state;
	lie = TRUE_WORD;
	network = NETWORK_NONE;
	say_probe(0);
	*wfp = (struct fake_wfp){ 0 };
	return 0;
}

static void what_reads_back_is_accepted(void **state)
{
	const char *isolation[CORDON_WALL_MAX];
	struct running *running;
	struct outcome outcome;
	bool finished = false;
	(void)state;
	if (raise_all() < 0)
		fail_msg("%s: %s", ran.err.boundary, ran.err.reason);
	driver_windows.describe(ran.sandbox, &ran.arena, &ran.profile, isolation);
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++)
		if (HELD & (UINT32_C(1) << wall))
			assert_string_not_equal(isolation[wall], "none");
	assert_string_equal(isolation[CORDON_WALL_MASKED], "none");
	struct command command = { .arena = &ran.arena,
		                   .profile = &ran.profile,
		                   .environment = &ran.profile.environment,
		                   .cwd_fd = -1,
		                   .stdin_fd = -1,
		                   .stdout_cap = 1000,
		                   .stderr_cap = 1000,
		                   .interrupt_fd = -1 };
	if (driver_windows.start(ran.sandbox, &command, &running, &ran.err) < 0)
		fail_msg("%s: %s", ran.err.subject, ran.err.reason);
	while (!finished)
		assert_int_equal(running->ops->step(running, -1, &finished, &ran.err), 0);
	assert_int_equal(running->ops->end(running, &outcome, &ran.err), 0);
	assert_int_equal(outcome.exit_code, 4);
	running->ops->free(running);
	clear();
}

static void each_setting_that_reads_back_otherwise_refuses(void **state)
{
	static const struct {
		int lie;
		enum cordon_wall wall;
	} rows[] = {
		{ TOKEN_MEDIUM, CORDON_WALL_FILESYSTEM }, { TOKEN_PRIVILEGES_KEPT, CORDON_WALL_PRIVILEGES },
		{ TOKEN_GROUP_KEPT, CORDON_WALL_PRIVILEGES }, { TOKEN_OTHERS_ALIKE, CORDON_WALL_NETWORK },
		{ JOB_NOT_KILLED, CORDON_WALL_LIFETIME }, { JOB_BREAKAWAY, CORDON_WALL_LIFETIME },
		{ JOB_MEMORY_MORE, CORDON_WALL_LIMIT_MEMORY }, { JOB_MEMORY_NONE, CORDON_WALL_LIMIT_MEMORY },
		{ JOB_PROCESSES_MORE, CORDON_WALL_SPAWN }, { JOB_UI_LESS, CORDON_WALL_IPC },
		{ JOB_CPU_MORE, CORDON_WALL_LIMIT_CPU },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin(NULL);
		lie = rows[i].lie;
		assert_int_equal(raise_all(), -1);
		assert_int_equal(ran.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
		assert_string_equal(ran.err.boundary, cordon_wall_name(rows[i].wall));
		assert_false(wfp->open);
		clear();
	}
}

/* ---- filters ----------------------------------------------------------------------------------------------------- */

static void descriptor_text(unsigned i, char text[512])
{
	wchar_t *wide = NULL;
	assert_true(ConvertSecurityDescriptorToStringSecurityDescriptorW(
		wfp->descriptors[i], SDDL_REVISION_1, OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &wide,
		NULL));
	WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, 512, NULL, NULL);
	LocalFree(wide);
}

static void the_filters_of_no_network(void **state)
{
	char text[512];
	(void)state;
	assert_int_equal(raise_all(), 0);
	/* Asked for in one transaction of a session that leaves nothing behind, and each read back; but for the
	 * sublayer. */
	char wanted[2048] = "open add_sublayer close open begin ";
	for (int i = 0; i < 12; i++)
		strcat(wanted, "add_filter ");
	strcat(wanted, "commit get_sublayer free ");
	for (int i = 0; i < 12; i++)
		strcat(wanted, "get_filter free ");
	assert_string_equal(wfp->calls, wanted);
	assert_int_equal(wfp->session_flags, 1);
	assert_int_equal(wfp->handed_out, 0);
	assert_int_equal(wfp->count, 12);
	for (unsigned i = 0; i < wfp->count; i++) {
		const FWPM_FILTER0 *filter = &wfp->filters[i];
		assert_true(IsEqualGUID(&filter->subLayerKey, &wfp->sublayer.subLayerKey));
		assert_int_equal(filter->numFilterConditions, 1);
		descriptor_text(i, text);
		if (i % 2) {
			assert_int_equal(filter->action.type, FWP_ACTION_BLOCK);
			assert_int_equal(filter->weight.uint8, 0);
			assert_non_null(strstr(text, "O:LSD:(A;;CC;;;"));
			assert_non_null(strstr(text, "(A;;CC;;;AN)"));
			assert_null(strstr(text, ";AU)"));
		} else {
			assert_int_equal(filter->action.type, FWP_ACTION_PERMIT);
			assert_int_equal(filter->weight.uint8, 15);
			assert_string_equal(text, "O:LSD:(A;;CC;;;AU)");
		}
		for (unsigned other = 0; other < i; other++)
			assert_true(i / 2 == other / 2 ||
			            !IsEqualGUID(&filter->layerKey, &wfp->filters[other].layerKey));
	}
	clear();
	assert_false(wfp->open);
	assert_non_null(strstr(wfp->calls, "close "));
}

static void a_network_that_is_granted_has_no_filters(void **state)
{
	(void)state;
	raise_all();
	clear();
	begin(NULL);
	raise_all();
	struct profile all = ran.profile;
	clear();
	begin(NULL);
	ran = (struct ran){ 0 };
	all.network = NETWORK_ALL;
	all.walls &= ~WALL_BIT(NETWORK);
	ran.profile = all;
	const struct walls walls = { .arena = &ran.arena, .profile = &ran.profile, .cwd_fd = -1, .data_dir = data };
	assert_int_equal(driver_windows.raise(&driver_windows, &walls, &ran.sandbox, &ran.err), 0);
	assert_string_equal(wfp->calls, "");
	clear();
}

static void the_proxys_port_is_the_only_way(void **state)
{
	const char *why;
	HANDLE token;
	uint32_t held;
	char text[512];
	(void)state;
	assert_int_equal(windows_token(WINDOWS_TOKEN_OF_COMMAND, &token, &held, &ran.err), 0);
	struct windows_filters *filters = windows_filters_set(token, 3128, &why);
	assert_non_null(filters);
	assert_int_equal(wfp->count, 13);
	unsigned permits = 0;
	for (unsigned i = 0; i < wfp->count; i++) {
		const FWPM_FILTER0 *filter = &wfp->filters[i];
		const FWPM_FILTER_CONDITION0 *conditions = wfp->conditions[i];
		descriptor_text(i, text);
		if (filter->action.type != FWP_ACTION_PERMIT || strstr(text, ";AU)"))
			continue;
		permits++;
		/* TCP to 127.0.0.1:3128, connecting, above what blocks. */
		assert_int_equal(filter->layerKey.Data1, 0xc38d57d1);
		assert_int_equal(filter->numFilterConditions, 4);
		assert_int_equal(conditions[1].conditionValue.uint8, 6);
		assert_int_equal(conditions[2].conditionValue.uint32, 0x7f000001);
		assert_int_equal(conditions[3].conditionValue.uint16, 3128);
		assert_true(filter->weight.uint8 > 0 && filter->weight.uint8 < 15);
	}
	assert_int_equal(permits, 1);
	windows_filters_end(filters);
	CloseHandle(token);
}

/* What one sublayer blocks no other lets through, so that of two sandboxes neither would reach its proxy. */
static void sandboxes_share_a_sublayer(void **state)
{
	(void)state;
	assert_int_equal(raise_all(), 0);
	GUID first = wfp->sublayer.subLayerKey;
	/* It outlives the session in which it was made, which is no other's. */
	assert_int_equal(wfp->sublayer_session_flags, 0);
	clear();
	begin(NULL);
	wfp->failing = "add_sublayer";
	wfp->error = (DWORD)0x80320009;
	assert_int_equal(raise_all(), 0);
	assert_true(IsEqualGUID(&first, &wfp->sublayer.subLayerKey));
	clear();
}

/* Of listed hosts: the filters are for the port that raise() listens at, and that is handed out once. */
static void listed_hosts_have_a_port(void **state)
{
	int listener = -1, again = -1;
	(void)state;
	network = NETWORK_HOSTS;
	assert_int_equal(raise_all(), 0);
	uint16_t port = driver_windows.loopback_port(ran.sandbox);
	assert_int_not_equal(port, 0);
	assert_int_equal(wfp->count, 13);
	unsigned found = 0;
	for (unsigned i = 0; i < wfp->count; i++)
		found += wfp->filters[i].numFilterConditions == 4 && wfp->conditions[i][3].conditionValue.uint16 == port;
	assert_int_equal(found, 1);
	assert_int_equal(driver_windows.take_listeners(ran.sandbox, &listener), 0);
	assert_true(listener >= 0);
	assert_int_equal(driver_windows.take_listeners(ran.sandbox, &again), -1);
	close(listener);
	clear();
}

/* That they read back is not taken for that they work. */
static void filters_that_do_nothing_refuse(void **state)
{
	static const char *const words[] = { "deny no connection", "do not let the proxy be reached", "cannot be tried" };
	(void)state;
	for (int mode = NETWORK_NONE; mode <= NETWORK_HOSTS; mode++)
		for (int status = 1; status <= 3; status++) {
			begin(NULL);
			network = (enum network_mode)mode;
			say_probe(status);
			assert_int_equal(raise_all(), -1);
			assert_string_equal(ran.err.boundary, "network");
			assert_non_null(strstr(ran.err.reason, words[status - 1]));
			assert_false(wfp->open);
			clear();
		}
}

static bool is_denied(WELL_KNOWN_SID_TYPE type)
{
	for (DWORD i = 0; i < denied_count; i++)
		if (IsWellKnownSid(denied[i], type))
			return true;
	return false;
}

/* Its token keeps the group by which filters let it pass, and nothing else that a command's has not. */
static void the_proxy_has_walls_of_its_own(void **state)
{
	static const struct {
		int lie;
		enum cordon_wall wall;
	} rows[] = {
		{ TOKEN_MEDIUM, CORDON_WALL_FILESYSTEM }, { TOKEN_PRIVILEGES_KEPT, CORDON_WALL_PRIVILEGES },
		{ TOKEN_OPEN, CORDON_WALL_PRIVILEGES }, { JOB_NOT_KILLED, CORDON_WALL_LIFETIME },
		{ JOB_BREAKAWAY, CORDON_WALL_LIFETIME },
		{ JOB_PROCESSES_MORE, CORDON_WALL_SPAWN }, { JOB_UI_LESS, CORDON_WALL_IPC },
	};
	struct proxy_process process;
	(void)state;
	assert_int_equal(raise_all(), 0);
	assert_true(is_denied(WinAuthenticatedUserSid));
	DWORD of_command = denied_count;
	assert_int_equal(proxy_open(&process, &ran.err), 0);
	assert_int_equal(proxy_start(&process, proxy_program_fd(&ran.err), &ran.err), 0);
	assert_false(is_denied(WinAuthenticatedUserSid));
	assert_int_equal(denied_count + 1, of_command);
	proxy_end(&process);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		lie = rows[i].lie;
		assert_int_equal(proxy_open(&process, &ran.err), 0);
		assert_int_equal(proxy_start(&process, proxy_program_fd(&ran.err), &ran.err), -1);
		assert_string_equal(ran.err.boundary, cordon_wall_name(rows[i].wall));
		proxy_end(&process);
	}
	clear();
}

/* What tries the filters is no more the caller's than a command is. */
static void the_probe_finds_nothing_of_the_callers(void **state)
{
	(void)state;
	assert_int_equal(_putenv("OF_THE_CALLER=a secret"), 0);
	int result = raise_all();
	assert_int_equal(_putenv("OF_THE_CALLER="), 0);
	assert_int_equal(result, 0);
	clear();
}

static void refused(void)
{
	assert_int_equal(raise_all(), -1);
	assert_int_equal(ran.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(ran.err.boundary, "network");
	assert_false(wfp->open);
	assert_int_equal(wfp->handed_out, 0);
	clear();
}

static void whatever_fails_refuses(void **state)
{
	static const char *const calls[] = { "open",   "begin",        "add_sublayer", "add_filter",
		                             "commit", "get_sublayer", "get_filter" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		for (int denied_or_not = 0; denied_or_not < 2; denied_or_not++) {
			begin(NULL);
			wfp->failing = calls[i];
			wfp->error = denied_or_not ? ERROR_ACCESS_DENIED : 0x80320012;
			refused();
		}
	begin(NULL);
	wfp->failing = "open";
	wfp->error = ERROR_ACCESS_DENIED;
	assert_int_equal(raise_all(), -1);
	assert_non_null(strstr(ran.err.reason, "administrator"));
	clear();
}

static void whatever_reads_back_otherwise_refuses(void **state)
{
	(void)state;
	for (int one = LIE_SUBLAYER; one < LIE_MAX; one++)
		for (unsigned filter = 0; filter < 12; filter++) {
			begin(NULL);
			wfp->lie = (enum fake_lie)one;
			wfp->lying_filter = filter;
			refused();
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_reads_back_is_accepted, begin),
		cmocka_unit_test_setup(each_setting_that_reads_back_otherwise_refuses, begin),
		cmocka_unit_test_setup(the_filters_of_no_network, begin),
		cmocka_unit_test_setup(a_network_that_is_granted_has_no_filters, begin),
		cmocka_unit_test_setup(the_proxys_port_is_the_only_way, begin),
		cmocka_unit_test_setup(sandboxes_share_a_sublayer, begin),
		cmocka_unit_test_setup(listed_hosts_have_a_port, begin),
		cmocka_unit_test_setup(filters_that_do_nothing_refuse, begin),
		cmocka_unit_test_setup(the_proxy_has_walls_of_its_own, begin),
		cmocka_unit_test_setup(the_probe_finds_nothing_of_the_callers, begin),
		cmocka_unit_test_setup(whatever_fails_refuses, begin),
		cmocka_unit_test_setup(whatever_reads_back_otherwise_refuses, begin),
	};
	HMODULE library = LoadLibraryExW(L"fwpuclnt.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
	wfp = library ? (struct fake_wfp *)(void *)GetProcAddress(library, "fake_wfp") : NULL;
	if (!wfp || !getcwd(here, sizeof(here)))
		return 1;
	snprintf(data, sizeof(data), "%s/read-back-data", here);
	snprintf(child, sizeof(child), "%s/child.exe", here);
	mkdir(data, 0700);
	return cmocka_run_group_tests_name("read-back", tests, NULL, NULL);
}
