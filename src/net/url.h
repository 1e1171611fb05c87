/* Where a URL leads, as far as its text tells. Strict: programs that read URLs differ in what they make of odd ones,
 * and the one that fetches must not understand another host than the one that was judged. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "policy/host.h"

#define URL_LENGTH_MAX 8192

/* http:// or https://, a host (policy/host.h), perhaps a port; behind it, from `/` or `?` on, what is not looked at. In
 * all of it only visible ASCII, no backslash and no fragment; no user's name. The port is the scheme's where none is
 * given. NULL, or what is wrong with it, in a few words. */
const char *url_parse(const char *text, size_t length, struct host *ret_host) must_check;
