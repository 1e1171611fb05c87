/* The part of the system-call filter that judges ioctl requests, made from the table in ioctls.def. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct sock_filter;

/* Writes the instructions that judge a request which is already loaded, and answer; `reload` is its offset in struct
 * seccomp_data. `options` says which devices are granted (SECCOMP_DEVICE_…). Returns the number of instructions; 0 if
 * the capacity is too small. */
size_t ioctls_emit(unsigned options, uint32_t reload, struct sock_filter *out, size_t capacity);
