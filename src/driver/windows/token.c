/* The tokens of commands and of the proxy: see windows.h. */
#include "driver/windows/windows.h"

#include <sddl.h>

#include <string.h>

#include "base/cleanup.h"

#ifndef DISABLE_MAX_PRIVILEGE
#define DISABLE_MAX_PRIVILEGE 1
#endif

int windows_fail(struct cordon_error *err, enum cordon_wall wall, DWORD error, const char *what)
{
	fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, cordon_wall_name(wall), "%s (Windows error %lu)", what,
	     (unsigned long)error);
	fail_boundary(err, cordon_wall_name(wall));
	return fail_remedy(err,
	                   "run `cordon doctor`; this Windows, or what stands in for it, does not enforce the setting");
}

void *windows_token_information(HANDLE token, TOKEN_INFORMATION_CLASS class)
{
	DWORD size = 0;
	GetTokenInformation(token, class, NULL, 0, &size);
	void *bytes = size ? malloc(size) : NULL;
	if (bytes && !GetTokenInformation(token, class, bytes, size, &size)) {
		free(bytes);
		bytes = NULL;
	}
	return bytes;
}

bool windows_is_low(HANDLE token)
{
	auto_free TOKEN_MANDATORY_LABEL *label = windows_token_information(token, TokenIntegrityLevel);
	if (!label || !IsValidSid(label->Label.Sid))
		return false;
	DWORD level = *GetSidSubAuthority(label->Label.Sid, (DWORD)(*GetSidSubAuthorityCount(label->Label.Sid) - 1));
	return level <= SECURITY_MANDATORY_LOW_RID;
}

static bool is_kept(enum windows_token_use use, const SID_AND_ATTRIBUTES *group)
{
	if (use == WINDOWS_TOKEN_OF_PROXY && IsWellKnownSid(group->Sid, WinAuthenticatedUserSid))
		return true;
	return IsWellKnownSid(group->Sid, WinWorldSid) || IsWellKnownSid(group->Sid, WinBuiltinUsersSid) ||
	       (group->Attributes & SE_GROUP_LOGON_ID) == SE_GROUP_LOGON_ID || group->Attributes & SE_GROUP_INTEGRITY;
}

/* No privilege but passing through directories, and no group that is not for denying only. */
static bool is_restricted(enum windows_token_use use, HANDLE token)
{
	auto_free TOKEN_PRIVILEGES *privileges = windows_token_information(token, TokenPrivileges);
	auto_free TOKEN_GROUPS *groups = windows_token_information(token, TokenGroups);
	if (!privileges || !groups || privileges->PrivilegeCount > 1)
		return false;
	for (DWORD i = 0; i < groups->GroupCount; i++)
		if (!is_kept(use, &groups->Groups[i]) && !(groups->Groups[i].Attributes & SE_GROUP_USE_FOR_DENY_ONLY))
			return false;
	return true;
}

static bool set_low(HANDLE token)
{
	PSID low = NULL;
	if (!ConvertStringSidToSidW(L"S-1-16-4096", &low))
		return false;
	TOKEN_MANDATORY_LABEL label = { .Label = { .Sid = low, .Attributes = SE_GROUP_INTEGRITY } };
	BOOL set = SetTokenInformation(token, TokenIntegrityLevel, &label, sizeof(label) + GetLengthSid(low));
	LocalFree(low);
	return set;
}

/* ---- who may open a process of cordon-proxy ---------------------------------------------------------------------- */

PSECURITY_DESCRIPTOR windows_closed_descriptor(void)
{
	PSECURITY_DESCRIPTOR descriptor = NULL;
	ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;RC;;;OW)", SDDL_REVISION_1,
	                                                     &descriptor, NULL);
	return descriptor;
}

static bool same_access(ACL *a, ACL *b)
{
	for (DWORD i = 0; i < a->AceCount && a->AceCount == b->AceCount; i++) {
		void *one, *other;
		if (!GetAce(a, i, &one) || !GetAce(b, i, &other) ||
		    ((ACE_HEADER *)one)->AceSize != ((ACE_HEADER *)other)->AceSize ||
		    memcmp(one, other, ((ACE_HEADER *)one)->AceSize) != 0)
			return false;
	}
	return a->AceCount == b->AceCount;
}

/* Of what a process with this token makes: threads, above all. */
static bool close_default_access(HANDLE token)
{
	PSECURITY_DESCRIPTOR descriptor = windows_closed_descriptor();
	TOKEN_DEFAULT_DACL wanted = { 0 };
	BOOL has = FALSE, is_default;
	bool closed = false;
	if (descriptor && GetSecurityDescriptorDacl(descriptor, &has, &wanted.DefaultDacl, &is_default) && has) {
		(void)!SetTokenInformation(token, TokenDefaultDacl, &wanted, sizeof(wanted));
		auto_free TOKEN_DEFAULT_DACL *now = windows_token_information(token, TokenDefaultDacl);
		closed = now && now->DefaultDacl && same_access(now->DefaultDacl, wanted.DefaultDacl);
	}
	LocalFree(descriptor);
	return closed;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

int windows_token(enum windows_token_use use, HANDLE *ret_token, uint32_t *ret_held, struct cordon_error *err)
{
	HANDLE own, token = NULL;
	if (!OpenProcessToken(GetCurrentProcess(),
	                      TOKEN_DUPLICATE | TOKEN_QUERY | TOKEN_ASSIGN_PRIMARY | TOKEN_ADJUST_DEFAULT, &own))
		return windows_fail(err, CORDON_WALL_PRIVILEGES, GetLastError(), "the caller's token cannot be opened");
	auto_free TOKEN_GROUPS *groups = windows_token_information(own, TokenGroups);
	auto_free SID_AND_ATTRIBUTES *denied = groups ? calloc(groups->GroupCount + 1, sizeof(*denied)) : NULL;
	DWORD count = 0;
	for (DWORD i = 0; denied && i < groups->GroupCount; i++)
		if (!is_kept(use, &groups->Groups[i]))
			denied[count++].Sid = groups->Groups[i].Sid;
	BOOL made =
		denied && CreateRestrictedToken(own, DISABLE_MAX_PRIVILEGE, count, denied, 0, NULL, 0, NULL, &token);
	DWORD error = GetLastError();
	CloseHandle(own);
	if (!made)
		return windows_fail(err, CORDON_WALL_PRIVILEGES, error, "a restricted token cannot be made");
	(void)!set_low(token);
	bool is_closed = use != WINDOWS_TOKEN_OF_PROXY || close_default_access(token);
	*ret_held = (is_closed && is_restricted(use, token) ? WALL_BIT(PRIVILEGES) : 0) |
	            (windows_is_low(token) ? WALL_BIT(FILESYSTEM) : 0);
	*ret_token = token;
	return 0;
}
