/* The calls that a filter is asked about, on each architecture: every number, and arguments at the edges of the rules.
 */
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOW SECCOMP_RET_ALLOW
#define DONE (SECCOMP_RET_ERRNO | 0)
#define REFUSE(error) (SECCOMP_RET_ERRNO | (error))
#define OPTIONS_ALL ((1u << SECCOMP_OPTION_MAX) - 1)
#define LOW 0xffffffffull
#define NEW_ANY 0x7e020080u
#define THREAD 0x10000u
#define UNSHARE_FINE 0x50f00u
#define PERSONA_FINE 0x60008u
#define IOCTL_FSSETXATTR 0x401c5820u
#define IOCTL_SETFLAGS 0x40086602u
#define IOCTL_ENABLE_VERITY 0x40806685u
#define IOCTL_SNAP_CREATE_V2 0x50009417u
#define SET_ID 06000u
#define CREATES 020000100u

extern const struct arch {
	uint32_t audit, scmp;
	const char *name;
} arches[2];

/* The requests that ioctl may make where no device is granted, by the names that the kernel's headers have for them. */
extern const uint32_t ioctls_allowed[];
extern const size_t ioctls_allowed_count;
bool ioctl_allowed(uint32_t request);

extern struct vectors {
	uint64_t args[8192][6];
	size_t count, sockets;          /* the first so many are of use to sockets only */
} vectors;

int vectors_make(void **state);
size_t vectors_start(uint32_t arch, uint32_t number);

/* All vectors where arguments matter, a few where they must not. */
size_t vectors_step(uint32_t arch, uint32_t number, unsigned options);

struct seccomp_data data_for(uint32_t arch, uint32_t number, size_t vector);
size_t emit(uint32_t arch, unsigned options, struct sock_filter *out);
