/* Of ELF files: see loader.h. */
#include "host/loader.h"

#include <elf.h>
#include <limits.h>
#include <string.h>

void loader_of(int fd, const unsigned char *head, size_t length, char *ret_path)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	ret_path[0] = '\0';
	if (length < sizeof(header) || memcmp(head, ELFMAG, SELFMAG) || head[EI_CLASS] != ELFCLASS64)
		return;
	memcpy(&header, head, sizeof(header));
	for (unsigned i = 0; i < header.e_phnum && i < 64; i++) {
		off_t at = (off_t)(header.e_phoff + (uint64_t)i * header.e_phentsize);
		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return;
		if (segment.p_type != PT_INTERP || segment.p_filesz >= PATH_MAX)
			continue;
		ssize_t got = pread(fd, ret_path, segment.p_filesz, (off_t)segment.p_offset);
		ret_path[got > 0 ? got : 0] = '\0';
		return;
	}
}
