/* A command that is to stand still. Its init, its group and whoever wishes it are played here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef fail
#include "base/clock.h"
#include "run/control.h"
#include "run/pidfd.h"
#include "run/processes.h"
#include "run/supervise.h"

#define INIT 4711
#define STEPS_MAX 100
#define WAIT_MS 1000
#define POLITE_MS 200                    /* supervise-pause.c's */

static struct {
	enum supervise_wish wish;
	bool can, releases;
	int rounds, refused, wished;            /* rounds until all stand still; of those, how many refuse others; how often it was asked */
	bool frozen, stuck;                     /* it cannot be let go */
	int kills, looks;
} played;

static enum supervise_wish wish(void *arg)
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

bool cgroup_freeze_ready(struct cgroup *group, const struct cgroup_search *search, int ret_release[static 2])
{
	(void)group;
	(void)search;
	ret_release[0] = ret_release[1] = -1;
	for (int i = 0; played.can && played.releases && i < 2; i++)
		ret_release[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	return played.can;
}

int cgroup_freeze(struct cgroup *group, pid_t init, bool refuse)
{
	(void)group;
	assert_int_equal(init, INIT);
	played.frozen = true;
	played.refused += refuse;
	return played.rounds && played.rounds--;
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

void processes_kill_below(pid_t first)
{
	(void)first;
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
	int sockets[2], ours[3];
	*ground = (struct ground){ .launch.pidfd = -1, .group.ops = (const void *)&played };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(supervise_pipes(ours, ground->theirs), 0);
	ground->init_fd = sockets[1];
	const struct supervise_options options = { .stdin_fd = -1, .stdio_fd = ours, .control_fd = sockets[0], .group = &ground->group,
		.wall_ms = wall_ms, .wish = wish, .wish_arg = &played, .disk = &disk };
	assert_int_equal(supervise_prepare(&ground->supervision, &options, &ground->launch, &err), 0);
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

/* What init was told last, and how many descriptors came with it; -1: nothing. */
static int told(struct ground *ground, int *ret_descriptors)
{
	struct control_message message;
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec part = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t length = recvmsg(ground->init_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*ret_descriptors = 0;
	if (length < 0)
		return -1;
	struct cmsghdr *came = CMSG_FIRSTHDR(&header);
	if (came)
		*ret_descriptors = (int)((came->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (int i = 0; i < *ret_descriptors; i++)
		close(((int *)(void *)CMSG_DATA(came))[i]);
	return message.kind;
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
	int descriptors;
	played.releases = true;
	begin(&ground, 0);
	played.wish = SUPERVISE_STAND_STILL;
	played.rounds = 3;
	step_until_frozen(&ground, true);
	assert_int_equal(told(&ground, &descriptors), CONTROL_FREEZER);
	assert_int_equal(descriptors, 2);
	for (int i = 0; ground.supervision.rounds && i < STEPS_MAX; i++)
		step(&ground);
	assert_int_equal(played.rounds, 0);
	assert_int_equal(played.refused, 0);
	/* What takes no disk space is not looked at. */
	int looks = played.looks;
	assert_true(looks > 0);
	step_until_asked(&ground, 2);
	assert_int_equal(played.looks, looks);
	/* A signal waits with it. */
	supervise_signal(&ground.supervision, SIGTERM);
	assert_int_equal(told(&ground, &descriptors), CONTROL_SIGNAL);
	played.wish = SUPERVISE_GO_ON;
	step_until_frozen(&ground, false);
	assert_true(ground.supervision.still_ms > 0);
	assert_int_equal(played.kills, 0);
	/* It has not been told to end, and was going on. */
	played.wish = SUPERVISE_END;
	step_until_asked(&ground, 1);
	assert_int_equal(told(&ground, &descriptors), -1);
	end(&ground, true);
}

#define FEW 64

/* More descriptors under way than a limit of FEW allows. */
static void send_many(int way)
{
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE((FEW + 1) * sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN((FEW + 1) * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	for (int i = 0; i <= FEW; i++)
		((int *)(void *)CMSG_DATA(&control.header))[i] = STDERR_FILENO;
	assert_int_equal(sendmsg(way, &header, 0), 1);
}

/* Root's count for nothing. */
static void set_privileged(bool privileged)
{
	struct __user_cap_header_struct version = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];
	assert_int_equal(syscall(SYS_capget, &version, sets), 0);
	for (int i = 0; i < 2; i++)
		sets[i].effective = privileged ? sets[i].permitted : 0;
	assert_int_equal(syscall(SYS_capset, &version, sets), 0);
}

/* They are counted with what init is to be handed, against the soft limit. */
static void test_many_descriptors_are_under_way(void **state)
{
	(void)state;
	struct ground ground;
	struct rlimit before, few;
	int descriptors, way[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, way), 0);
	send_many(way[0]);
	played.releases = true;
	begin(&ground, 0);
	played.wish = SUPERVISE_STAND_STILL;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ FEW, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	set_privileged(false);
	step_until_frozen(&ground, true);
	set_privileged(true);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(few.rlim_cur, FEW);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(told(&ground, &descriptors), CONTROL_FREEZER);
	assert_int_equal(descriptors, 2);
	close(way[0]);
	close(way[1]);
	end(&ground, true);
}

/* Who goes on and on is kept from starting others. */
static void test_those_who_are_not_caught(void **state)
{
	(void)state;
	struct ground ground;
	begin(&ground, 0);
	played.wish = SUPERVISE_STAND_STILL;
	played.rounds = 25;
	for (int i = 0; !played.refused && i < STEPS_MAX; i++)
		step(&ground);
	/* Sooner only where it has taken long. */
	if (clock_ms() - ground.supervision.still_since_ms > POLITE_MS)
		assert_in_range(played.rounds, 4, 25);
	else
		assert_int_equal(played.rounds, 4);
	end(&ground, true);
}

/* It is not forgotten that it stands still. */
static void test_it_cannot_be_let_go_at_once(void **state)
{
	(void)state;
	struct ground ground;
	begin(&ground, 0);
	played.wish = SUPERVISE_STAND_STILL;
	step_until_frozen(&ground, true);
	played.stuck = true;
	played.wish = SUPERVISE_GO_ON;
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
	played.wish = SUPERVISE_STAND_STILL;
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
	int descriptors;
	enum { ENDED, KILLED, TIMED, WAYS };
	for (int way = ENDED; way < WAYS; way++) {
		setup(NULL);
		begin(&ground, way == TIMED ? 700 : 0);
		played.wish = SUPERVISE_STAND_STILL;
		step_until_frozen(&ground, true);
		if (way == ENDED)
			played.wish = SUPERVISE_END;
		else if (way == KILLED)
			supervise_signal(&ground.supervision, SIGKILL);
		for (int i = 0; ground.supervision.state == SUPERVISE_RUNNING && i < STEPS_MAX; i++)
			step(&ground);
		assert_int_equal(told(&ground, &descriptors), CONTROL_KILL);
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
	played.wish = SUPERVISE_STAND_STILL;
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
		TEST(test_still_and_on), TEST(test_many_descriptors_are_under_way), TEST(test_those_who_are_not_caught), TEST(test_it_cannot),
		TEST(test_it_cannot_be_let_go_at_once), TEST(test_the_end), TEST(test_given_up), TEST(test_a_short_one),
	};
	return cmocka_run_group_tests_name("supervise-pause", tests, NULL, NULL);
}
