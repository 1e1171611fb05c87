/* A workspace and what is outside it: see files-ground.h. */
#include "files-ground.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/remove.h"
#include "base/compat.h"
#include "policy/capability.h"

char ground[64];
struct files files;
struct tool_rules ground_rules;
bool ground_no_openat2;
struct cordon_error ground_err;
static struct arena arena;
static struct files_root roots[2];
static struct names_globs globs;
static char paths[2][128];

#ifdef SYS_openat2
/* In the place of libc's. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long arguments[6];
	va_list list;
	va_start(list, number);
	for (size_t i = 0; i < ARRAY_SIZE(arguments); i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (ground_no_openat2 && number == SYS_openat2) {
		errno = ENOSYS;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
#endif

const char *at(const char *path)
{
	static char buffers[4][512];
	static unsigned next;
	char *buffer = buffers[next++ % 4];
	snprintf(buffer, sizeof(buffers[0]), "%s/%s", ground, path);
	return buffer;
}

void put_bytes(const char *path, const void *bytes, size_t length)
{
	auto_close int fd = open(at(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
}

void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

const char *get(const char *path)
{
	static char buffer[65536];
	auto_close int fd = open(at(path), O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, buffer, sizeof(buffer) - 1);
	if (length < 0)
		return NULL;
	buffer[length] = '\0';
	return buffer;
}

int ground_setup(void **state)
{
	(void)state;
	struct capability_set set;
	strcpy(ground, "/tmp/cordon-files-XXXXXX");
	if (!mkdtemp(ground) || mkdir(at("work"), 0755) < 0 || mkdir(at("read"), 0755) < 0 ||
	    mkdir(at("outside"), 0755) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", ground, i ? "read" : "work");
		roots[i] = (struct files_root){ .fd = open(paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC),
			                        .path = paths[i],
			                        .writable = !i };
	}
	if (capability_baseline(&arena, true, &set) < 0)
		return -1;
	struct strings *kept = arena_alloc(&arena, 3 * sizeof(*kept));
	kept[0] = set.deny;
	kept[1] = set.protect;
	kept[2] = set.exempt;
	const struct name_rules rules = { .deny = &kept[0], .protect = &kept[1], .exempt = &kept[2] };
	if (names_globs_compile(&arena, "/", &rules, &globs, NULL) < 0)
		return -1;
	names_globs_fold_deny(&globs);
	ground_rules = (struct tool_rules){ .count = 0 };
	files = (struct files){ .arena = &arena,
		                .roots = roots,
		                .root_count = 2,
		                .cwd = paths[0],
		                .globs = &globs,
		                .rules = &ground_rules,
		                .tool = "read" };
	return 0;
}

int ground_teardown(void **state)
{
	(void)state;
	ground_no_openat2 = false;
	close(roots[0].fd);
	close(roots[1].fd);
	arena_free(&arena);
	return remove_tree(AT_FDCWD, ground);
}

enum cordon_class opens(const char *path, unsigned how, struct files_place *ret_place)
{
	memset(&ground_err, 0, sizeof(ground_err));
	if (files_place_open(&files, path, how, ret_place, &ground_err) == 0)
		return CORDON_OK;
	files_place_close(ret_place);
	return ground_err.class;
}

enum cordon_class refused(const char *path, unsigned how)
{
	struct files_place place;
	enum cordon_class class = opens(path, how, &place);
	if (class == CORDON_OK)
		files_place_close(&place);
	return class;
}
