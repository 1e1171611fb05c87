/* Sessions that many make, change, use and remove at once, or die over: nothing is lost or doubled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "registry-ground.h"

#include <cmocka.h>     /* after ours: it has a macro fail() */

#define KILLS 200
#define RACERS 16

static void wait_for_all(int count_of)
{
	for (int status; count_of; count_of--) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static int count_up(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena, (void)arg, (void)err;
	record->denied_in_a_row++;
	return 0;
}

/* The makers are counted in the pipe; and of changes none is lost. */
static void one_of_many_makes_it(void **state)
{
	struct ground *ground = *state;
	int gate[2], makers[2];
	for (int round = 0; round < 20; round++) {
		const char *id = arena_printf(&ground->arena, "race %d", round);
		assert_int_equal(pipe(gate) | pipe(makers), 0);
		for (int i = 0; i < RACERS; i++) {
			if (fork())
				continue;
			struct session_record record;
			struct arena arena = { 0 };
			bool made = false;
			char go;
			close(gate[1]);
			(void)!read(gate[0], &go, 1);
			int failed = registry_open(&arena, ground->data, id, NULL, &record, &made, NULL) < 0 ||
			             registry_change(&arena, ground->data, id, count_up, NULL, NULL, NULL) < 0 ||
			             (made && write(makers[1], "m", 1) != 1);
			_exit(failed);
		}
		close(gate[0]);
		close(gate[1]);
		close(makers[1]);
		wait_for_all(RACERS);
		char made[RACERS];
		assert_int_equal(read(makers[0], made, sizeof(made)), 1);
		close(makers[0]);
		assert_int_equal(ground_open(ground, id, false).denied_in_a_row, RACERS);
	}
}

/* Made, used and removed by all at once: every call succeeds or says that the session is missing or in use. */
static bool expected(const struct cordon_error *err)
{
	return err->class == CORDON_E_SESSION_BUSY ||
	       (err->class == CORDON_E_NOT_FOUND && strstr(err->reason, "no such"));
}

static int live_and_let_die(const char *data, unsigned seed)
{
	struct cordon_error err;
	for (int i = 0; i < 300; i++) {
		struct arena arena = { 0 };
		struct session_record record;
		int fd = -1;
		bool flag = false;
		int result = 0;
		switch (rand_r(&seed) % 4) {
		case 0:
			/* A session that is in use stays. */
			result = registry_use(&arena, data, "s", NULL, &fd, &record, &flag, &err);
			if (result == 0 && !flag)
				result = registry_open(&arena, data, "s", NULL, &record, &flag, &err);
			if (result == 0 && (registry_read(&arena, data, "s", &record, &flag, &err) < 0 || !flag))
				return 2;
			break;
		case 1: result = registry_open(&arena, data, "s", NULL, &record, &flag, &err); break;
		case 2: result = registry_change(&arena, data, "s", count_up, NULL, NULL, &err); break;
		case 3:
			result = registry_exclude(data, "s", &fd, &err) < 0 ? -1 : registry_remove(data, "s", &err);
			break;
		}
		if (fd >= 0)
			close(fd);
		arena_free(&arena);
		if (result < 0 && !expected(&err)) {
			fprintf(stderr, "%s: %s\n", err.reason, err.subject);
			return 3;
		}
	}
	return 0;
}

static void removing_and_opening_at_once(void **state)
{
	struct ground *ground = *state;
	struct session_record record;
	struct cordon_error err;
	bool found;
	for (unsigned i = 0; i < 8; i++)
		if (fork() == 0)
			_exit(live_and_let_die(ground->data, i));
	wait_for_all(8);
	MUST(registry_read(&ground->arena, ground->data, "s", &record, &found, &err));
	ground_open(ground, "s", !found);
}

static int note_denial(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arg, (void)err;
	struct session_denial *denials = arena_alloc(arena, (record->denial_count + 1) * sizeof(*denials));
	if (record->denial_count)
		memcpy(denials, record->denials, record->denial_count * sizeof(*denials));
	denials[record->denial_count] =
		(struct session_denial){ "h", arena_printf(arena, "%zu", record->denial_count), "t" };
	record->denials = denials;
	record->denial_count++;
	return 0;
}

/* Killed at any moment: the record is there and whole, and no change is lost that was acknowledged. */
static void kills(void **state)
{
	struct ground *ground = *state;
	size_t *acknowledged =
		mmap(NULL, sizeof(*acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned seed = 7;
	assert_true(acknowledged != MAP_FAILED);
	for (int round = 0; round < KILLS; round++) {
		/* A new session now and then, so that making is hit as well. */
		const char *id = arena_printf(&ground->arena, "s%d", round / 20);
		if (round % 20 == 0)
			*acknowledged = 0;
		pid_t pid = fork();
		if (pid == 0)
			for (;;) {
				struct arena arena = { 0 };
				struct session_record record;
				bool made;
				if (registry_open(&arena, ground->data, id, NULL, &record, &made, NULL) < 0 ||
				    registry_change(&arena, ground->data, id, note_denial, NULL, &record, NULL) < 0)
					_exit(1);
				*acknowledged = record.denial_count;
				arena_free(&arena);
			}
		assert_true(pid > 0);
		struct timespec pause = { .tv_nsec = rand_r(&seed) % 3000000 };
		nanosleep(&pause, NULL);
		int status;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		struct session_record record = { 0 };
		struct cordon_error err;
		bool found;
		MUST(registry_read(&ground->arena, ground->data, id, &record, &found, &err));
		assert_true(found || *acknowledged == 0);
		assert_true(!found ||
		            (record.denial_count >= *acknowledged && record.denial_count <= *acknowledged + 1));
		for (size_t i = 0; found && i < record.denial_count; i++)
			assert_int_equal(strtoul(record.denials[i].reason, NULL, 10), i);
		if (found)
			*acknowledged = record.denial_count;
	}
	munmap(acknowledged, sizeof(*acknowledged));
}

int main(void)
{
#define WITH_GROUND(test) cmocka_unit_test_setup_teardown(test, ground_setup, ground_teardown)
	const struct CMUnitTest tests[] = {
		WITH_GROUND(one_of_many_makes_it), WITH_GROUND(removing_and_opening_at_once), WITH_GROUND(kills),
	};
	return cmocka_run_group_tests_name("registry-races", tests, NULL, NULL);
}
