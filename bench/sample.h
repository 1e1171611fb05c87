/* What the measuring programs share: the clock, percentiles, and rounds in which everything that is compared takes its turn.
 * A program prints lines: NAME, and one or more numbers, separated by tabs; bench/run makes tables of them. */
#pragma once
#include <stddef.h>

double now_us(void);

/* "bench: …", and the end. */
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sorts them. `share`: 0.5 for the median. */
double percentile(double *samples, size_t count, double share);
/* "NAME p50 p90 p99". Sorts them. */
void print_sample(const char *name, double *samples, size_t count);

/* One of those that are compared. */
struct variant {
	const char *name;
	void (*run)(const void *arg);
	const void *arg;
	size_t every;           /* in every so manieth round only: for what takes long. 0 is 1 */
};

/* So many rounds, and up to ten before that do not count. In each round every variant runs once, in another
 * order each time, since who comes next finds what the one before left to do; `rest_us` is waited before each. Prints a line for
 * each, "LABEL NAME …". */
void interleave(const char *label, const struct variant *variants, size_t count, size_t rounds, unsigned rest_us);
