/* git's configuration syntax. Pure: bytes in, settings out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "policy/git-settings.h"

#define GIT_SYNTAX_SIZE_MAX (1024 * 1024)

/* `name` is section, subsection and key with dots, as git prints it. Both pointers are borrowed for the call. */
typedef void git_syntax_fn(void *arg, const char *name, const struct git_setting *setting);

/* Calls `take` for each setting in the order of the text. False: git, in some version, would refuse to parse the text,
 * or it is longer than GIT_SYNTAX_SIZE_MAX; `take` was called for what comes before. */
bool git_syntax_read(const char *text, size_t length, git_syntax_fn *take, void *arg);
