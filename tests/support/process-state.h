/* What a process does: the letter that /proc has for it, or 0 where there is none. */
#pragma once
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static inline char process_state(pid_t pid)
{
	char name[64], text[512];
	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	auto_close int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	const char *state = strrchr(text, ')');
	return state ? state[2] : 0;
}
