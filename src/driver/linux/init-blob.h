/* The init program as bytes, made by the build from init.c. */
#pragma once

extern const unsigned char cordon_init_blob[];
extern const unsigned int cordon_init_blob_size;
