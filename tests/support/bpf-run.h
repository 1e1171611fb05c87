/* A small interpreter for classic BPF as seccomp uses it, so that a filter can be asked without being installed. */
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* What bpf_run() returns for a program that the kernel would not have accepted. */
#define BPF_RUN_INVALID 0xdeadbeefu

/* The filter's answer to one call. *ret_steps (may be NULL): how many instructions it took. */
uint32_t bpf_run(const struct sock_filter *program, size_t length, const struct seccomp_data *data,
                 unsigned *ret_steps);
