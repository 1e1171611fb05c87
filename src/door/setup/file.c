/* See file.h. */
#include "door/setup/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/visible.h"
#include "door/setup/jsonc.h"

#define CONTEXT 3       /* lines */

static int refuse(const char *path, int number, struct cordon_error *err)
{
	const char *why = number == ELOOP    ? "this is, or lies behind, a symbolic link"
	                  : number == EPERM  ? "this file is another user's, or others may change it"
	                  : number == EINVAL ? "this is no regular file"
	                  : number == EFBIG  ? "this file is too large"
	                                     : NULL;
	fail(err, CORDON_E_CONFIG_INVALID, why ? 0 : number, path, "%s", why ? why : "this file cannot be read");
	return fail_remedy(
		err, number == ELOOP ? "setup writes no file that lies elsewhere: make it a file, or change it by hand"
				     : "change it by hand, or move it away");
}

/* The directory of the file, made where it is missing and `make` says so. -errno: why it cannot be opened. */
static int open_parent(const char *path, const char *beneath, bool make, int *ret_fd)
{
	size_t begun = beneath ? strlen(beneath) : 1;
	auto_close int fd = open(beneath ? beneath : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char part[NAME_MAX + 1];
	for (const char *at = path + begun + strspn(path + begun, "/"), *slash; fd >= 0 && (slash = strchr(at, '/'));
	     at = slash + strspn(slash, "/")) {
		if ((size_t)(slash - at) >= sizeof(part))
			return -ENAMETOOLONG;
		snprintf(part, sizeof(part), "%.*s", (int)(slash - at), at);
		if (make && mkdirat(fd, part, 0700) < 0 && errno != EEXIST)
			return -errno;
		int next = openat(fd, part, O_PATH | O_DIRECTORY | O_CLOEXEC | (beneath ? O_NOFOLLOW : 0));
		struct stat st;
		if (next < 0 && errno == ENOTDIR && fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISLNK(st.st_mode))
			return -ELOOP;
		if (next < 0)
			return -errno;
		cleanup_close(&fd);
		fd = next;
	}
	if (fd < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static const char *name_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

int setup_read(struct arena *arena, const char *path, const char *beneath, const char **ret_text,
               struct cordon_error *err)
{
	auto_free char *text = NULL;
	auto_close int directory = -1;
	size_t length = 0;
	int number = -open_parent(path, beneath, false, &directory);
	if (!number)
		number = -file_read(directory, name_of(path), JSONC_SIZE_MAX, &text, &length);
	if (number == ENOENT || number == ENOTDIR) {
		*ret_text = NULL;
		return 0;
	}
	if (number && number != ENODATA)
		return refuse(path, number, err);
	if (text && strlen(text) != length)
		return refuse(path, EINVAL, err);
	*ret_text = arena_strdup(arena, text ? text : "");
	return *ret_text ? 0 : fail_oom(err);
}

static int write_beside(int directory, const char *path, const char *beside, const char *text, struct cordon_error *err)
{
	auto_close int fd = -1;
	struct stat st;
	unlinkat(directory, beside, 0);
	int number = -file_create(directory, beside, text, strlen(text), &fd);
	if (number)
		return fail(err, CORDON_E_INTERNAL, number, path, "cannot write a file beside this one");
	if ((fstatat(directory, name_of(path), &st, AT_SYMLINK_NOFOLLOW) == 0 && fchmod(fd, st.st_mode & 0777) < 0) ||
	    fsync(fd) < 0 || renameat(directory, beside, directory, name_of(path)) < 0) {
		fail(err, CORDON_E_INTERNAL, errno, path, "cannot write this file");
		unlinkat(directory, beside, 0);
		return -1;
	}
	return 0;
}

int setup_write(struct arena *arena, const char *path, const char *beneath, const char *text, struct cordon_error *err)
{
	const char *beside = arena_printf(arena, "%s.cordon-%d", name_of(path), (int)getpid());
	auto_close int directory = -1;
	int number = -open_parent(path, beneath, text != NULL, &directory);
	if (number && (text || number != ENOENT))
		return refuse(path, number, err);
	if (!text)
		return number || unlinkat(directory, name_of(path), 0) == 0 || errno == ENOENT
		               ? 0 : fail(err, CORDON_E_INTERNAL, errno, path, "cannot remove this file");
	return beside ? write_beside(directory, path, beside, text, err) : fail_oom(err);
}

int setup_missing(struct arena *arena, const char *path, const char *beneath, struct strings *ret_directories,
                  struct cordon_error *err)
{
	size_t least = beneath ? strlen(beneath) : 1;
	for (const char *slash; (slash = strrchr(path, '/')) && (size_t)(slash - path) > least;) {
		path = arena_strndup(arena, path, (size_t)(slash - path));
		if (!path)
			return fail_oom(err);
		if (access(path, F_OK) == 0)
			return 0;
		if (strings_add(arena, ret_directories, path) < 0)
			return fail_oom(err);
	}
	return 0;
}

void setup_remove_directory(const char *path, const char *beneath)
{
	auto_close int directory = -1;
	if (open_parent(path, beneath, false, &directory) == 0)
		unlinkat(directory, name_of(path), AT_REMOVEDIR);
}

/* ---- what changed
 * ---------------------------------------------------------------------------------------------------- */

static size_t line_length(const char *line)
{
	size_t length = strcspn(line, "\n");
	return length + (line[length] == '\n');
}

static void print_lines(FILE *out, char mark, const char *from, const char *to)
{
	for (size_t length; from < to; from += length) {
		length = line_length(from);
		fputc(mark, out);
		visible_print(out, from, length);
		fputs(from[length - 1] == '\n' ? "" : "\n", out);
	}
}

/* So many lines back from `at`. */
static const char *back(const char *begin, const char *at, unsigned lines)
{
	while (at > begin && (at[-1] != '\n' || lines-- > 0))
		at--;
	return at;
}

static bool same_line(const char *a, const char *b, size_t *ret_length)
{
	*ret_length = line_length(a);
	return *ret_length && *ret_length == line_length(b) && !memcmp(a, b, *ret_length);
}

static bool ends_line(const char *from, const char *end)
{
	return end > from && end[-1] == '\n';
}

void setup_diff(FILE *out, const char *path, const char *before, const char *after)
{
	const char *a = before ? before : "", *b = after ? after : "", *a_end = a + strlen(a), *b_end = b + strlen(b),
		   *a_from = a, *b_from = b;
	if (!strcmp(a, b) && !before == !after)
		return;
	for (size_t length; same_line(a_from, b_from, &length); a_from += length, b_from += length)
		;
	while (a_end > a_from && b_end > b_from) {
		const char *a_line = back(a, a_end, ends_line(a, a_end)), *b_line = back(b, b_end, ends_line(b, b_end));
		if (a_line < a_from || b_line < b_from || a_end - a_line != b_end - b_line ||
		    memcmp(a_line, b_line, (size_t)(a_end - a_line)) != 0)
			break;
		a_end = a_line;
		b_end = b_line;
	}
	const char *const names[] = { "--- ", before ? path : "/dev/null", "\n+++ ", after ? path : "/dev/null",
		                      "\n@@\n" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		visible_print(out, names[i], strlen(names[i]));
	print_lines(out, ' ', back(a, a_from, CONTEXT), a_from);
	print_lines(out, '-', a_from, a_end);
	print_lines(out, '+', b_from, b_end);
	const char *rest = a_end;
	for (unsigned i = 0; i < CONTEXT; i++)
		rest += line_length(rest);
	print_lines(out, ' ', a_end, rest);
}
