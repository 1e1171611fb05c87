/* The proxy's own walls. It reads bytes that a hostile program chose, so it gives up all that it will not need: no file
 * can be opened, no program started, no process signalled or traced, nothing received but bytes. What is left are the
 * sockets it has, and new ones of TCP and UDP. A system call that is not needed ends the process. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Test builds only: what a sanitizer does besides, and the report that it writes, takes calls that are refused
 * otherwise, such as openat. No path can be opened even then: Landlock refuses all. */
#if defined(__SANITIZE_ADDRESS__)
#define SEAL_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEAL_IS_SANITIZED 1
#endif
#endif
#ifndef SEAL_IS_SANITIZED
#define SEAL_IS_SANITIZED 0
#endif

#include "base/cleanup.h"

/* First of all: other descriptors of the supervisor's than its socket are closed, and the process gets its name. It
 * leaves the terminal, whose signals are for the command and the supervisor; it ends when they have. */
void seal_prepare(int socket_fd);
/* Then root becomes the user that the sandboxes of root have, too. NULL, or what failed. */
const char *seal_drop_root(void) must_check;
/* Before it, of a proxy of published ports: enters the user namespace that `fd` is of, or where it is in that, the
 * network. -1 and errno. */
int seal_enter_network(int fd, bool is_in_user) must_check;
/* For good. `descriptors`: how many are needed at most; fewer where the system does not give as many, which is
 * returned. `offline`: without the calls that make and connect sockets and relay between them. */
const char *seal_raise(uint64_t *descriptors, bool offline) must_check;
/* For a child of the gateway, with what encrypts. */
const char *seal_raise_for_tls(uint64_t *descriptors) must_check;
