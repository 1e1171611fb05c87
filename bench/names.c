/* What the check at a command's end costs where nothing changed: every known directory is looked at. Links the
 * library's own parts. names RUNS CACHE_DIR TREE: prints the number of directories with p50, p90 and p99 in
 * microseconds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "policy/capability.h"
#include "sample.h"
#include "paths/index/names.h"

#define SETTLE_US 100000        /* a directory that changed just now is read again, whatever its times say */

static int measure(char **argv, struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct capability_set set;
	struct names names;
	struct names_place place = { .path = argv[2], .may_make = true, .fd = -1 };
	const struct names_keep keep = { .place = &place };
	size_t runs = strtoul(argv[1], NULL, 10);
	double *took = calloc(runs, sizeof(*took));
	int root = open(argv[3], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!took || root < 0 || capability_baseline(&arena, true, &set) < 0)
		give_up("names: %s cannot be opened", argv[3]);
	const struct name_rules rules = { &set.deny, &set.protect, &set.exempt };
	usleep(SETTLE_US);
	for (size_t run = 0; run < runs + 2; run++) {
		struct arena each = { 0 };
		double begin = now_us();
		if (names_find(&each, root, argv[3], &rules, &keep, NAMES_COMPLETE, &names, err) < 0)
			return -1;
		if (run >= 2)
			took[run - 2] = now_us() - begin;
		arena_free(&each);
	}
	char label[32];
	snprintf(label, sizeof(label), "%zu", names.directories);
	print_sample(label, took, runs);
	return 0;
}

int main(int argc, char **argv)
{
	struct cordon_error err;
	if (argc != 4 || measure(argv, &err) < 0)
		give_up("names: %s", argc == 4 ? err.reason : "RUNS CACHE_DIR TREE");
	return 0;
}
