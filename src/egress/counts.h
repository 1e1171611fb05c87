/* The results of a command's connections, in numbers. */
#pragma once
#include <stdint.h>

struct egress_counts {
	uint64_t connections, bytes_in, bytes_out, denied, failed;
};
