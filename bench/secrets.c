/* The scanner for secrets, beside Hyperscan with the same patterns (-DHYPERSCAN, -lhs), on one processor.
 *
 *     secrets speed RUNS FILE      "NAME GB/s" for each way, all by turns, over the file's bytes in memory
 *     secrets rate                 paths on standard input: "bytes N", and "KIND count" for what was found
 *                                  with SHOW=1 in the environment also where, on standard error
 *     secrets rate-of-text         the same, without files that are no text: with a NUL in their first 64 KiB */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"
#include "secrets/filter.h"

#ifdef HYPERSCAN
#include <hs/hs.h>
#endif

struct input {
	const unsigned char *bytes;
	size_t length;
};

static struct secret_scanner all_layers, raw_layer;
static struct secret_set *set;
static size_t found;

#define BLOCK ((size_t)1 << 20)

static void scan_blocks(struct secret_scanner *scanner, const struct input *input)
{
	for (size_t at = 0; at < input->length; at += BLOCK) {
		size_t length = input->length - at < BLOCK ? input->length - at : BLOCK;
		if (secret_scan(scanner, input->bytes + at, length, true) < 0)
			give_up("memory is short");
		found += scanner->found_count;
	}
}

static void run_raw(const void *input)
{
	scan_blocks(&raw_layer, input);
}

static void run_all(const void *input)
{
	scan_blocks(&all_layers, input);
}

static void run_portable(const void *arg)
{
	const struct input *input = arg;
	uint8_t buckets;
	for (size_t at = 0; at < input->length; at++) {
		at = prefilter_next_portable(secret_set_prefilter(set), input->bytes, input->length, at, &buckets);
		found++;
	}
}

static void run_prefilter(const void *arg)
{
	const struct input *input = arg;
	uint8_t buckets;
	for (size_t at = 0; at < input->length; at++) {
		at = prefilter_next(secret_set_prefilter(set), input->bytes, input->length, at, false, &buckets);
		found++;
	}
}

static void discard(void *context, const void *bytes, size_t length)
{
	(void)context;
	(void)bytes;
	found += length;
}

/* As output comes from a pipe: 64 KiB at a time. */
static void run_filter(const void *arg)
{
	const struct input *input = arg;
	struct secret_policy policy;
	secret_policy_set(&policy, SECRET_REDACT);
	struct secret_filter *filter = secret_filter_new(set, &policy, NULL, discard, NULL);
	for (size_t at = 0; at < input->length; at += 65536)
		secret_filter_add(filter, input->bytes + at, input->length - at < 65536 ? input->length - at : 65536,
		                  0);
	secret_filter_finish(filter);
	secret_filter_free(filter);
}

#ifdef HYPERSCAN
static hs_database_t *database;
static hs_scratch_t *scratch;

static const char *const patterns[] = {
	"sk-ant-[A-Za-z0-9_-]{24}",
	"sk-or-[A-Za-z0-9_-]{24}",
	"sk-proj-[A-Za-z0-9_-]{24}",
	"sk-svcacct-[A-Za-z0-9_-]{24}",
	"sk-admin-[A-Za-z0-9_-]{24}",
	"\\bsk-[A-Za-z0-9]{32,64}\\b",
	"-----BEGIN [A-Z ]{0,40}PRIVATE KEY",
	"gh[posur]_[A-Za-z0-9]{36}",
	"github_pat_\\w{36}",
	"glpat-[A-Za-z0-9_-]{20}",
	"\\bAIza[A-Za-z0-9_-]{35}",
	"\\bA[KS]IA[A-Z0-9]{16}\\b",
	"(?i)aws_secret_access_key.{1,12}[A-Za-z0-9/+]{40}",
	"xox[abprs]-[A-Za-z0-9-]{20}",
	"xapp-[A-Za-z0-9-]{20}",
	"\\b[MNO][DTjz][A-Za-z0-9_-]{21,26}\\.[A-Za-z0-9_-]{5,8}\\.[A-Za-z0-9_-]{25,45}",
	"[0-9]{6,12}:A[A-Za-z0-9_-]{34}",
	"\\bBSA[A-Za-z0-9_-]{27,29}\\b",
	"npm_[A-Za-z0-9]{36}",
	"[sr]k_(live|test)_[A-Za-z0-9]{16}",
	"whsec_[A-Za-z0-9]{24}",
	"\\beyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10}",
};
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *context)
{
	(void)id, (void)from, (void)to, (void)flags, (void)context;
	found++;
	return 0;
}

static void compile_patterns(void)
{
	hs_compile_error_t *error;
	unsigned flags[PATTERNS], ids[PATTERNS];
	for (unsigned i = 0; i < PATTERNS; i++) {
		flags[i] = HS_FLAG_DOTALL | HS_FLAG_SINGLEMATCH;
		ids[i] = i;
	}
	if (hs_compile_multi(patterns, flags, ids, PATTERNS, HS_MODE_BLOCK, NULL, &database, &error) != HS_SUCCESS)
		give_up("hyperscan: %s", error->message);
	if (hs_alloc_scratch(database, &scratch) != HS_SUCCESS)
		give_up("hyperscan: no scratch");
}

static void run_hyperscan(const void *arg)
{
	const struct input *input = arg;
	for (size_t at = 0; at < input->length; at += BLOCK)
		hs_scan(database, (const char *)input->bytes + at,
		        (unsigned)(input->length - at < BLOCK ? input->length - at : BLOCK), 0, scratch, on_match,
		        NULL);
}
#endif

static struct input map(const char *path)
{
	struct stat about;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &about) < 0 || !about.st_size)
		give_up("%s cannot be read", path);
	void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (bytes == MAP_FAILED)
		give_up("%s cannot be mapped", path);
	close(fd);
	return (struct input){ bytes, (size_t)about.st_size };
}

/* Processor time: the ways are compared on a machine that may do other work. */
static double spent_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void speed(size_t runs, const char *path)
{
	struct input input = map(path);
	const struct {
		const char *name;
		void (*run)(const void *);
	} ways[] = {
		{ "raw layer", run_raw },
		{ "raw layer, prefilter alone", run_prefilter },
		{ "raw layer, portable prefilter", run_portable },
		{ "all layers", run_all },
		{ "redacting stream", run_filter },
#ifdef HYPERSCAN
		{ "hyperscan, raw layer", run_hyperscan },
#endif
	};
	const size_t count = sizeof(ways) / sizeof(ways[0]);
	double best[8] = { 0 };
#ifdef HYPERSCAN
	compile_patterns();
#endif
	for (size_t run = 0; run < runs; run++) {
		for (size_t i = 0; i < count; i++) {
			double begin = spent_us();
			ways[i].run(&input);
			double rate = (double)input.length / (spent_us() - begin) / 1e3;
			best[i] = rate > best[i] ? rate : best[i];
		}
	}
	for (size_t i = 0; i < count; i++)
		printf("%s\t%.3f\n", ways[i].name, best[i]);
}

static bool is_text(const struct input *input)
{
	return !memchr(input->bytes, '\0', input->length < 65536 ? input->length : 65536);
}

static void rate(bool is_of_text)
{
	char *line = NULL;
	size_t size = 0, counts[SECRET_ROWS] = { 0 };
	unsigned long long bytes = 0;
	for (ssize_t length; (length = getline(&line, &size, stdin)) > 0;) {
		line[length - 1] = '\0';
		struct stat about;
		if (lstat(line, &about) < 0 || !S_ISREG(about.st_mode) || !about.st_size || access(line, R_OK) < 0)
			continue;
		struct input input = map(line);
		if (is_of_text && !is_text(&input)) {
			munmap((void *)(uintptr_t)input.bytes, input.length);
			continue;
		}
		bytes += input.length;
		if (secret_scan(&all_layers, input.bytes, input.length, true) < 0)
			give_up("memory is short");
		for (size_t i = 0; i < all_layers.found_count; i++) {
			const struct secret_found *one = &all_layers.found[i];
			char layer[SECRET_LAYER_TEXT];
			secret_layer_text(one->layers, layer);
			counts[one->member]++;
			if (getenv("SHOW"))
				fprintf(stderr, "%s:%zu: %s (%s): %.*s\n", line, one->start,
				        secret_found_name(set, one), layer,
				        (int)(one->end - one->start < 60 ? one->end - one->start : 60),
				        (const char *)input.bytes + one->start);
		}
		munmap((void *)(uintptr_t)input.bytes, input.length);
	}
	free(line);
	printf("bytes\t%llu\n", bytes);
	for (size_t i = 0; i < secret_row_count; i++)
		if (counts[i])
			printf("%s %s\t%zu\n", secret_rows[i].name, secret_rows[i].prefix, counts[i]);
}

int main(int argc, char **argv)
{
	set = secret_set_new();
	if (!set)
		give_up("memory is short");
	secret_scanner_init(&all_layers, set, NULL);
	secret_scanner_init(&raw_layer, set, NULL);
	raw_layer.depth = 0;
	if (argc == 4 && !strcmp(argv[1], "speed"))
		speed(strtoul(argv[2], NULL, 10), argv[3]);
	else if (argc == 2 && !strncmp(argv[1], "rate", 4))
		rate(!strcmp(argv[1], "rate-of-text"));
	else
		give_up("secrets speed RUNS FILE | secrets rate | secrets rate-of-text");
	return 0;
}
