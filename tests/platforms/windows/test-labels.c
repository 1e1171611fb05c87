/* Integrity labels of writable directories, and their journals. The system's two calls are stood in for by a table of
 * labels in this program, linked in their place, since wine has no mandatory labels: what is shown is who sets and
 * restores what, and not that Windows keeps to a label. Journals and locks are the real ones; of a label's text wine
 * keeps the level, which is what is looked at. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "driver/machine.h"
#include "driver/windows/windows.h"

#include <aclapi.h>
#include <sddl.h>

#include <cmocka.h>

#define MEDIUM L"S:(ML;;NW;;;ME)"

/* ---- the stand-in ------------------------------------------------------------------------------------------------ */

static struct {
	wchar_t path[512];
	char list[256];                 /* an ACL */
} labels_of[8];
static size_t known;
static bool lies;                       /* says that it was set */

static char *list_of(const wchar_t *path)
{
	for (size_t i = 0; i < known; i++)
		if (!_wcsicmp(labels_of[i].path, path))
			return labels_of[i].list;
	wcscpy(labels_of[known].path, path);
	InitializeAcl((ACL *)(void *)labels_of[known].list, sizeof(ACL), ACL_REVISION);
	return labels_of[known++].list;
}

static DWORD WINAPI get_label(LPWSTR path, SE_OBJECT_TYPE type, SECURITY_INFORMATION what, PSID *owner, PSID *group,
                              PACL *dacl, PACL *sacl, PSECURITY_DESCRIPTOR *ret_descriptor)
{
	ACL *list = (ACL *)(void *)list_of(path);
	struct {
		SECURITY_DESCRIPTOR descriptor;
		char list[256];
	} *made = LocalAlloc(LPTR, sizeof(*made));
	assert_true(type == SE_FILE_OBJECT && what == LABEL_SECURITY_INFORMATION && !owner && !group && !dacl);
	memcpy(made->list, list, list->AclSize);
	*sacl = (ACL *)(void *)made->list;
	InitializeSecurityDescriptor(&made->descriptor, SECURITY_DESCRIPTOR_REVISION);
	SetSecurityDescriptorSacl(&made->descriptor, TRUE, *sacl, FALSE);
	*ret_descriptor = made;
	return ERROR_SUCCESS;
}

static DWORD WINAPI set_label(LPWSTR path, SE_OBJECT_TYPE type, SECURITY_INFORMATION what, PSID owner, PSID group,
                              PACL dacl, PACL list)
{
	assert_true(type == SE_FILE_OBJECT && what == LABEL_SECURITY_INFORMATION && !owner && !group && !dacl && list);
	if (!lies)
		memcpy(list_of(path), list, list->AclSize);
	return ERROR_SUCCESS;
}

/* wine writes this part of a list only where all of it is asked for. */
static BOOL WINAPI to_text(PSECURITY_DESCRIPTOR descriptor, DWORD revision, SECURITY_INFORMATION what, LPWSTR *ret_text,
                           PULONG ret_length)
{
	BOOL(WINAPI * real)
	(PSECURITY_DESCRIPTOR, DWORD, SECURITY_INFORMATION, LPWSTR *, PULONG) = (void *)GetProcAddress(
		GetModuleHandleW(L"advapi32"), "ConvertSecurityDescriptorToStringSecurityDescriptorW");
	assert_true(what == LABEL_SECURITY_INFORMATION);
	return real(descriptor, revision, SACL_SECURITY_INFORMATION, ret_text, ret_length);
}

/* What the import library would define. */
void *__imp_ConvertSecurityDescriptorToStringSecurityDescriptorW = (void *)to_text;
void *__imp_GetNamedSecurityInfoW = (void *)get_label, *__imp_SetNamedSecurityInfoW = (void *)set_label;

/* ---- the ground -------------------------------------------------------------------------------------------------- */

static char here[PATH_MAX], data[PATH_MAX + 8], one[PATH_MAX + 8], two[PATH_MAX + 8];

static void native(const char *path, wchar_t *ret)
{
	swprintf(ret, 512, L"%c:%hs", path[1] - 'a' + 'A', path + 2);
	for (; *ret; ret++)
		if (*ret == L'/')
			*ret = L'\\';
}

static void give(const char *path, const wchar_t *label)
{
	wchar_t wide[512];
	PSECURITY_DESCRIPTOR descriptor = NULL;
	BOOL present, defaulted;
	ACL *list;
	native(path, wide);
	assert_true(ConvertStringSecurityDescriptorToSecurityDescriptorW(label, SDDL_REVISION_1, &descriptor, NULL));
	assert_true(GetSecurityDescriptorSacl(descriptor, &present, &list, &defaulted) && present);
	memcpy(list_of(wide), list, list->AclSize);
	LocalFree(descriptor);
}

/* The level that its label names, in the last part of a SID; 0: no label. */
static DWORD level_of(const char *path)
{
	wchar_t wide[512];
	SYSTEM_MANDATORY_LABEL_ACE *entry;
	native(path, wide);
	ACL *list = (ACL *)(void *)list_of(wide);
	if (!list->AceCount)
		return 0;
	assert_true(GetAce(list, 0, (void **)&entry));
	return *GetSidSubAuthority((PSID)&entry->SidStart, 0);
}
#define LOW SECURITY_MANDATORY_LOW_RID
#define MIDDLE SECURITY_MANDATORY_MEDIUM_RID

struct holder {
	struct arena arena;
	struct profile profile;
	struct landlock_rule rules[2];
	struct windows_labels labels;
	struct cordon_error err;
};

static int hold(struct holder *holder, const char *first, const char *second)
{
	*holder = (struct holder){ .labels = WINDOWS_LABELS_NONE };
	holder->rules[0] = (struct landlock_rule){ .path = first, .access = LANDLOCK_SEE | LANDLOCK_CHANGE };
	holder->rules[1] = (struct landlock_rule){ .path = second, .access = LANDLOCK_SEE | LANDLOCK_CHANGE };
	holder->profile.landlock = (struct landlock_plan){ .rules = holder->rules, .count = second ? 2 : 1 };
	return windows_labels_set(&holder->arena, data, &holder->profile, &holder->labels, &holder->err);
}

static void let_go(struct holder *holder)
{
	windows_labels_restore(&holder->labels);
	arena_free(&holder->arena);
}

/* As when its process is killed: the lock is lost, and nothing is put back. */
static void die(struct holder *holder)
{
	close_fd(&holder->labels.fd);
	close_fd(&holder->labels.directory_fd);
	free(holder->labels.text);
	arena_free(&holder->arena);
}

static int count_journals(void)
{
	char path[PATH_MAX + 16];
	int count = 0;
	snprintf(path, sizeof(path), "%s/labels", data);
	DIR *directory = opendir(path);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		count += strlen(entry->d_name) == ID_SIZE - 1;
	if (directory)
		closedir(directory);
	return count;
}

static int set_up(void **state)
{
	(void)state;
	known = 0;
	lies = false;
	give(one, MEDIUM);
	return count_journals();
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void a_label_is_set_and_put_back(void **state)
{
	(void)state;
	struct holder holder;
	if (hold(&holder, one, two) < 0)
		fail_msg("%s", holder.err.reason);
	assert_int_equal(level_of(one), LOW);
	assert_int_equal(level_of(two), LOW);
	assert_int_equal(count_journals(), 1);
	let_go(&holder);
	assert_int_equal(level_of(one), MIDDLE);
	assert_int_equal(level_of(two), 0);
	assert_int_equal(count_journals(), 0);
}

static void the_last_of_two_puts_it_back(void **state)
{
	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		struct holder holders[2];
		assert_int_equal(hold(&holders[0], one, NULL), 0);
		assert_int_equal(hold(&holders[1], one, two), 0);
		let_go(&holders[turn]);
		assert_int_equal(level_of(one), LOW);
		assert_int_equal(level_of(two), turn ? 0 : LOW);
		let_go(&holders[!turn]);
		assert_int_equal(level_of(one), MIDDLE);
		assert_int_equal(level_of(two), 0);
	}
	assert_int_equal(count_journals(), 0);
}

static void what_was_killed_is_swept(void **state)
{
	(void)state;
	struct holder holder;
	assert_int_equal(hold(&holder, one, two), 0);
	assert_int_equal(windows_labels_sweep(data), 0);
	die(&holder);
	assert_int_equal(level_of(one), LOW);
	assert_int_equal(windows_labels_sweep(data), 1);
	assert_int_equal(level_of(one), MIDDLE);
	assert_int_equal(level_of(two), 0);
	assert_int_equal(count_journals(), 0);
	/* So whatever opens cordon's data. */
	assert_int_equal(hold(&holder, one, two), 0);
	die(&holder);
	driver_sweep(data);
	assert_int_equal(level_of(one), MIDDLE);
	assert_int_equal(count_journals(), 0);
}

static void a_sweep_leaves_what_another_holds(void **state)
{
	(void)state;
	struct holder dead, living;
	assert_int_equal(hold(&dead, one, two), 0);
	assert_int_equal(hold(&living, one, NULL), 0);
	die(&dead);
	assert_int_equal(windows_labels_sweep(data), 1);
	assert_int_equal(level_of(one), LOW);
	assert_int_equal(level_of(two), 0);
	let_go(&living);
	assert_int_equal(level_of(one), MIDDLE);
}

/* Its label is in the journal of the dead, and not what was found. */
static void who_comes_after_a_crash_knows_the_first_label(void **state)
{
	(void)state;
	struct holder dead, next;
	assert_int_equal(hold(&dead, one, NULL), 0);
	die(&dead);
	assert_int_equal(hold(&next, one, NULL), 0);
	let_go(&next);
	assert_int_equal(level_of(one), MIDDLE);
	assert_int_equal(windows_labels_sweep(data), 1);
	assert_int_equal(level_of(one), MIDDLE);
}

static void a_label_that_does_not_read_back_refuses(void **state)
{
	(void)state;
	struct holder holder;
	lies = true;
	assert_int_equal(hold(&holder, one, NULL), -1);
	assert_int_equal(holder.err.class, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE);
	assert_string_equal(holder.err.boundary, "filesystem");
	assert_int_equal(count_journals(), 0);
	arena_free(&holder.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_label_is_set_and_put_back, set_up),
		cmocka_unit_test_setup(the_last_of_two_puts_it_back, set_up),
		cmocka_unit_test_setup(what_was_killed_is_swept, set_up),
		cmocka_unit_test_setup(a_sweep_leaves_what_another_holds, set_up),
		cmocka_unit_test_setup(who_comes_after_a_crash_knows_the_first_label, set_up),
		cmocka_unit_test_setup(a_label_that_does_not_read_back_refuses, set_up),
	};
	if (!getcwd(here, sizeof(here)))
		return 1;
	snprintf(data, sizeof(data), "%s/labels-data", here);
	snprintf(one, sizeof(one), "%s/labels-one", here);
	snprintf(two, sizeof(two), "%s/labels-two", here);
	mkdir(data, 0700);
	mkdir(one, 0700);
	mkdir(two, 0700);
	return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
