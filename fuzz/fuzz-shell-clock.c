/* Any bytes as the memory of a program that is to be parked: looking for its clock ends, finds what is there, or declines. The
 * first byte is how many headers it claims; they begin the rest, behind which there is no memory. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run/shell-park.h"

#define PLACE ((char *)0x20000000)      /* the same each time: an address in the bytes may be one of these */
#define PLACE_SIZE (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#if defined(__x86_64__)
static char *end_of_memory(void)
{
	static char *end;
	if (!end) {
		void *place = mmap(PLACE, PLACE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (place != PLACE || mprotect(PLACE + PLACE_SIZE - SHELL_PAGE, SHELL_PAGE, PROT_NONE) < 0)
			abort();
		end = PLACE + PLACE_SIZE - SHELL_PAGE;
	}
	return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char name[] = "shell_start_time";
	struct parked_shell shell = { .pid = getpid() };
	if (size < 1 || size > PLACE_SIZE - SHELL_PAGE)
		return 0;
	size_t length = size - 1;
	char *memory = end_of_memory() - length;
	if (length)
		memcpy(memory, data + 1, length);
	long result = shell_find_clock(&shell, (uint64_t)(uintptr_t)memory, data[0]);
	if (result != 0 && result != -EPROTO)
		abort();
	if (shell.seconds_at && !memmem(memory, length, name, sizeof(name)))
		abort();
	return 0;
}
#else
/* Nothing is parked there. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data, (void)size;
	return 0;
}
#endif
