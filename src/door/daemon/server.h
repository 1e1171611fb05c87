/* The daemon, as the command line starts it. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

struct cordon_error;

struct serve_options {
	const char *config;             /* a configuration file, or NULL */
	int client_fd;                  /* 0: it listens; else it serves this one client and ends with it; taken */
	uint64_t idle_ms;               /* ends after this time without a client, command or job; 0: never */
};

/* Runs in the foreground until a signal or idleness ends it. Prints where it listens to standard output. */
int serve_run(const struct serve_options *options, struct cordon_error *err) must_check;
