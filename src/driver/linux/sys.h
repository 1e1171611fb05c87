/* System calls without libc, for the code that runs between clone and exec and for the freestanding init. There the
 * memory is shared with a caller that may have threads, so nothing may touch errno, locks or the heap. A call returns
 * its result or a negative errno. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline __attribute__((always_inline)) long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#else
#error "this architecture has no system call table yet"
#endif
}

#define SYS_ARG(x) ((long)(x))
#define sys_0(nr) sys6(nr, 0, 0, 0, 0, 0, 0)
#define sys_1(nr, a) sys6(nr, SYS_ARG(a), 0, 0, 0, 0, 0)
#define sys_2(nr, a, b) sys6(nr, SYS_ARG(a), SYS_ARG(b), 0, 0, 0, 0)
#define sys_3(nr, a, b, c) sys6(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), 0, 0, 0)
#define sys_4(nr, a, b, c, d) sys6(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), 0, 0)
#define sys_5(nr, a, b, c, d, e) sys6(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), 0)

/* Clones and calls `enter(arg)` in the child on the stack that `stack_top` (16-byte aligned) ends; `enter` must not
 * return. Returns the child's pid or a negative errno. `args->stack` and `stack_size` must describe that same stack. */
static inline __attribute__((always_inline)) long sys_clone3(void *args, size_t size, void (*enter)(void *), void *arg)
{
#if defined(__x86_64__)
	long result;
	register void (*r12)(void *) __asm__("r12") = enter;
	register void *r13 __asm__("r13") = arg;
	__asm__ volatile("syscall\n\t"
	                 "testq %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "xorl %%ebp, %%ebp\n\t"
	                 "movq %%r13, %%rdi\n\t"
	                 "callq *%%r12\n\t"
	                 "ud2\n"
	                 "1:"
	                 : "=a"(result) : "a"(SYS_clone3), "D"(args), "S"(size), "r"(r12), "r"(r13)
	                 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = (long)size;
	register void (*x20)(void *) __asm__("x20") = enter;
	register void *x21 __asm__("x21") = arg;
	__asm__ volatile("svc 0\n\t"
	                 "cbnz x0, 1f\n\t"
	                 "mov x29, xzr\n\t"
	                 "mov x0, x21\n\t"
	                 "blr x20\n\t"
	                 "brk 1\n"
	                 "1:"
	                 : "+r"(x0) : "r"(x8), "r"(x1), "r"(x20), "r"(x21) : "memory", "x30");
	return x0;
#endif
}

/* The same through the older call, which knows fewer flags; `pidfd` as CLONE_PIDFD wants it, `cleared` as
 * CLONE_CHILD_CLEARTID does. */
static inline __attribute__((always_inline)) long sys_clone(unsigned long flags, void *stack_top, int *pidfd,
                                                            int *cleared, void (*enter)(void *), void *arg)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = (long)cleared;
	register long r8 __asm__("r8") = 0;
	register void (*r12)(void *) __asm__("r12") = enter;
	register void *r13 __asm__("r13") = arg;
	__asm__ volatile("syscall\n\t"
	                 "testq %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "xorl %%ebp, %%ebp\n\t"
	                 "movq %%r13, %%rdi\n\t"
	                 "callq *%%r12\n\t"
	                 "ud2\n"
	                 "1:"
	                 : "=a"(result) : "a"(SYS_clone), "D"(flags), "S"(stack_top), "d"(pidfd), "r"(r10), "r"(r8),
	                   "r"(r12), "r"(r13)
	                 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone;
	register long x0 __asm__("x0") = (long)flags;
	register long x1 __asm__("x1") = (long)stack_top;
	register long x2 __asm__("x2") = (long)pidfd;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = (long)cleared;
	register void (*x20)(void *) __asm__("x20") = enter;
	register void *x21 __asm__("x21") = arg;
	__asm__ volatile("svc 0\n\t"
	                 "cbnz x0, 1f\n\t"
	                 "mov x29, xzr\n\t"
	                 "mov x0, x21\n\t"
	                 "blr x20\n\t"
	                 "brk 1\n"
	                 "1:"
	                 : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x20), "r"(x21)
	                 : "memory", "x30");
	return x0;
#endif
}

static inline __attribute__((noreturn)) void sys_exit(int status)
{
	for (;;)
		sys_1(SYS_exit_group, status);
}

static inline size_t sys_strlen(const char *text)
{
	size_t length = 0;
	while (text[length])
		length++;
	return length;
}
