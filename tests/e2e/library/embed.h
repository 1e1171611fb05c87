/* What the programs here share: each is a small embedding program, linked with libcordon as anybody's would be. */
#pragma once
#include <cordon-internal.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_MS 30000

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
#define MUST(call) ((call) < 0 ? must_failed(__FILE__, __LINE__, &err) : (void)0)

static inline void check_failed(const char *file, int line, const char *text)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
	exit(1);
}

static inline void must_failed(const char *file, int line, const struct cordon_error *err)
{
	fprintf(stderr, "%s:%d: %s: %s (%s) %s\n", file, line, cordon_class_name(err->class), err->reason, err->subject,
	        err->remediation);
	exit(1);
}

/* A request for `sh -c line` in the workspace that the environment names. */
static inline struct cordon_request *shell(const char *line)
{
	struct cordon_error err;
	struct cordon_request *request;
	const char *const argv[] = { "/bin/sh", "-c", line, NULL };
	MUST(cordon_request_new(&request, &err));
	MUST(cordon_request_set(request, "workspace", getenv("WORKSPACE"), &err));
	if (getenv("DRIVER"))
		MUST(cordon_request_set(request, "driver", getenv("DRIVER"), &err));
	MUST(cordon_request_command(request, argv, &err));
	return request;
}

static inline uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static inline int open_descriptors(void)
{
	int count = 0;
	DIR *directory = opendir("/proc/self/fd");
	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}
