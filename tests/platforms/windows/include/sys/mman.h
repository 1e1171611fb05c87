/* Memory that forked processes would share, and no other. */
#pragma once
#include <stdlib.h>
#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 32
#define MAP_FAILED ((void *)-1)
#define mmap(place, size, rights, flags, fd, offset) calloc(1, size)
#define munmap(memory, size) free(memory)
