/* Whether the calling process runs under valgrind, by the request that valgrind defines for this: a sequence of
 * instructions that changes nothing on a processor, and that valgrind answers. Its header is not needed for that
 * alone. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

static inline bool is_under_valgrind(void)
{
	enum { RUNNING_ON_VALGRIND = 0x1001 };
	volatile uint64_t request[6] = { RUNNING_ON_VALGRIND };
#if defined(__x86_64__)
	uint64_t answer = 0;
	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
	                 : "=d"(answer) : "a"(request), "0"(answer) : "cc", "memory");
	return answer;
#elif defined(__aarch64__)
	register uint64_t answer __asm__("x3") = 0;
	register volatile uint64_t *asked __asm__("x4") = request;
	__asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; orr x10, x10, x10"
	                 : "+r"(answer) : "r"(asked) : "cc", "memory");
	return answer;
#else
	(void)request;
	return false;
#endif
}
