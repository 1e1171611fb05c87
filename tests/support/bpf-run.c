/* Classic BPF: see bpf-run.h. Every jump is checked, and every instruction that is not among the few that filters of
 * ours and of libseccomp's consist of makes the program invalid. */
#include "bpf-run.h"

#include <string.h>

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

/* Whether a conditional jump is taken; -1 if it is none. */
static int taken(uint16_t code, uint32_t accumulator, uint32_t k)
{
	switch (code) {
	case BPF_JMP | BPF_JEQ | BPF_K: return accumulator == k;
	case BPF_JMP | BPF_JGT | BPF_K: return accumulator > k;
	case BPF_JMP | BPF_JGE | BPF_K: return accumulator >= k;
	case BPF_JMP | BPF_JSET | BPF_K: return (accumulator & k) != 0;
	default: return -1;
	}
}

uint32_t bpf_run(const struct sock_filter *program, size_t length, const struct seccomp_data *data, unsigned *ret_steps)
{
	uint32_t accumulator = 0;
	unsigned steps = 0;
	for (size_t at = 0; at < length; at++) {
		const struct sock_filter *here = &program[at];
		int jump = taken(here->code, accumulator, here->k);
		steps++;
		if (jump >= 0) {
			at += jump ? here->jt : here->jf;
			continue;
		}
		switch (here->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (here->k % 4 || here->k > sizeof(*data) - 4)
				return BPF_RUN_INVALID;
			accumulator = load(data, here->k);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			accumulator &= here->k;
			break;
		case BPF_JMP | BPF_JA:
			if (here->k >= length)
				return BPF_RUN_INVALID;
			at += here->k;
			break;
		case BPF_RET | BPF_K:
			if (ret_steps)
				*ret_steps = steps;
			return here->k;
		default:
			return BPF_RUN_INVALID;
		}
	}
	return BPF_RUN_INVALID;
}
