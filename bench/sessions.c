/* What a session costs while there are few and while there are many: sessions DATA-DIR FEW MANY. Each of the operations
 * of `cordon session`, and what it takes per operation (the list: per session listed). One line each: name,
 * microseconds with few, with many. */
#include <cordon-internal.h>
#include <stdio.h>
#include <stdlib.h>

#include "sample.h"

#define SAMPLES 200

static struct cordon *cordon;
static long made;

static void must(int result, const struct cordon_error *err)
{
	if (result != 0)
		give_up("sessions: %s (%s)", err->reason, err->subject);
}

static const char *name_of(long number)
{
	static char name[40];
	snprintf(name, sizeof(name), "conversation %ld", number);
	return name;
}

static void create(void)
{
	struct cordon_error err;
	char *json;
	must(cordon_session_new(cordon, name_of(made++), NULL, &json, &err), &err);
	free(json);
}

static void open_one(void)
{
	struct cordon_error err;
	char *json;
	must(cordon_session_new(cordon, name_of(rand() % made), NULL, &json, &err), &err);
	free(json);
}

static void show(void)
{
	struct cordon_error err;
	char *json;
	must(cordon_session_show(cordon, name_of(rand() % made), &json, &err), &err);
	free(json);
}

static void list(void)
{
	struct cordon_error err;
	char *json;
	must(cordon_session_list(cordon, &json, &err), &err);
	free(json);
}

/* A session that comes and goes among the others. */
static void come_and_go(void)
{
	struct cordon_error err;
	char *json;
	must(cordon_session_new(cordon, "guest", NULL, &json, &err), &err);
	free(json);
	must(cordon_session_end(cordon, "guest", false, &err), &err);
	must(cordon_session_remove(cordon, "guest", &err), &err);
}

static const struct {
	const char *name;
	void (*act)(void);
	int samples;
	int per_session;
} operations[] = {
	{ "show", show, SAMPLES, 0 },
	{ "open", open_one, SAMPLES, 0 },
	{ "list", list, 10, 1 },
	{ "come-and-go", come_and_go, SAMPLES, 0 },
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* The fastest of so many: what it takes when nothing else gets in the way. */
static double fastest(void (*act)(void), int samples)
{
	double least = 0;
	for (int i = 0; i < samples; i++) {
		double start = now_us();
		act();
		double took = now_us() - start;
		least = i && least < took ? least : took;
	}
	return least;
}

int main(int argc, char **argv)
{
	struct cordon_error err;
	double took[2][OPERATIONS], created[2];
	if (argc != 4)
		return 2;
	struct cordon_options options = { .data_dir = argv[1] };
	must(cordon_open(&options, &cordon, &err), &err);
	for (int phase = 0; phase < 2; phase++) {
		long wanted = atol(argv[2 + phase]);
		while (made < wanted - (phase ? SAMPLES : 0))
			create();
		created[phase] = phase ? fastest(create, SAMPLES) : 0;
		for (size_t i = 0; i < OPERATIONS; i++)
			took[phase][i] = fastest(operations[i].act, operations[i].samples) /
			                 (operations[i].per_session ? (double)made : 1);
		/* The first ones after the few: there is no other way to have few of them. */
		if (!phase)
			created[0] = fastest(create, SAMPLES);
	}
	printf("create\t%.1f\t%.1f\n", created[0], created[1]);
	for (size_t i = 0; i < OPERATIONS; i++)
		printf("%s\t%.1f\t%.1f\n", operations[i].name, took[0][i], took[1][i]);
	cordon_unref(cordon);
	return 0;
}
