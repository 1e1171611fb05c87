/* The init program (init.c) as an ELF image in memory; the build makes the bytes (tools/embed). */
#pragma once

extern const unsigned char cordon_init_blob[];
extern const unsigned cordon_init_blob_size;
