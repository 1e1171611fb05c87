/* What the supervisor says before anything begins. */
#pragma once
#include "base/cleanup.h"
#include "proxy/proxy.h"

/* Reads until PROXY_BEGIN. NULL, or what is wrong. */
const char *setup_read(struct proxy *proxy) must_check;
