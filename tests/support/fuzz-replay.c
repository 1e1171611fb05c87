/* Runs a fuzz target over every file of its corpus, one TAP line each; a crash or a sanitizer's report ends the
 * program. The directory's own order does not matter: a target keeps no state between inputs. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *file = fopen(path, "rb");
	if (!file)
		return -1;
	size_t size = fread(data, 1, sizeof(data), file);
	fclose(file);

	/* An exact copy, so that a read past its end is seen. */
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		return -1;
	memcpy(copy, data, size);
	int rc = LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	return rc;
}

int main(int argc, char **argv)
{
	DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
	if (!directory) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 1;
	}
	int count = 0, failed = 0;
	for (struct dirent *entry; (entry = readdir(directory));) {
		char path[4096];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		int rc = replay(path);
		failed += rc != 0;
		printf("%sok %d - %s\n", rc ? "not " : "", ++count, entry->d_name);
		fflush(stdout);
	}
	closedir(directory);
	if (count == 0) {
		printf("not ok 1 - the corpus is empty\n");
		failed = count = 1;
	}
	printf("1..%d\n", count);
	return failed != 0;
}
