/* Filters of the Windows Filtering Platform for the processes of one sandbox: see windows.h.
 *
 * A command's token is its user's, and differs from the user's other programs in this: the group Authenticated Users
 * is there for denying only, so an access list that allows that group does not match it. In a sublayer of our own, at
 * each layer where a connection is made, accepted or listened for: what matches that group is let go on to the other
 * sublayers, first; then, where there is a proxy, its port of the loopback address; then everything of this user is
 * blocked, and of whoever is anonymous, which every program can make itself.
 *
 * What any sublayer blocks is blocked, and the filters of one sandbox match the commands of the user's others: so all
 * sandboxes have one sublayer in common, where the port of each proxy comes before what blocks. It is there until the
 * machine starts anew, and without filters does nothing. The session of the filters is dynamic: they are gone when the
 * engine is closed or this process ends, and the job is killed then as well. fwpuclnt.dll is loaded from the system
 * directory when it is needed; headers have none of its GUIDs. */
#include "driver/windows/windows.h"

#include <fwpmu.h>
#include <sddl.h>
#include <string.h>

#include "base/cleanup.h"

#ifndef FWPM_SESSION_FLAG_DYNAMIC
#define FWPM_SESSION_FLAG_DYNAMIC 0x1
#endif
#ifndef FWP_E_ALREADY_EXISTS
#define FWP_E_ALREADY_EXISTS ((HRESULT)0x80320009)
#endif
#ifndef FWPM_FILTER_FLAG_DISABLED
#define FWPM_FILTER_FLAG_DISABLED 0x20
#endif
#define WEIGHT_OTHERS 15
#define WEIGHT_PROXY 10
#define WEIGHT_ALL 0
#define SUBLAYER_WEIGHT 0xffff
#define LOOPBACK 0x7f000001
#define CONDITIONS_MAX 4
#define FILTERS_MAX 16

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static const struct {
	GUID key;
	bool outgoing, v6;
} layers[] = {
	/* ALE_AUTH_CONNECT, ALE_AUTH_RECV_ACCEPT, ALE_AUTH_LISTEN; for IP version 4 and 6 */
	{ { 0xc38d57d1, 0x05a7, 0x4c33, { 0x90, 0x4f, 0x7f, 0xbc, 0xee, 0xe6, 0x0e, 0x82 } }, true, false },
	{ { 0x4a72393b, 0x319f, 0x44bc, { 0x84, 0xc3, 0xba, 0x54, 0xdc, 0xb3, 0xb6, 0xb4 } }, true, true },
	{ { 0xe1cd9fe7, 0xf4b5, 0x4273, { 0x96, 0xc0, 0x59, 0x2e, 0x48, 0x7b, 0x86, 0x50 } }, false, false },
	{ { 0xa3b42c97, 0x9f04, 0x4672, { 0xb8, 0x7e, 0xce, 0xe9, 0xc4, 0x83, 0x25, 0x7f } }, false, true },
	{ { 0x88bb5dad, 0x76d7, 0x4227, { 0x9c, 0x71, 0xdf, 0x0a, 0x3e, 0xd7, 0xbe, 0x7e } }, false, false },
	{ { 0x7ac9de24, 0x17dd, 0x4814, { 0xb4, 0xbd, 0xa9, 0xfb, 0xc9, 0x5a, 0x32, 0x1b } }, false, true },
};
static const GUID common_sublayer = { 0x5f0d7a34, 0x6a0e, 0x4c0b, { 0x9d, 0x5b, 0x3b, 0x1e, 0xc4, 0x72, 0x90, 0xd8 } };
static const GUID by_user = { 0xaf043a0a, 0xb34d, 0x4f86, { 0x97, 0x9c, 0xc9, 0x03, 0x71, 0xaf, 0x6e, 0x66 } };
static const GUID by_protocol = { 0x3971ef2b, 0x623e, 0x4f9a, { 0x8c, 0xb1, 0x6e, 0x79, 0xb8, 0x06, 0xb9, 0xa7 } };
static const GUID by_address = { 0xb235ae9a, 0x1d64, 0x49b8, { 0xa4, 0x4c, 0x5f, 0xf3, 0xd9, 0x09, 0x50, 0x45 } };
static const GUID by_port = { 0xc35a604d, 0xd22b, 0x4e1a, { 0x91, 0xb4, 0x68, 0xf6, 0x74, 0xee, 0x67, 0x4b } };

/* Its functions, under their names. */
static const char *const function_names[] = {
	"FwpmEngineOpen0",   "FwpmEngineClose0", "FwpmTransactionBegin0", "FwpmTransactionCommit0",  "FwpmSubLayerAdd0",
	"FwpmSubLayerGetByKey0", "FwpmFilterAdd0",   "FwpmFilterGetByKey0",   "FwpmFreeMemory0",
};
struct functions {
	DWORD (WINAPI *open)(const wchar_t *, UINT32, SEC_WINNT_AUTH_IDENTITY_W *, const FWPM_SESSION0 *, HANDLE *);
	DWORD (WINAPI *close)(HANDLE);
	DWORD (WINAPI *begin)(HANDLE, UINT32);
	DWORD (WINAPI *commit)(HANDLE);
	DWORD (WINAPI *add_sublayer)(HANDLE, const FWPM_SUBLAYER0 *, PSECURITY_DESCRIPTOR);
	DWORD (WINAPI *get_sublayer)(HANDLE, const GUID *, FWPM_SUBLAYER0 **);
	DWORD (WINAPI *add_filter)(HANDLE, const FWPM_FILTER0 *, PSECURITY_DESCRIPTOR, UINT64 *);
	DWORD (WINAPI *get_filter)(HANDLE, const GUID *, FWPM_FILTER0 **);
	void (WINAPI *free_memory)(void **);
};
_Static_assert(sizeof(struct functions) == ARRAY_SIZE(function_names) * sizeof(void (*)(void)), "a name for each");

struct windows_filters {
	struct functions call;
	HMODULE library;
	HANDLE engine;
	PSECURITY_DESCRIPTOR others, all;       /* which tokens a filter is for */
	FWP_BYTE_BLOB others_blob, all_blob;
	FWPM_SUBLAYER0 sublayer;
	FWPM_FILTER0 filters[FILTERS_MAX];
	FWPM_FILTER_CONDITION0 conditions[FILTERS_MAX][CONDITIONS_MAX];
	size_t count;
};

static void add(struct windows_filters *all, size_t layer, uint8_t weight, UINT32 action, FWP_BYTE_BLOB *whose,
                uint16_t port)
{
	FWPM_FILTER0 *filter = &all->filters[all->count];
	FWPM_FILTER_CONDITION0 *condition = all->conditions[all->count++];
	filter->displayData.name = (wchar_t *)(uintptr_t)L"cordon";
	filter->layerKey = layers[layer].key;
	filter->subLayerKey = all->sublayer.subLayerKey;
	filter->weight.type = FWP_UINT8;
	filter->weight.uint8 = weight;
	filter->action.type = action;
	filter->filterCondition = condition;
	condition[0].fieldKey = by_user;
	condition[0].conditionValue.type = FWP_SECURITY_DESCRIPTOR_TYPE;
	condition[0].conditionValue.sd = whose;
	filter->numFilterConditions = port ? 4 : 1;
	if (!port)
		return;
	condition[1].fieldKey = by_protocol;
	condition[1].conditionValue.type = FWP_UINT8;
	condition[1].conditionValue.uint8 = 6;
	condition[2].fieldKey = by_address;
	condition[2].conditionValue.type = FWP_UINT32;
	condition[2].conditionValue.uint32 = LOOPBACK;
	condition[3].fieldKey = by_port;
	condition[3].conditionValue.type = FWP_UINT16;
	condition[3].conditionValue.uint16 = port;
}

static bool plan(struct windows_filters *all, uint16_t port)
{
	all->sublayer.displayData.name = (wchar_t *)(uintptr_t)L"cordon";
	all->sublayer.weight = SUBLAYER_WEIGHT;
	all->sublayer.subLayerKey = common_sublayer;
	bool named = true;
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++) {
		add(all, i, WEIGHT_OTHERS, FWP_ACTION_PERMIT, &all->others_blob, 0);
		if (port && layers[i].outgoing && !layers[i].v6)
			add(all, i, WEIGHT_PROXY, FWP_ACTION_PERMIT, &all->all_blob, port);
		add(all, i, WEIGHT_ALL, FWP_ACTION_BLOCK, &all->all_blob, 0);
	}
	for (size_t i = 0; i < all->count; i++)
		named &= SUCCEEDED(CoCreateGuid(&all->filters[i].filterKey));
	return named;
}

/* ---- who is meant ------------------------------------------------------------------------------------------------ */

/* Of the group Authenticated Users in a token: whether it is there, and for denying only. */
static bool group_is(HANDLE token, bool deny_only)
{
	auto_free TOKEN_GROUPS *groups = windows_token_information(token, TokenGroups);
	for (DWORD i = 0; groups && i < groups->GroupCount; i++) {
		DWORD attributes = groups->Groups[i].Attributes;
		if (IsWellKnownSid(groups->Groups[i].Sid, WinAuthenticatedUserSid))
			return deny_only ? attributes & SE_GROUP_USE_FOR_DENY_ONLY :
			                   attributes & SE_GROUP_ENABLED && !(attributes & SE_GROUP_USE_FOR_DENY_ONLY);
	}
	return false;
}

static bool is_told_apart(HANDLE token)
{
	HANDLE own;
	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &own))
		return false;
	bool apart = group_is(token, true) && group_is(own, false);
	CloseHandle(own);
	return apart;
}

static bool describe_tokens(struct windows_filters *all, HANDLE token)
{
	auto_free TOKEN_USER *user = windows_token_information(token, TokenUser);
	wchar_t *sid = NULL, text[256];
	ULONG size = 0;
	if (!user || !ConvertSidToStringSidW(user->User.Sid, &sid))
		return false;
	bool fits = wcslen(sid) < 200;
	if (fits)
		swprintf(text, ARRAY_SIZE(text), L"O:LSD:(A;;CC;;;%ls)(A;;CC;;;AN)", sid);
	LocalFree(sid);
	if (!fits || !ConvertStringSecurityDescriptorToSecurityDescriptorW(text, SDDL_REVISION_1, &all->all, &size))
		return false;
	all->all_blob = (FWP_BYTE_BLOB){ size, all->all };
	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(L"O:LSD:(A;;CC;;;AU)", SDDL_REVISION_1, &all->others,
	                                                          &size))
		return false;
	all->others_blob = (FWP_BYTE_BLOB){ size, all->others };
	return true;
}

/* ---- asking, and reading back ------------------------------------------------------------------------------------ */

static bool load(struct windows_filters *all)
{
	all->library = LoadLibraryExW(L"fwpuclnt.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
	FARPROC found[ARRAY_SIZE(function_names)];
	for (size_t i = 0; i < ARRAY_SIZE(function_names); i++)
		if (!all->library || !(found[i] = GetProcAddress(all->library, function_names[i])))
			return false;
	memcpy(&all->call, found, sizeof(found));
	return true;
}

/* In a session that is not dynamic, with which the filters of other sandboxes would lose it. */
static DWORD add_sublayer(const struct windows_filters *all)
{
	const FWPM_SESSION0 session = { .displayData = { .name = (wchar_t *)(uintptr_t)L"cordon" } };
	HANDLE engine;
	DWORD error = all->call.open(NULL, RPC_C_AUTHN_WINNT, NULL, &session, &engine);
	if (error != ERROR_SUCCESS)
		return error;
	error = all->call.add_sublayer(engine, &all->sublayer, NULL);
	all->call.close(engine);
	return error == (DWORD)FWP_E_ALREADY_EXISTS ? ERROR_SUCCESS : error;
}

static DWORD ask(struct windows_filters *all)
{
	const FWPM_SESSION0 session = { .displayData = { .name = (wchar_t *)(uintptr_t)L"cordon" },
		                        .flags = FWPM_SESSION_FLAG_DYNAMIC };
	DWORD error = add_sublayer(all);
	if (error == ERROR_SUCCESS)
		error = all->call.open(NULL, RPC_C_AUTHN_WINNT, NULL, &session, &all->engine);
	if (error == ERROR_SUCCESS)
		error = all->call.begin(all->engine, 0);
	for (size_t i = 0; error == ERROR_SUCCESS && i < all->count; i++)
		error = all->call.add_filter(all->engine, &all->filters[i], NULL, NULL);
	/* What is not committed is gone with the engine. */
	return error == ERROR_SUCCESS ? all->call.commit(all->engine) : error;
}

static bool same_value(const FWP_CONDITION_VALUE0 *a, const FWP_CONDITION_VALUE0 *b)
{
	if (a->type != b->type)
		return false;
	switch ((int)a->type) {
	case FWP_UINT8:
		return a->uint8 == b->uint8;
	case FWP_UINT16:
		return a->uint16 == b->uint16;
	case FWP_UINT32:
		return a->uint32 == b->uint32;
	case FWP_SECURITY_DESCRIPTOR_TYPE:
		return a->sd && b->sd && a->sd->size == b->sd->size && !memcmp(a->sd->data, b->sd->data, a->sd->size);
	default:
		return false;
	}
}

static bool same_filter(const FWPM_FILTER0 *found, const FWPM_FILTER0 *wanted)
{
	if (!IsEqualGUID(&found->layerKey, &wanted->layerKey) ||
	    !IsEqualGUID(&found->subLayerKey, &wanted->subLayerKey) || found->action.type != wanted->action.type ||
	    found->flags & FWPM_FILTER_FLAG_DISABLED || found->weight.type != FWP_UINT8 ||
	    found->weight.uint8 != wanted->weight.uint8 || found->numFilterConditions != wanted->numFilterConditions)
		return false;
	/* Their order is not kept for certain. */
	for (UINT32 i = 0; i < wanted->numFilterConditions; i++) {
		const FWPM_FILTER_CONDITION0 *one = &wanted->filterCondition[i];
		bool there = false;
		for (UINT32 j = 0; j < found->numFilterConditions; j++)
			there |= IsEqualGUID(&found->filterCondition[j].fieldKey, &one->fieldKey) &&
			         found->filterCondition[j].matchType == one->matchType &&
			         same_value(&found->filterCondition[j].conditionValue, &one->conditionValue);
		if (!there)
			return false;
	}
	return true;
}

static bool reads_back(struct windows_filters *all)
{
	FWPM_SUBLAYER0 *sublayer = NULL;
	bool right = all->call.get_sublayer(all->engine, &all->sublayer.subLayerKey, &sublayer) == ERROR_SUCCESS &&
	             sublayer && sublayer->weight == SUBLAYER_WEIGHT;
	if (sublayer)
		all->call.free_memory((void **)&sublayer);
	for (size_t i = 0; right && i < all->count; i++) {
		FWPM_FILTER0 *filter = NULL;
		right = all->call.get_filter(all->engine, &all->filters[i].filterKey, &filter) == ERROR_SUCCESS &&
		        filter && same_filter(filter, &all->filters[i]);
		if (filter)
			all->call.free_memory((void **)&filter);
	}
	return right;
}

struct windows_filters *windows_filters_set(HANDLE token, uint16_t proxy_port, const char **ret_why)
{
	struct windows_filters *all = calloc(1, sizeof(*all));
	*ret_why = "memory is short";
	if (!all)
		return NULL;
	DWORD error = ERROR_SUCCESS;
	if (!is_told_apart(token) || !describe_tokens(all, token))
		*ret_why = "the command's token cannot be told from those of its user's other programs";
	else if (!load(all) || !plan(all, proxy_port))
		*ret_why = "the Windows Filtering Platform is not there";
	else if ((error = ask(all)) == ERROR_ACCESS_DENIED)
		*ret_why = "filters of the Windows Filtering Platform may be set by an administrator only";
	else if (error != ERROR_SUCCESS)
		*ret_why = "the Windows Filtering Platform does not take the filters";
	else if (!reads_back(all))
		*ret_why = "the filters of the Windows Filtering Platform do not read back";
	else
		return all;
	windows_filters_end(all);
	return NULL;
}

void windows_filters_end(struct windows_filters *all)
{
	if (!all)
		return;
	if (all->engine)
		all->call.close(all->engine);
	if (all->library)
		FreeLibrary(all->library);
	LocalFree(all->others);
	LocalFree(all->all);
	free(all);
}
