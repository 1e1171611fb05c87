/* The ELF entry point of the static program: see entry.h. */
#include <elf.h>

#include "entry/entry.h"

/* Follows the stack as the kernel laid it out: argc, argv, NULL, environment, NULL, auxiliary vector. */
static const unsigned long *find_end(char *const *list, size_t *ret_count)
{
	size_t count = 0;
	while (list[count])
		count++;
	*ret_count = count;
	return (const unsigned long *)(list + count + 1);
}

/* The strings of a list lie one behind the other, as they are to be sent. *ret_size is how many bytes; false: they do not. */
static bool are_in_a_row(char *const *list, size_t count, uint32_t *ret_size)
{
	if (!count)
		return false;
	for (size_t i = 1; i < count; i++)
		if (list[i] <= list[i - 1] || list[i][-1])
			return false;
	const char *end = list[count - 1];
	while (*end)
		end++;
	size_t size = (size_t)(end + 1 - list[0]);
	*ret_size = (uint32_t)size;
	return size <= UINT32_MAX / 4;
}

static void look_at_auxiliary(const unsigned long *at, struct entry_process *process)
{
	process->user = UINT32_MAX;
	process->secure = true;
	for (; at[0] != AT_NULL; at += 2) {
		if (at[0] == AT_EUID)
			process->user = (uint32_t)at[1];
		else if (at[0] == AT_SECURE)
			process->secure = at[1] != 0;
	}
}

static bool is_run(const char *word)
{
	return word[0] == 'r' && word[1] == 'u' && word[2] == 'n' && !word[3];
}

void cordon_entry_main(unsigned long *stack) __attribute__((used, visibility("hidden")));

/* When this returns, libc's start follows. */
void cordon_entry_main(unsigned long *stack)
{
	struct entry_process process;
	size_t count = stack[0], found, environment_count;
	process.argv = (char **)(stack + 1);
	if (count < 4 || !process.argv[1] || !is_run(process.argv[1]) ||
	    !entry_wants_daemon((const char *const *)process.argv + 2, count - 2))
		return;
	process.environment = (char **)find_end(process.argv, &found);
	look_at_auxiliary(find_end(process.environment, &environment_count), &process);
	if (found != count || process.secure || !are_in_a_row(process.argv + 1, count - 1, &process.words_size) ||
	    !are_in_a_row(process.environment, environment_count, &process.environment_size))
		return;
	process.word_count = (uint32_t)(count - 1);
	process.environment_count = (uint32_t)environment_count;
	entry_converse(&process);
}

/* The registers, too, are libc's to find as the kernel set them: all zero but the stack pointer. */
#if defined(__x86_64__)
__asm__(".text\n.globl cordon_entry\n.hidden cordon_entry\n.type cordon_entry, @function\ncordon_entry:\n"
        "\tendbr64\n"
        "\tmovq %rsp, %rbx\n"
        "\tmovq %rsp, %rdi\n"
        "\txorl %ebp, %ebp\n"
        "\tandq $-16, %rsp\n"
        "\tcall cordon_entry_main\n"
        "\tmovq %rbx, %rsp\n"
        "\txorl %eax, %eax\n\txorl %ebx, %ebx\n\txorl %ecx, %ecx\n\txorl %edx, %edx\n\txorl %esi, %esi\n\txorl %edi, %edi\n"
        "\txorl %r8d, %r8d\n\txorl %r9d, %r9d\n\txorl %r10d, %r10d\n\txorl %r11d, %r11d\n"
        "\tjmp _start\n.size cordon_entry, . - cordon_entry\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl cordon_entry\n.hidden cordon_entry\n.type cordon_entry, %function\ncordon_entry:\n"
        "\tbti c\n"
        "\tmov x19, sp\n"
        "\tmov x0, sp\n"
        "\tmov x29, xzr\n\tmov x30, xzr\n"
        "\tbl cordon_entry_main\n"
        "\tmov sp, x19\n"
        "\tmov x0, xzr\n\tmov x1, xzr\n\tmov x2, xzr\n\tmov x3, xzr\n\tmov x4, xzr\n\tmov x5, xzr\n\tmov x6, xzr\n"
        "\tmov x7, xzr\n\tmov x8, xzr\n\tmov x16, xzr\n\tmov x17, xzr\n\tmov x19, xzr\n\tmov x30, xzr\n"
        "\tb _start\n.size cordon_entry, . - cordon_entry\n");
#endif
