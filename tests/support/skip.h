/* A skip that says why, in the form the runner can check: see tests/support/probe. */
#pragma once
#define skip_cannot(probe, why)                                          \
	do {                                                             \
		print_message("# skip: cannot: " probe ": " why "\n");   \
		skip();                                                  \
	} while (0)
