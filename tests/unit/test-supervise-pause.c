/* A command that is to stand still. Its init, its group and whoever wishes it are played here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef fail
#include "driver/linux/control.h"
#include "driver/linux/pidfd.h"
#include "driver/linux/processes.h"
#include "driver/linux/supervise.h"

#define INIT 4711
#define STEPS_MAX 100
#define WAIT_MS 1000

static struct {
	enum command_wish wish;
	bool can;
	int wished;                             /* how often it was asked */
	bool frozen, stuck;                     /* it cannot be let go */
	int kills, looks;
} played;

static const struct cgroup_ops ops = { .freeze = cgroup_freeze, .thaw = cgroup_thaw };

static enum command_wish wish(void *arg)
{
	assert_ptr_equal(arg, &played);
	played.wished++;
	return played.wish;
}

bool cgroup_kill(struct cgroup *group)
{
	(void)group;
	played.kills++;
	return true;
}

void cgroup_give_way(const struct cgroup *group)
{
	(void)group;
}

void cgroup_remove(struct cgroup *group)
{
	(void)group;
}

bool cgroup_freeze(struct cgroup *group, pid_t init)
{
	(void)group;
	assert_int_equal(init, INIT);
	played.frozen = played.can;
	return played.can;
}

bool cgroup_thaw(struct cgroup *group, pid_t init)
{
	(void)group;
	assert_int_equal(init, INIT);
	played.frozen = played.stuck;
	return !played.stuck;
}

pid_t pidfd_number(int pidfd)
{
	(void)pidfd;
	return INIT;
}

bool pidfd_kill(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0;
}

void pidfd_continue(int pidfd)
{
	(void)pidfd;
}

bool pidfd_is_stopped(int pidfd)
{
	(void)pidfd;
	return false;
}

void processes_kill_below(pid_t first)
{
	(void)first;
}

int memory_watch_look(struct memory_watch *watch, pid_t first)
{
	(void)watch;
	(void)first;
	return 10;
}

int disk_watch_look(struct disk_watch *watch, int pidfd)
{
	(void)watch;
	(void)pidfd;
	played.looks++;
	return 10;
}

struct ground {
	struct supervision supervision;
	struct launch launch;
	struct cgroup group;
	int init_fd, theirs[3];
};

static void begin(struct ground *ground, uint64_t wall_ms)
{
	static struct disk_watch disk;
	struct cordon_error err;
	*ground = (struct ground){ .launch.pidfd = -1, .group.ops = &ops };
	const struct supervise_options options = { .stdin_fd = -1, .group = &ground->group,
		.wall_ms = wall_ms, .wish = wish, .wish_arg = &played, .disk = &disk };
	assert_int_equal(supervise_prepare(&ground->supervision, &options, &ground->launch, &err), 0);
	assert_true((ground->init_fd = dup(ground->launch.control_fd)) >= 0);
	for (size_t i = 0; i < 3; i++)
		assert_true((ground->theirs[i] = dup(ground->launch.stdio[i])) >= 0);
	assert_int_equal(supervise_begin(&ground->supervision, &ground->launch, &err), 0);
}

static bool step(struct ground *ground)
{
	struct cordon_error err;
	bool finished;
	assert_int_equal(supervise_step(&ground->supervision, WAIT_MS, &finished, &err), 0);
	return finished;
}

static void step_until_frozen(struct ground *ground, bool frozen)
{
	for (int i = 0; played.frozen != frozen && i < STEPS_MAX; i++)
		step(ground);
	assert_int_equal(played.frozen, frozen);
	assert_int_equal(ground->supervision.still, frozen);
}

/* What init was told last; -1: nothing. */
static int told(struct ground *ground)
{
	struct control_message message;
	return recv(ground->init_fd, &message, sizeof(message), MSG_DONTWAIT) < 0 ? -1 : message.kind;
}

/* Until it was asked so often what is wished. */
static void step_until_asked(struct ground *ground, int times)
{
	int before = played.wished;
	for (int i = 0; played.wished < before + times && i < STEPS_MAX; i++)
		step(ground);
	assert_true(played.wished >= before + times);
}

static void end(struct ground *ground, bool reports)
{
	struct control_message report = { .kind = CONTROL_REPORT, .value = SIGKILL };
	if (reports)
		assert_int_equal(send(ground->init_fd, &report, sizeof(report), 0), sizeof(report));
	for (int i = 0; i < 3; i++)
		close(ground->theirs[i]);
	for (int i = 0; reports && !step(ground); i++)
		assert_true(i < STEPS_MAX);
	supervise_free(&ground->supervision);
	close(ground->init_fd);
}

static int setup(void **state)
{
	(void)state;
	memset(&played, 0, sizeof(played));
	played.can = true;
	return 0;
}

static void test_still_and_on(void **state)
{
	(void)state;
	struct ground ground;
	begin(&ground, 0);
	played.wish = COMMAND_STAND_STILL;
	step_until_frozen(&ground, true);
	/* What takes no disk space is not looked at. */
	int looks = played.looks;
	assert_true(looks > 0);
	step_until_asked(&ground, 2);
	assert_int_equal(played.looks, looks);
	/* A signal waits with it. */
	supervise_signal(&ground.supervision, SIGTERM);
	assert_int_equal(told(&ground), CONTROL_SIGNAL);
	played.wish = COMMAND_GO_ON;
	step_until_frozen(&ground, false);
	assert_true(ground.supervision.still_ms > 0);
	assert_int_equal(played.kills, 0);
	/* It has not been told to end, and was going on. */
	played.wish = COMMAND_END;
	step_until_asked(&ground, 1);
	assert_int_equal(told(&ground), -1);
	end(&ground, true);
}

/* It is not forgotten that it stands still. */
static void test_it_cannot_be_let_go_at_once(void **state)
{
	(void)state;
	struct ground ground;
	begin(&ground, 0);
	played.wish = COMMAND_STAND_STILL;
	step_until_frozen(&ground, true);
	played.stuck = true;
	played.wish = COMMAND_GO_ON;
	step_until_asked(&ground, 2);
	assert_true(ground.supervision.still && played.frozen);
	played.stuck = false;
	step_until_frozen(&ground, false);
	end(&ground, true);
}

static void test_it_cannot(void **state)
{
	(void)state;
	struct ground ground;
	played.can = false;
	begin(&ground, 0);
	played.wish = COMMAND_STAND_STILL;
	step_until_asked(&ground, 2);
	assert_false(ground.supervision.still || played.frozen);
	played.can = true;
	step_until_frozen(&ground, true);
	end(&ground, true);
}

/* In each way it is init that ends it, and tells. */
static void test_the_end(void **state)
{
	(void)state;
	struct ground ground;
	enum { ENDED, KILLED, TIMED, WAYS };
	for (int way = ENDED; way < WAYS; way++) {
		setup(NULL);
		begin(&ground, way == TIMED ? 700 : 0);
		played.wish = COMMAND_STAND_STILL;
		step_until_frozen(&ground, true);
		if (way == ENDED)
			played.wish = COMMAND_END;
		else if (way == KILLED)
			supervise_signal(&ground.supervision, SIGKILL);
		for (int i = 0; ground.supervision.state == SUPERVISE_RUNNING && i < STEPS_MAX; i++)
			step(&ground);
		if (way == TIMED)
			assert_int_equal(told(&ground), CONTROL_DEADLINE); /* from the beginning */
		assert_int_equal(told(&ground), CONTROL_KILL);
		assert_int_equal(ground.supervision.timed_out, way == TIMED);
		end(&ground, true);
		assert_int_equal(played.kills, 0);
		assert_true(played.frozen); /* nobody let it go */
		assert_false(ground.supervision.still);
	}
}

/* Whoever gives it up does not leave it standing there, with an init that may not be able to. */
static void test_given_up(void **state)
{
	(void)state;
	struct ground ground;
	begin(&ground, 0);
	played.wish = COMMAND_STAND_STILL;
	step_until_frozen(&ground, true);
	end(&ground, false);
	assert_int_equal(played.kills, 1);
}

/* A command that is short is not asked about. */
static void test_a_short_one(void **state)
{
	(void)state;
	struct ground ground;
	begin(&ground, 0);
	end(&ground, true);
	assert_int_equal(played.wished, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, setup)
		TEST(test_still_and_on), TEST(test_it_cannot),
		TEST(test_it_cannot_be_let_go_at_once), TEST(test_the_end), TEST(test_given_up), TEST(test_a_short_one),
	};
	return cmocka_run_group_tests_name("supervise-pause", tests, NULL, NULL);
}
