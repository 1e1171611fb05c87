/* A handle that is opened for a request: what its walls need is begun at once, and is what runs; whatever else becomes of the
 * handle, nothing of it is left. BEGINS: it can be, and is to be seen. */
#include <ctype.h>
#include <sched.h>
#include <unistd.h>

#include "embed.h"

#define ATTEMPTS_MS 5000
#define IN_VAIN_MAX 20          /* so often it seemed that a processor was free */

static int children(void)
{
	int count = 0;
	DIR *all = opendir("/proc");
	CHECK(all);
	for (struct dirent *entry; (entry = readdir(all));) {
		char path[300];
		int parent = 0;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		FILE *file = isdigit((unsigned char)*entry->d_name) ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		count += fscanf(file, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == getpid();
		fclose(file);
	}
	closedir(all);
	return count;
}

/* Everybody who wants to run at this moment, we among them: beyond one for each processor nothing is begun. */
static bool is_taken(void)
{
	int running = 0;
	cpu_set_t cpus;
	FILE *file = fopen("/proc/loadavg", "re");
	CHECK(file && fscanf(file, "%*s %*s %*s %d/", &running) == 1 && sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	fclose(file);
	return running >= CPU_COUNT(&cpus);
}

static struct cordon *open_for(const struct cordon_request *request)
{
	struct cordon_error err;
	struct cordon *cordon;
	MUST(cordon_open(&(struct cordon_options){ .cold = true, .first = request }, &cordon, &err));
	return cordon;
}

/* Nothing was started by it before; waits for a moment in which a processor is free. */
static void see_it_begin(const struct cordon_request *request)
{
	bool begun = false;
	int in_vain = 0;
	for (uint64_t from = now_ms(); !begun && now_ms() - from < ATTEMPTS_MS;) {
		bool was_taken = is_taken();
		struct cordon *cordon = open_for(request);
		for (int i = 0; !begun && i < 100; i++) {
			pause_ms(1);
			begun = children() == 1;
		}
		in_vain += !was_taken && !is_taken();
		cordon_unref(cordon);
		CHECK(children() == 0);
	}
	CHECK(begun || in_vain < IN_VAIN_MAX);
}

static void run(struct cordon *cordon, const struct cordon_request *request, const char *output)
{
	struct cordon_error err;
	struct cordon_result *result;
	MUST(cordon_run(cordon, request, &result, &err));
	CHECK(!strcmp(result->stdout_data, output));
	cordon_result_unref(result);
}

static void run_changed(struct cordon_request *request)
{
	struct cordon_error err;
	struct cordon *cordon = open_for(request);
	MUST(cordon_request_set(request, "tty", "24x80", &err));
	run(cordon, request, "terminal\r\n");
	cordon_unref(cordon);
}

int main(void)
{
	struct cordon_request *request = shell("test -t 1 && echo terminal || echo fine"), *other = shell("echo other");
	int before = open_descriptors();
	if (getenv("BEGINS"))
		see_it_begin(request);
	for (int i = 0; i < 3; i++)
		cordon_unref(open_for(request));
	struct cordon *cordon = open_for(request);
	run(cordon, request, "fine\n");
	run(cordon, request, "fine\n");
	cordon_unref(cordon);
	cordon = open_for(request);
	run(cordon, other, "other\n");
	cordon_unref(cordon);
	run_changed(request);
	CHECK(children() == 0);
	/* The copy of init and the machine's load stay open for the life of the process. */
	CHECK(open_descriptors() <= before + 2);
	cordon_request_unref(request);
	cordon_request_unref(other);
	puts("fine");
	return 0;
}
