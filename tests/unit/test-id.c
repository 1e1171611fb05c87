/* Ids: their form, that they sort by time, that they differ, also where random bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/id.h"

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static uint64_t milliseconds(const char *id)
{
	uint64_t ms = 0;
	for (int i = 0; i < 10; i++)
		ms = ms << 5 | (uint64_t)(strchr(alphabet, id[i]) - alphabet);
	return ms;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void form_and_time(void **state)
{
	(void)state;
	char id[ID_SIZE + 1];
	memset(id, '#', sizeof(id));
	uint64_t before = now_ms();
	id_make(id);
	uint64_t after = now_ms();
	assert_int_equal(id[ID_SIZE], '#');
	assert_int_equal(strlen(id), 26);
	assert_int_equal(strspn(id, alphabet), 26);
	assert_in_range(milliseconds(id), before, after);
	id[ID_SIZE - 1] = '\0';
	assert_int_equal(id_time_ms(id), milliseconds(id));
	static const char *const none[] = { "", "A", "01M7FZW683Z96G0T7BNNWFSPM", "01M7FZW683Z96G0T7BNNWFSPMZZ",
		                            "01M7FZW683Z96G0T7BNNWFSPMu" };
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(id_time_ms(none[i]), 0);
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void they_sort_and_differ(void **state)
{
	(void)state;
	static char ids[20000][ID_SIZE];
	unsigned seen[16] = { 0 };
	for (int i = 0; i < 20000; i++) {
		id_make(ids[i]);
		/* The clock may have been set back, by a little. */
		if (i)
			assert_true(milliseconds(ids[i]) + 1000 >= milliseconds(ids[i - 1]));
		for (int at = 10; at < 26; at++)
			seen[at - 10] |= 1u << (strchr(alphabet, ids[i][at]) - alphabet);
	}
	for (int at = 0; at < 16; at++)
		assert_int_equal(seen[at], UINT32_MAX);
	qsort(ids, 20000, ID_SIZE, compare);
	for (int i = 1; i < 20000; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
}

/* In a child whose filter refuses getrandom(): 1000 ids, all different. */
static int without_random(void)
{
	static char ids[1000][ID_SIZE];
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	char byte;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 2;
	if (getrandom(&byte, 1, 0) != -1)
		return 3;
	for (int i = 0; i < 1000; i++) {
		id_make(ids[i]);
		if (strspn(ids[i], alphabet) != 26)
			return 4;
	}
	qsort(ids, 1000, ID_SIZE, compare);
	for (int i = 1; i < 1000; i++)
		if (!strcmp(ids[i - 1], ids[i]))
			return 5;
	return 0;
}

static void where_random_bytes_are_refused(void **state)
{
	(void)state;
	int status;
	pid_t pid = fork();
	if (!pid)
		_exit(without_random());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(form_and_time),
		cmocka_unit_test(they_sort_and_differ),
		cmocka_unit_test(where_random_bytes_are_refused),
	};
	return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
