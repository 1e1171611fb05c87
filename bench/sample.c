/* What the measuring programs share: see sample.h. */
#include "sample.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 10 };

double now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void give_up(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double percentile(double *samples, size_t count, double share)
{
	qsort(samples, count, sizeof(*samples), ascending);
	return samples[(size_t)((double)(count - 1) * share + 0.5)];
}

void print_sample(const char *name, double *samples, size_t count)
{
	printf("%s\t%.1f\t%.1f\t%.1f\n", name, percentile(samples, count, 0.5), percentile(samples, count, 0.9),
	       percentile(samples, count, 0.99));
	fflush(stdout);
}

/* The same orders in every run. */
static void shuffle(size_t *order, size_t count)
{
	static unsigned seed = 1;
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)rand_r(&seed) % i, taken = order[i - 1];
		order[i - 1] = order[other];
		order[other] = taken;
	}
}

void interleave(const char *label, const struct variant *variants, size_t count, size_t rounds, unsigned rest_us)
{
	double *samples = calloc(count * rounds, sizeof(*samples));
	size_t *taken = calloc(count, sizeof(*taken)), *order = calloc(count, sizeof(*order));
	size_t unmeasured = rounds < WARM_UP ? rounds : WARM_UP;
	char name[256];
	if (!samples || !taken || !order)
		give_up("no memory");
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t round = 0; round < rounds + unmeasured; round++) {
		shuffle(order, count);
		for (size_t turn = 0; turn < count; turn++) {
			size_t i = order[turn];
			const struct variant *variant = &variants[i];
			if (variant->every > 1 && (round < unmeasured || (round - unmeasured) % variant->every))
				continue;
			if (rest_us)
				usleep(rest_us);
			double start = now_us();
			variant->run(variant->arg);
			if (round >= unmeasured)
				samples[i * rounds + taken[i]++] = now_us() - start;
		}
	}
	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s %s", label, variants[i].name);
		print_sample(name, samples + i * rounds, taken[i]);
	}
	free(order);
	free(taken);
	free(samples);
}
