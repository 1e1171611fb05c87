/* See credential.h. A file is opened without following links, so that what is read is what was named. */
#include "secrets/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compat.h"
#include "base/text.h"
#include "secrets/credential-command.h"

static int refuse(const struct credential *credential, int os_errno, const char *subject, const char *reason,
                  const char *remedy, struct cordon_error *err)
{
	fail(err, CORDON_E_CONFIG_INVALID, os_errno, subject, "credentials.%s: %s", credential->name, reason);
	fail_boundary(err, "secrets");
	return fail_remedy(err, "%s", remedy);
}

/* May a command put something there? */
static bool is_in_reach(const struct credential_reach *reach, const char *path)
{
	for (size_t i = 0; reach && i < reach->count; i++)
		if (path_within(path, reach->roots[i]))
			return true;
	return false;
}

/* ---- a file ----------------------------------------------------------------------------------------------------- */

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Component by component, where the kernel has no openat2 (before 5.6) or a filter refuses it. */
static int open_by_steps(const char *path)
{
	auto_close int at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];
	while (at >= 0) {
		path += strspn(path, "/");
		size_t length = strcspn(path, "/");
		bool is_last = !path[length];
		if (!length || length > NAME_MAX) {
			errno = length ? ENAMETOOLONG : EISDIR;
			return -1;
		}
		memcpy(name, path, length);
		name[length] = '\0';
		path += length;
		if (is_last)
			return openat(at, name, OPEN_FLAGS | O_NOFOLLOW);
		struct stat info;
		int next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		if (next >= 0 && (fstat(next, &info) < 0 || !S_ISDIR(info.st_mode))) {
			errno = S_ISLNK(info.st_mode) ? ELOOP : ENOTDIR;
			return -1;
		}
	}
	return -1;
}

static int open_unlinked(const char *path)
{
	const struct open_how how = { .flags = OPEN_FLAGS, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int fd = compat_openat2(AT_FDCWD, path, &how);
	return fd < 0 && (errno == ENOSYS || errno == EPERM) ? open_by_steps(path) : fd;
}

static int open_file(const struct credential *credential, int *ret_fd, struct cordon_error *err)
{
	int fd = open_unlinked(credential->file);
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if (errno == ELOOP)
		return refuse(credential, 0, credential->file, "there is a link on the way to this file",
		              "name the file by its own path", err);
	return refuse(credential, errno, credential->file, "this file cannot be read", "make it, with mode 0600", err);
}

static int check_file(const struct credential *credential, int fd, struct cordon_error *err)
{
	struct stat info;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
		return refuse(credential, 0, credential->file, "this is no regular file", "name a file", err);
	if (info.st_uid != geteuid() && info.st_uid)
		return refuse(credential, 0, credential->file, "this file is another user's",
		              "name a file of your own, or of root", err);
	if (info.st_mode & 077)
		return refuse(credential, 0, credential->file, "others may read or change this file",
		              "take that away: chmod 600", err);
	if (info.st_size > CREDENTIAL_MAX)
		return refuse(credential, 0, credential->file, "this file is larger than 16 KiB",
		              "name a file with nothing but the secret", err);
	return 0;
}

static int read_file(const struct credential *credential, const struct credential_reach *reach, char *bytes,
                     size_t *ret_length, struct cordon_error *err)
{
	auto_close int fd = -1;
	size_t length = 0;
	ssize_t got;
	if (is_in_reach(reach, credential->file))
		return refuse(credential, 0, credential->file, "the file lies where the command may write",
		              "keep it elsewhere", err);
	if (open_file(credential, &fd, err) < 0 || check_file(credential, fd, err) < 0)
		return -1;
	while (length <= CREDENTIAL_MAX && (got = read(fd, bytes + length, CREDENTIAL_MAX + 1 - length)) != 0) {
		if (got < 0 && errno != EINTR)
			return refuse(credential, errno, credential->file, "this file cannot be read",
			              "look at its filesystem", err);
		length += got > 0 ? (size_t)got : 0;
	}
	*ret_length = length;
	return 0;
}

/* ---- a variable ------------------------------------------------------------------------------------------------- */

static int read_variable(const struct credential *credential, char *const *environment, char *bytes, size_t *ret_length,
                         struct cordon_error *err)
{
	size_t name = strlen(credential->from_variable);
	for (char *const *at = environment; at && *at; at++) {
		if (strncmp(*at, credential->from_variable, name) != 0 || (*at)[name] != '=')
			continue;
		size_t length = strlen(*at + name + 1);
		*ret_length = length < CREDENTIAL_MAX + 1 ? length : CREDENTIAL_MAX + 1;
		memcpy(bytes, *at + name + 1, *ret_length);
		return 0;
	}
	return refuse(credential, 0, credential->from_variable, "this variable is not set",
	              "set it, or choose another source", err);
}

/* ---- a command -------------------------------------------------------------------------------------------------- */

static int check_program(const struct credential *credential, const struct credential_reach *reach,
                         struct cordon_error *err)
{
	const char *program = credential->command.items[0];
	auto_free char *real = realpath(program, NULL);
	if (!real || access(real, X_OK) < 0)
		return refuse(credential, errno, program, "this program cannot be executed",
		              "name one by its absolute path", err);
	/* By what name it is called, and what that is. */
	if (is_in_reach(reach, program) || is_in_reach(reach, real))
		return refuse(credential, 0, program, "the program lies where the command may write",
		              "name one that lies elsewhere", err);
	return 0;
}

static int read_command(const struct credential *credential, char *const *environment,
                        const struct credential_reach *reach, char *bytes, size_t *ret_length, struct cordon_error *err)
{
	struct credential_output output = { bytes, CREDENTIAL_MAX + 1, 0, 0 };
	const char *program = credential->command.items[0];
	if (check_program(credential, reach, err) < 0)
		return -1;
	enum credential_end end =
		credential_execute(credential->command.items, environment, credential->timeout_ms, &output);
	*ret_length = output.length;
	switch (end) {
	case CREDENTIAL_ENDED:
		break;
	case CREDENTIAL_NOT_STARTED:
		return refuse(credential, output.status, program, "the command cannot be started", "try it by hand",
		              err);
	case CREDENTIAL_TOO_LONG:
		fail(err, CORDON_E_CONFIG_INVALID, 0, program, "credentials.%s: the command took longer than %llu ms",
		     credential->name, (unsigned long long)credential->timeout_ms);
		fail_boundary(err, "secrets");
		return fail_remedy(err, "try it by hand; it gets no input. credentials.%s.timeout can be more",
		                   credential->name);
	case CREDENTIAL_TOO_MUCH:
		return refuse(credential, 0, program, "the command wrote more than 16 KiB",
		              "have it write nothing but the secret", err);
	}
	if (output.status) {
		fail(err, CORDON_E_CONFIG_INVALID, 0, program, "credentials.%s: the command failed (%s %d)",
		     credential->name, output.status < 0 ? "signal" : "exit status",
		     output.status < 0 ? -output.status : output.status);
		fail_boundary(err, "secrets");
		return fail_remedy(err,
		                   "try it by hand: its messages are not kept, since they may have secrets in them");
	}
	return 0;
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

/* What may be a variable's value. White space at the end is an editor's. */
static int take(const struct credential *credential, char *bytes, size_t length, struct credential_value *ret_value,
                struct cordon_error *err)
{
	const char *where = credential->file          ? credential->file :
	                    credential->from_variable ? credential->from_variable :
	                                                credential->command.items[0];
	if (length > CREDENTIAL_MAX)
		return refuse(credential, 0, where, "it is longer than 16 KiB", "have nothing but the secret there",
		              err);
	if (memchr(bytes, '\0', length))
		return refuse(credential, 0, where, "it has a NUL in it, and no variable can",
		              "have nothing but the secret there", err);
	while (length && strchr(" \t\r\n", bytes[length - 1]))
		length--;
	if (!length)
		return refuse(credential, 0, where, "it is empty", "have the secret there", err);
	bytes[length] = '\0';
	*ret_value = (struct credential_value){ bytes, length };
	return 0;
}

static int read_source(const struct credential *credential, char *const *environment,
                       const struct credential_reach *reach, char *bytes, size_t *ret_length, struct cordon_error *err)
{
	return credential->file          ? read_file(credential, reach, bytes, ret_length, err) :
	       credential->from_variable ? read_variable(credential, environment, bytes, ret_length, err) :
	                                   read_command(credential, environment, reach, bytes, ret_length, err);
}

int credential_load(const struct credential *credential, char *const *environment, const struct credential_reach *reach,
                    struct credential_value *ret_value, struct cordon_error *err)
{
	struct credential_value scratch = { calloc(1, CREDENTIAL_MAX + 2), CREDENTIAL_MAX + 1 };
	size_t length = 0;
	if (!scratch.bytes)
		return fail_oom(err);
	if (read_source(credential, environment, reach, scratch.bytes, &length, err) == 0 &&
	    take(credential, scratch.bytes, length, ret_value, err) == 0)
		return 0;
	credential_wipe(&scratch);
	return -1;
}

void credential_wipe(struct credential_value *value)
{
	if (value->bytes)
		sodium_memzero(value->bytes, value->length);
	free(value->bytes);
	*value = (struct credential_value){ NULL, 0 };
}

int credential_check_reach(const struct credential *credential, const struct credential_reach *reach,
                           struct cordon_error *err)
{
	if (credential->file && is_in_reach(reach, credential->file))
		return refuse(credential, 0, credential->file, "the file lies where the command may write",
		              "keep it elsewhere", err);
	return credential->command.count ? check_program(credential, reach, err) : 0;
}

int credential_check(const struct credential *credential, struct cordon_error *err)
{
	auto_close int fd = -1;
	if (credential->file)
		return open_file(credential, &fd, err) < 0 ? -1 : check_file(credential, fd, err);
	return credential->from_variable ? 0 : check_program(credential, NULL, err);
}
