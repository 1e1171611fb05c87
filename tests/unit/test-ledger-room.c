/* Room that is reserved for the rows of running commands, on a file system of its own that gets full. Each case runs
 * with space that is allocated ahead, and with the file that stands for it where the file system cannot do that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger-calls.h"
#include "skip.h"

#define SLOT 16384
#define CANNOT 77
/* In a child, whose status is the line. */
#define CHECK(what)                     \
	do {                            \
		if (!(what))            \
			_exit(fail_at(__LINE__)); \
	} while (0)

static int fail_at(int line)
{
	fprintf(stderr, "line %d\n", line);
	return 1;
}

static void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(CANNOT);
	close(fd);
}

static void small_disk(const struct ground *ground)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(CANNOT);
	put_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	put_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	put_text("/proc/self/gid_map", map);
	if (mount("none", ground->root, "tmpfs", MS_NOSUID | MS_NODEV, "size=512k,mode=700"))
		_exit(CANNOT);
}

/* Whatever is left of the file system is taken; and is given back. */
static void fill(const struct ground *ground, bool full)
{
	static const char bytes[4096];
	char path[128];
	snprintf(path, sizeof(path), "%s/filler", ground->root);
	if (!full) {
		CHECK(unlink(path) == 0);
		return;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	CHECK(fd >= 0 && errno == ENOSPC);
	close(fd);
}

static const char *row(size_t length)
{
	static char line[SLOT];
	memset(line, 'x', sizeof(line));
	memcpy(line, "{\"pad\":\"", 8);
	memcpy(line + length - 2, "\"}", 3);
	return line;
}

static int add(struct ledger *ledger, size_t length, struct cordon_error *err)
{
	return ledger_append(ledger, row(length), length, err);
}

static int add_in(struct ledger *ledger, struct ledger_room *room, size_t length, struct cordon_error *err)
{
	return ledger_append_in(ledger, room, row(length), length, err);
}

static struct ledger_room begin(struct ledger *ledger, size_t bytes)
{
	struct cordon_error err;
	struct ledger_room room = { 0 };
	CHECK(ledger_append_reserving(ledger, row(500), 500, bytes, &room, &err) == 0);
	CHECK(room.left >= bytes);
	return room;
}

/* Rows of no command, until what was allocated ahead is used up. */
static void use_up(struct ledger *ledger)
{
	struct cordon_error err;
	for (size_t length = 8000; length >= 500; length = length > 500 && length < 1000 ? 500 : length / 2) {
		int rows = 0;
		while (add(ledger, length, &err) == 0)
			CHECK(++rows < 100);
		CHECK(err.class == CORDON_E_AUDIT_UNAVAILABLE && err.os_errno == ENOSPC);
		CHECK(strstr(err.remediation, "free space"));
		if (length == 500)
			break;
	}
}

static struct ledger *another(const struct ground *ground)
{
	struct ledger *ledger;
	struct cordon_error err;
	CHECK(ledger_open(ground->data, false, &ledger, &err) == 0);
	return ledger;
}

static bool is_intact(const struct ground *ground)
{
	json_t *report = ground_verify(ground);
	bool intact = json_is_true(json_object_get(report, "intact"));
	if (!intact)
		fprintf(stderr, "%s\n", json_dumps(report, JSON_INDENT(2)));
	json_decref(report);
	return intact;
}

/* A row of a running command fits where no other does; not more of them than it reserved for. */
static void a_command_has_its_rows(struct ground *ground)
{
	struct cordon_error err;
	struct ledger_room room = begin(ground->ledger, SLOT), none = { 0 };
	fill(ground, true);
	use_up(ground->ledger);
	CHECK(ledger_append_reserving(ground->ledger, row(500), 500, SLOT, &none, &err) < 0 && err.os_errno == ENOSPC);
	CHECK(!none.slots && !none.left);
	CHECK(add_in(ground->ledger, &none, 500, &err) < 0);
	for (int i = 0; i < 5; i++)
		CHECK(add_in(ground->ledger, &room, 3000, &err) == 0);
	CHECK(room.left < 3000 && add_in(ground->ledger, &room, 3000, &err) < 0 && err.os_errno == ENOSPC);
	CHECK(add(ground->ledger, 500, &err) < 0);
	ledger_release(ground->ledger, &room);
	ledger_release(ground->ledger, &room);
	CHECK(is_intact(ground));
	fill(ground, false);
	room = begin(ground->ledger, SLOT);
	CHECK(add_in(ground->ledger, &room, 3000, &err) == 0);
}

/* Each process has its own: two handles are as strange to each other as two processes. */
static void two_processes(struct ground *ground)
{
	struct cordon_error err;
	struct ledger *other = another(ground);
	struct ledger_room room = begin(ground->ledger, SLOT), others = begin(other, SLOT);
	struct ledger_room more = begin(other, 3 * SLOT);
	fill(ground, true);
	use_up(ground->ledger);
	use_up(other);
	for (int i = 0; i < 5; i++)
		CHECK(add_in(ground->ledger, &room, 3000, &err) == 0);
	CHECK(add_in(ground->ledger, &room, 3000, &err) < 0);
	for (int i = 0; i < 3; i++)
		CHECK(add_in(other, &more, 15000, &err) == 0);
	CHECK(add_in(other, &others, 15000, &err) == 0);
	CHECK(is_intact(ground));
}

/* What a process reserved that was killed is anyone's. */
static void a_dead_process_reserves_nothing(struct ground *ground)
{
	struct cordon_error err;
	int ready[2], status;
	char byte;
	begin(ground->ledger, 1);
	CHECK(pipe(ready) == 0);
	pid_t pid = fork();
	if (!pid) {
		struct ledger *own = another(ground);
		begin(own, 4 * SLOT);
		CHECK(write(ready[1], "", 1) == 1);
		pause();
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	fill(ground, true);
	use_up(ground->ledger);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (fail_allocate)
		return;
	CHECK(add(ground->ledger, 15000, &err) == 0 && add(ground->ledger, 15000, &err) == 0 && is_intact(ground));
}

/* flock() and a read lock need no right to write. */
static void a_lock_where_no_slot_is_reserves_nothing(struct ground *ground)
{
	static const struct {
		off_t start, length;
	} locks[] = { { (off_t)1 << 40, 1 }, { 65536, 1 }, { 65530, 100 }, { 100, 0 } };
	char path[128];
	snprintf(path, sizeof(path), "%s/reserve", ground->directory);
	struct ledger_room room = begin(ground->ledger, SLOT);
	for (size_t i = 0; i < sizeof(locks) / sizeof(*locks); i++) {
		struct cordon_error err;
		struct flock lock = {
			.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = locks[i].start, .l_len = locks[i].length
		};
		int fd = open(path, O_RDONLY);
		CHECK(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
		begin(ground->ledger, SLOT);
		CHECK(add(ground->ledger, 3000, &err) == 0);
		close(fd);
	}
	struct cordon_error err;
	CHECK(add_in(ground->ledger, &room, 3000, &err) == 0 && is_intact(ground));
}

static void day_path(const struct ground *ground, char path[160])
{
	struct ground day = *ground;
	ground_day(&day);
	memcpy(path, day.file, sizeof(day.file));
}

/* No space for a new day's file: the row goes to the old one. Once there is, the next goes to the new one. Of the
 * reserve file any file can have space. */
static void midnight(struct ground *ground)
{
	struct cordon_error err;
	char old[160], new[160];
	struct stat before, after;
	struct ledger *other = another(ground);
	struct ledger_room room = begin(ground->ledger, SLOT), others = begin(other, SLOT);
	fill(ground, true);
	day_path(ground, old);
	clock_offset = 86400;
	day_path(ground, new);
	use_up(ground->ledger);
	CHECK(add_in(ground->ledger, &room, 3000, &err) == 0 && add_in(other, &others, 3000, &err) == 0);
	CHECK((access(new, F_OK) == 0) == (fail_allocate != 0) && is_intact(ground));
	CHECK(stat(old, &before) == 0);
	fill(ground, false);
	CHECK(add_in(ground->ledger, &room, 3000, &err) == 0);
	CHECK(access(new, F_OK) == 0 && stat(old, &after) == 0 && after.st_size == before.st_size);
	/* What was allocated behind the rows of the old one is free. */
	CHECK(after.st_blocks * 512 < after.st_size + 4096);
	fill(ground, true);
	use_up(ground->ledger);
	CHECK(add_in(ground->ledger, &room, 3000, &err) == 0 && add_in(other, &others, 11000, &err) == 0);
	CHECK(is_intact(ground));
}

/* The head and the signed head are written on a full disk, too. */
static void heads(struct ground *ground)
{
	struct cordon_error err;
	struct ledger_room room = begin(ground->ledger, 8 * SLOT);
	fill(ground, true);
	use_up(ground->ledger);
	for (int i = 0; i < 70; i++)
		CHECK(add_in(ground->ledger, &room, 500, &err) == 0);
	json_t *report = ground_verify(ground);
	CHECK(json_is_true(json_object_get(report, "intact")));
	json_t *signed_head = json_object_get(report, "signed");
	CHECK(json_integer_value(json_object_get(signed_head, "rows")) >= 64);
}

/* A limit on the size of files raises no signal. */
static void a_file_size_limit(struct ground *ground)
{
	struct cordon_error err;
	struct ledger_room room;
	struct rlimit limit = { 8192, 100000 };
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK(ledger_append_reserving(ground->ledger, row(500), 500, SLOT, &room, &err) < 0 && err.os_errno == EFBIG);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	begin(ground->ledger, SLOT);
}

static void in_child(struct ground *ground, void (*fn)(struct ground *))
{
	for (int way = 0; way < 2; way++) {
		int status;
		fflush(NULL);
		pid_t pid = fork();
		if (!pid) {
			small_disk(ground);
			fail_allocate = way ? EOPNOTSUPP : 0;
			fn(ground);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
			skip_cannot("mount-namespace", "a small filesystem of its own is needed");
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fail_msg("%s: status %#x", way ? "with a reserve file" : "allocated ahead", (unsigned)status);
	}
}

#define IN_CHILD(name)                          \
	static void test_##name(void **state)   \
	{                                       \
		in_child(*state, name);         \
	}
IN_CHILD(a_command_has_its_rows)
IN_CHILD(two_processes)
IN_CHILD(a_dead_process_reserves_nothing)
IN_CHILD(a_lock_where_no_slot_is_reserves_nothing)
IN_CHILD(midnight)
IN_CHILD(heads)
IN_CHILD(a_file_size_limit)

/* One after the other, nothing is allocated for most of them; and what many at a time reserved is not kept. */
static void it_costs_little(void **state)
{
	struct ground *ground = *state;
	struct cordon_error err;
	struct stat st;
	struct ledger_room rooms[100] = { 0 };
	allocations = 0;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ledger_append_reserving(ground->ledger, row(900), 900, SLOT, &rooms[0], &err), 0);
		assert_int_equal(ledger_append_in(ground->ledger, &rooms[0], row(1500), 1500, &err), 0);
		assert_true(rooms[0].left >= SLOT);
		ledger_release(ground->ledger, &rooms[0]);
	}
	assert_in_range(allocations, 1, 8);
	assert_int_equal(stat(ground->file, &st), 0);
	assert_true(st.st_blocks * 512 < st.st_size + (256 << 10));
	for (int i = 0; i < 100; i++)
		assert_int_equal(ledger_append_reserving(ground->ledger, row(900), 900, SLOT, &rooms[i], &err), 0);
	assert_int_equal(stat(ground->file, &st), 0);
	assert_true(st.st_blocks * 512 >= st.st_size + 100 * SLOT);
	for (int i = 0; i < 100; i++)
		ledger_release(ground->ledger, &rooms[i]);
	/* Another day's file has what is needed then. */
	clock_offset = 86400;
	ground_day(ground);
	ground_append(ground->ledger, "{\"a\":1}");
	assert_int_equal(stat(ground->file, &st), 0);
	assert_true(st.st_blocks * 512 < 512 << 10);
	ground_intact(ground, true);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_command_has_its_rows), CASE(test_two_processes), CASE(test_a_dead_process_reserves_nothing),
		CASE(test_a_lock_where_no_slot_is_reserves_nothing),
		CASE(test_midnight), CASE(test_heads), CASE(test_a_file_size_limit), CASE(it_costs_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
