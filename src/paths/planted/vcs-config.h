/* The configuration that Mercurial and Jujutsu keep in a repository: `.hg/hgrc` and `.jj/repo/config.toml`. Pure. */
#pragma once
#include <stddef.h>

/* Why the text is not harmless, or NULL. Harmless are comments, [paths], and [ui] with `username`. */
const char *hg_config_reason(const char *text, size_t length);

/* Likewise: comments, `user.name` and `user.email`, and [revset-aliases], which `jj git clone` writes. */
const char *jj_config_reason(const char *text, size_t length);
