/* Integrity labels of what a command may write: see windows.h. The journal is one file per sandbox beneath cordon's
 * data, "labels/ID": a path per line, each with the label that it had before any sandbox (as SDDL, or "-"). Its writer
 * holds a lock on it; without that, a sweep restores. Several sandboxes may hold one path: who comes later takes its
 * label from their journals, and the last of them puts it back. All of this is done under the lock of "labels/lock". */
#include "driver/windows/windows.h"

#include <aclapi.h>
#include <dirent.h>
#include <sddl.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/id.h"
#include "base/lock.h"
#include "base/windows/path.h"
#include "base/windows/wide.h"

#define LOW_LABEL L"S:(ML;OICI;NW;;;LW)"
#define JOURNAL_MAX ((size_t)1 << 20)

/* As SDDL; "-": none. */
static bool read_label(const wchar_t *path, wchar_t *ret_label, size_t size)
{
	PSECURITY_DESCRIPTOR descriptor = NULL;
	PACL list = NULL;
	wchar_t *text = NULL;
	if (GetNamedSecurityInfoW((wchar_t *)(uintptr_t)path, SE_FILE_OBJECT, LABEL_SECURITY_INFORMATION, NULL, NULL,
	                          NULL, &list, &descriptor) != ERROR_SUCCESS)
		return false;
	bool read = !list || !list->AceCount ||
	            (ConvertSecurityDescriptorToStringSecurityDescriptorW(descriptor, SDDL_REVISION_1,
	                                                                  LABEL_SECURITY_INFORMATION, &text, NULL) &&
	             wcslen(text) < size);
	if (read)
		wcscpy(ret_label, text ? text : L"-");
	LocalFree(text);
	LocalFree(descriptor);
	return read;
}

static DWORD write_label(const wchar_t *path, const wchar_t *label)
{
	PSECURITY_DESCRIPTOR descriptor = NULL;
	PACL list = NULL;
	BOOL present = FALSE, defaulted;
	if (wcscmp(label, L"-") &&
	    (!ConvertStringSecurityDescriptorToSecurityDescriptorW(label, SDDL_REVISION_1, &descriptor, NULL) ||
	     !GetSecurityDescriptorSacl(descriptor, &present, &list, &defaulted)))
		return GetLastError();
	ACL empty;
	if (!list && InitializeAcl(&empty, sizeof(empty), ACL_REVISION))
		list = &empty;
	DWORD error = SetNamedSecurityInfoW((wchar_t *)(uintptr_t)path, SE_FILE_OBJECT, LABEL_SECURITY_INFORMATION,
	                                    NULL, NULL, NULL, list);
	LocalFree(descriptor);
	return error;
}

static bool is_low(const wchar_t *path)
{
	wchar_t label[256];
	return read_label(path, label, 256) && wcsstr(label, L";LW)");
}

/* ---- the journal ------------------------------------------------------------------------------------------------- */

static int journal_directory(const char *data_dir, bool make)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/labels", data_dir) >= (int)sizeof(path))
		return -1;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}


/* The path and label of one line, which loses them; *ret_path is wide. False at the end, and where it is torn. */
static bool take_line(char **text, wchar_t *ret_path, wchar_t *ret_label)
{
	char *line = *text, *end = strchr(line, '\n');
	char *tab = end ? memchr(line, '\t', (size_t)(end - line)) : NULL;
	if (!tab)
		return false;
	*tab = *end = '\0';
	*text = end + 1;
	return text_to_wide(line, ret_path, PATH_MAX) == 0 && text_to_wide(tab + 1, ret_label, 256) == 0;
}

/* Holds off every other process that sets, restores or sweeps; -1 with errno. */
static int lock_directory(int directory_fd)
{
	auto_close int fd = openat(directory_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || lock_wait(fd, LOCK_EX, LOCK_PATIENCE_MS) < 0)
		return -1;
	return take_fd(&fd);
}

static bool is_journal(const char *name)
{
	return strlen(name) == ID_SIZE - 1;
}

/* What the journals hold but for the one called `own`, which may be NULL; and not those of the dead with `living`. The
 * caller's to free(); NULL: memory is short, or the directory cannot be read. */
static char *read_others(int directory_fd, const char *own, bool living)
{
	char *all = strdup("");
	/* Opened anew: a copy of the descriptor would share its place in the listing. */
	int again = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = again < 0 ? NULL : fdopendir(again);
	for (struct dirent *entry; directory && all && (entry = readdir(directory));) {
		auto_free char *text = NULL;
		size_t length;
		if (!is_journal(entry->d_name) || (own && !strcmp(entry->d_name, own)))
			continue;
		auto_close int fd = openat(directory_fd, entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || (living && flock(fd, LOCK_EX | LOCK_NB) == 0) ||
		    file_read(directory_fd, entry->d_name, JOURNAL_MAX, &text, &length) < 0)
			continue;
		char *longer = realloc(all, strlen(all) + length + 1);
		if (longer)
			strcpy(longer + strlen(longer), text);
		else
			free(all);
		all = longer;
	}
	if (!directory) {
		close_fd(&again);
		free(all);
		return NULL;
	}
	closedir(directory);
	return all;
}

/* The label that these journals have for the path. */
static bool find_label(const char *journals, const wchar_t *wanted, wchar_t *ret_label)
{
	auto_free char *copy = strdup(journals);
	auto_free wchar_t *path = malloc(PATH_MAX * sizeof(*path));
	for (char *rest = copy; rest && path && take_line(&rest, path, ret_label);)
		if (!_wcsicmp(path, wanted))
			return true;
	return false;
}

/* Puts back what no other sandbox holds. Whether all of that is as it was. */
static bool restore_all(const char *text, const char *others)
{
	auto_free char *copy = strdup(text);
	auto_free wchar_t *path = malloc(PATH_MAX * sizeof(*path));
	wchar_t label[256], held[256];
	bool whole = copy && path && others;
	for (char *rest = copy; whole && take_line(&rest, path, label);) {
		if (find_label(others, path, held))
			continue;
		DWORD error = write_label(path, label);
		/* What is gone needs no label. */
		whole = error == ERROR_SUCCESS || error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
	}
	return whole;
}

/* What is to be labelled, with the label that it has, or had before other sandboxes. */
static char *journal_text(struct arena *arena, const struct profile *profile, const char *others,
                          struct cordon_error *err)
{
	char native[PATH_MAX], label[512];
	wchar_t path[PATH_MAX], wide_label[256];
	char *text = arena_strdup(arena, "");
	for (size_t i = 0; text && i < profile->landlock.count; i++) {
		const struct landlock_rule *rule = &profile->landlock.rules[i];
		if (!(rule->access & LANDLOCK_CHANGE))
			continue;
		const char *why = windows_path_native(rule->path, native, sizeof(native));
		if (why || strpbrk(native, "\t\n")) {
			fail(err, CORDON_E_INVALID_REQUEST, 0, rule->path, "%s",
			     why ? why : "the path has a control character in it");
			return NULL;
		}
		if (text_to_wide(native, path, PATH_MAX) < 0 ||
		    (!find_label(others, path, wide_label) && !read_label(path, wide_label, 256)) ||
		    wide_to_text(wide_label, label, sizeof(label)) < 0) {
			windows_fail(err, CORDON_WALL_FILESYSTEM, GetLastError(),
			             "the integrity label of a directory cannot be read");
			return NULL;
		}
		text = arena_printf(arena, "%s%s\t%s\n", text, native, label);
	}
	if (!text)
		fail_oom(err);
	return text;
}

static int write_journal(struct arena *arena, const struct profile *profile, struct windows_labels *labels,
                         struct cordon_error *err)
{
	auto_free char *others = read_others(labels->directory_fd, NULL, false);
	char *text = others ? journal_text(arena, profile, others, err) : NULL;
	if (!text)
		return others ? -1 : fail_oom(err);
	id_make(labels->name);
	int result = file_create(labels->directory_fd, labels->name, text, strlen(text), &labels->fd);
	if (result == 0 && (flock(labels->fd, LOCK_EX | LOCK_NB) < 0 || fsync(labels->fd) < 0))
		result = -errno;
	if (result < 0)
		return fail(err, CORDON_E_INTERNAL, -result, "labels",
		            "the journal of integrity labels cannot be written");
	labels->text = strdup(text);
	return labels->text ? 0 : fail_oom(err);
}

static int set_all(const char *text, struct cordon_error *err)
{
	auto_free char *copy = strdup(text);
	auto_free wchar_t *path = malloc(PATH_MAX * sizeof(*path));
	wchar_t label[256];
	for (char *rest = copy; rest && path && take_line(&rest, path, label);) {
		DWORD error = write_label(path, LOW_LABEL);
		if (error != ERROR_SUCCESS || !is_low(path))
			return windows_fail(err, CORDON_WALL_FILESYSTEM, error,
			                    "the label of a writable directory cannot be set, or does not read back");
	}
	return copy && path ? 0 : fail_oom(err);
}

/* With the directory's lock. */
static void restore(struct windows_labels *labels)
{
	auto_free char *others = labels->text ? read_others(labels->directory_fd, labels->name, true) : NULL;
	/* A journal of what could not be put back stays, for the next sweep. */
	bool whole = !labels->text || restore_all(labels->text, others);
	lock_release(&labels->fd);
	if (whole && labels->directory_fd >= 0 && *labels->name)
		unlinkat(labels->directory_fd, labels->name, 0);
	free(labels->text);
	labels->text = NULL;
}

int windows_labels_set(struct arena *arena, const char *data_dir, const struct profile *profile,
                       struct windows_labels *labels, struct cordon_error *err)
{
	labels->directory_fd = journal_directory(data_dir, true);
	auto_unlock int lock = labels->directory_fd < 0 ? -1 : lock_directory(labels->directory_fd);
	if (lock < 0) {
		fail(err, CORDON_E_INTERNAL, errno, data_dir, "the journals of integrity labels cannot be locked");
		close_fd(&labels->directory_fd);
		return -1;
	}
	int result = write_journal(arena, profile, labels, err);
	if (result == 0)
		result = set_all(labels->text, err);
	if (result < 0) {
		restore(labels);
		close_fd(&labels->directory_fd);
	}
	return result;
}

void windows_labels_restore(struct windows_labels *labels)
{
	if (labels->directory_fd < 0)
		return;
	auto_unlock int lock = lock_directory(labels->directory_fd);
	/* Without it: nothing is put back here, and the next sweep does. */
	if (lock >= 0)
		restore(labels);
	close_fd(&labels->fd);
	close_fd(&labels->directory_fd);
	free(labels->text);
	labels->text = NULL;
}

/* One whose writer has ended; true: it is done with. */
static bool sweep_one(int directory_fd, const char *name)
{
	auto_free char *text = NULL;
	size_t length;
	auto_unlock int journal = openat(directory_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (journal < 0 || flock(journal, LOCK_EX | LOCK_NB) < 0)
		return false;
	/* One that is empty was written before any label was set. */
	int result = file_read(directory_fd, name, JOURNAL_MAX, &text, &length);
	auto_free char *others = result == 0 ? read_others(directory_fd, name, true) : NULL;
	bool done = result == -ENODATA || (result == 0 && restore_all(text, others));
	return done && unlinkat(directory_fd, name, 0) == 0;
}

int windows_labels_sweep(const char *data_dir)
{
	int swept = 0, fd = journal_directory(data_dir, false);
	auto_unlock int lock = fd < 0 ? -1 : lock_directory(fd);
	DIR *directory = lock < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !directory)
		close(fd);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		swept += is_journal(entry->d_name) && sweep_one(fd, entry->d_name);
	if (directory)
		closedir(directory);
	return swept;
}
