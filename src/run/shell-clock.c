/* Where a shell keeps when it was started: see shell-park.h.
 *
 * bash counts $SECONDS from a time that it takes when it starts, in variables that it exports for its loadable builtins.
 * dash has no such thing. A program that has a SECONDS and does not tell from when it counts would tell the time since it was
 * parked: it is not parked. What is read is the program's memory, which may hold anything, so all of it is bounded. */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "run/shell-park.h"
#include "run/sys.h"

#if defined(__x86_64__)
#define SEGMENTS_MAX 32
#define DYNAMIC_MAX 256
#define CHAIN_MAX 4096
#define PROGRAM_MAX (16u << 20)

struct symbols {
	uint64_t hash, table, names;
};

static bool take(const struct parked_shell *shell, uint64_t at, void *ret_part, size_t size)
{
	struct iovec to = { ret_part, size }, from = { (void *)(uintptr_t)at, size };
	return sys6(SYS_process_vm_readv, shell->pid, (long)&to, 1, (long)&from, 1, 0) == (long)size;
}

static uint32_t take_word(const struct parked_shell *shell, uint64_t at)
{
	uint32_t word;
	return take(shell, at, &word, sizeof(word)) ? word : 0;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool is_named(const struct parked_shell *shell, uint64_t at, const char *name)
{
	char byte;
	for (;; name++, at++) {
		if (!take(shell, at, &byte, 1) || byte != *name)
			return false;
		if (!byte)
			return true;
	}
}

/* A variable of this size by the GNU hash table; 0: there is none. */
static uint64_t find(const struct parked_shell *shell, const struct symbols *symbols, uint64_t bias, const char *name,
                     uint64_t size)
{
	uint32_t head[4], hash = hash_of(name);
	if (!symbols->hash || !symbols->table || !symbols->names || !take(shell, symbols->hash, head, sizeof(head)) || !head[0])
		return 0;
	uint64_t buckets = symbols->hash + sizeof(head) + (uint64_t)head[2] * 8, chain = buckets + (uint64_t)head[0] * 4;
	uint64_t index = take_word(shell, buckets + (uint64_t)(hash % head[0]) * 4);
	for (int i = 0; i < CHAIN_MAX && index >= head[1]; i++, index++) {
		uint32_t other = take_word(shell, chain + (index - head[1]) * 4);
		Elf64_Sym symbol;
		if ((other | 1) == (hash | 1) && take(shell, symbols->table + index * sizeof(symbol), &symbol, sizeof(symbol)) &&
		    symbol.st_shndx != SHN_UNDEF && symbol.st_size == size && is_named(shell, symbols->names + symbol.st_name, name))
			return bias + symbol.st_value;
		if (other & 1)
			break;
	}
	return 0;
}

static void read_dynamic(const struct parked_shell *shell, uint64_t at, uint64_t bias, struct symbols *symbols)
{
	Elf64_Dyn entry;
	for (int i = 0; i < DYNAMIC_MAX && take(shell, at, &entry, sizeof(entry)) && entry.d_tag != DT_NULL;
	     i++, at += sizeof(entry)) {
		if (entry.d_tag == DT_GNU_HASH)
			symbols->hash = bias + entry.d_un.d_ptr;
		else if (entry.d_tag == DT_SYMTAB)
			symbols->table = bias + entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			symbols->names = bias + entry.d_un.d_ptr;
	}
}

/* Is the word in the segment, or can that not be told? */
static bool may_hold(const struct parked_shell *shell, uint64_t at, uint64_t size, const char *word, size_t length)
{
	static char bytes[SHELL_PAGE];
	if (size > PROGRAM_MAX)
		return true;
	for (uint64_t done = 0; done + length <= size; done += sizeof(bytes) - length + 1) {
		uint64_t part = size - done < sizeof(bytes) ? size - done : sizeof(bytes);
		if (!take(shell, at + done, bytes, part))
			return true;
		for (uint64_t i = 0; i + length <= part; i++) {
			size_t same = 0;
			while (same < length && bytes[i + same] == word[same])
				same++;
			if (same == length)
				return true;
		}
	}
	return false;
}

long shell_find_clock(struct parked_shell *shell, uint64_t headers, uint64_t count)
{
	static const char counter[] = "SECONDS";
	Elf64_Phdr segments[SEGMENTS_MAX];
	struct symbols symbols = { 0 };
	uint64_t bias = 0;
	if (!count || count > SEGMENTS_MAX || !take(shell, headers, segments, count * sizeof(*segments)))
		return -EPROTO;
	for (uint64_t i = 0; i < count; i++)
		if (segments[i].p_type == PT_PHDR)
			bias = headers - segments[i].p_vaddr;
	for (uint64_t i = 0; i < count; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			read_dynamic(shell, bias + segments[i].p_vaddr, bias, &symbols);
	shell->seconds_at = find(shell, &symbols, bias, "shell_start_time", sizeof(int64_t));
	shell->time_at = find(shell, &symbols, bias, "shellstart", 2 * sizeof(int64_t));
	for (uint64_t i = 0; i < count && !shell->seconds_at; i++)
		if (segments[i].p_type == PT_LOAD &&
		    may_hold(shell, bias + segments[i].p_vaddr, segments[i].p_filesz, counter, sizeof(counter)))
			return -EPROTO;
	return 0;
}
#endif
