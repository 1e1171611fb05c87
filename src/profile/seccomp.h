/* The system-call filter as data: classic BPF made from the table in syscalls.def. A driver installs it.
 * Both architectures can be made on any host. Nothing here allocates or makes a system call. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct json;
struct sock_filter;

/* What one command's filter refuses besides: bits, ored together. */
enum seccomp_option_index {
#define SECCOMP_OPTION(id, name, meaning) SECCOMP_INDEX_##id,
#include "profile/syscalls.def"
	SECCOMP_OPTION_MAX
};
enum seccomp_option {
	SECCOMP_NONE = 0,
#define SECCOMP_OPTION(id, name, meaning) SECCOMP_##id = 1 << SECCOMP_INDEX_##id,
#include "profile/syscalls.def"
};

/* Kinds of device that are granted: options too, since each adds requests to those that ioctl may make. */
enum seccomp_device_index {
#define IOCTL_DEVICE(id, name, path) SECCOMP_DEVICE_INDEX_##id,
#include "profile/ioctls.def"
	SECCOMP_DEVICE_MAX
};
#define SECCOMP_DEVICE_BIT(index) (1u << (SECCOMP_OPTION_MAX + (index)))
enum seccomp_device {
#define IOCTL_DEVICE(id, name, path) SECCOMP_DEVICE_##id = SECCOMP_DEVICE_BIT(SECCOMP_DEVICE_INDEX_##id),
#include "profile/ioctls.def"
};

enum seccomp_set {
#define SECCOMP_SET(id, name, answer, option, optional, reason) SECCOMP_SET_##id,
#include "profile/syscalls.def"
	SECCOMP_SET_MAX
};

enum seccomp_answer {
	SECCOMP_ALLOWED,
	SECCOMP_BY_ARGUMENTS,
	SECCOMP_SAYS_EPERM,
	SECCOMP_SAYS_ENOSYS,
	SECCOMP_ANSWER_MAX
};
extern const char *const seccomp_answer_names[SECCOMP_ANSWER_MAX];

/* AUDIT_ARCH_… of this host, or 0 where there is no table for it. */
extern const uint32_t seccomp_native_arch;

/* Room enough for every filter: each of its two parts (calls, requests of ioctl) is within the reach of a conditional
 * jump. */
#define SECCOMP_FILTER_MAX 512

/* Writes the whole filter for AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64 and returns its number of instructions; 0 if the
 * architecture is another or the capacity too small. Other architectures' entry points and x32 get ENOSYS. */
size_t seccomp_emit(uint32_t audit_arch, unsigned options, struct sock_filter *out, size_t capacity);

/* The set a number belongs to; SECCOMP_SET_UNKNOWN if none. */
enum seccomp_set seccomp_set_of(uint32_t audit_arch, uint32_t number);
const char *seccomp_set_name(enum seccomp_set set);
const char *seccomp_set_reason(enum seccomp_set set);
enum seccomp_answer seccomp_set_answer(enum seccomp_set set, unsigned options);

const char *seccomp_option_name(enum seccomp_option_index option);
const char *seccomp_option_meaning(enum seccomp_option_index option);

/* What a grant of the device node or directory at `path` adds to the options; 0 if ioctls.def has no row for it. */
unsigned seccomp_device_option(const char *path);
const char *seccomp_device_name(enum seccomp_device_index device);

/* NULL, or -1, if there is no such call on that architecture. */
const char *seccomp_call_name(uint32_t audit_arch, uint32_t number);
long seccomp_call_number(uint32_t audit_arch, const char *name);

/* Writes one object: the options in force and every set that is not simply allowed, with its calls and the reason. */
void seccomp_listing(struct json *json, uint32_t audit_arch, unsigned options);
