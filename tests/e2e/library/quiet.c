/* The embedding program is left alone: no signal handler, mask, umask or working directory is changed, nothing printed.
 * One that ignores SIGCHLD, or reaps every child there is, does no harm. A large program starts a command as fast as a
 * small one. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "embed.h"

static volatile sig_atomic_t children, reaped;

static void on_child(int number)
{
	(void)number;
	children++;
}

static void run(struct cordon *cordon, const char *line, int status)
{
	struct cordon_error err;
	struct cordon_result *result;
	struct cordon_request *request = shell(line);
	MUST(cordon_result_run(cordon, request, &result, &err));
	CHECK(result->exit_code == status);
	cordon_result_unref(result);
	cordon_request_unref(request);
}

static void check_alone(struct cordon *cordon)
{
	struct sigaction action = { .sa_handler = on_child }, found;
	sigset_t mask, before, after;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigaction(SIGCHLD, &action, NULL);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	mode_t old = umask(031);
	char here[4096], there[4096];
	CHECK(getcwd(here, sizeof(here)));
	for (int i = 0; i < 20; i++)
		run(cordon, "sleep 0.01 & exit 4", 4);
	struct cordon_error err;
	struct cordon_result *result = NULL;
	struct cordon_request *refused = shell("true");
	CHECK(cordon_request_set(refused, "cwd", "..", &err) == 0 &&
	      cordon_result_run(cordon, refused, &result, &err) < 0 && !result);
	cordon_request_unref(refused);
	CHECK(getcwd(there, sizeof(there)) && !strcmp(here, there));
	CHECK(sigaction(SIGCHLD, NULL, &found) == 0 && found.sa_handler == on_child);
	for (int number = 1; number < 32; number++)
		if (number != SIGCHLD && sigaction(number, NULL, &found) == 0)
			CHECK(found.sa_handler == SIG_DFL);
	sigprocmask(SIG_SETMASK, NULL, &after);
	CHECK(!memcmp(&before, &after, sizeof(before)) && umask(old) == 031);
	CHECK(geteuid() == getuid() && access("/proc/self/fd", R_OK) == 0);
	signal(SIGCHLD, SIG_DFL);
}

/* One that ignores SIGCHLD has its children reaped by the kernel; ours must be found all the same. */
static void check_ignored_sigchld(struct cordon *cordon)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 5; i++)
		run(cordon, "exit 6", 6);
	signal(SIGCHLD, SIG_DFL);
}

static void reap_all(int number)
{
	int saved = errno;
	(void)number;
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		reaped++;
	errno = saved;
}

static void check_reaped_by_others(struct cordon *cordon)
{
	struct sigaction action = { .sa_handler = reap_all, .sa_flags = SA_RESTART };
	sigaction(SIGCHLD, &action, NULL);
	for (int i = 0; i < 20; i++) {
		run(cordon, "sleep 9 & exit 6", 6);
		reap_all(0);
	}
	CHECK(reaped > 0);
	signal(SIGCHLD, SIG_DFL);
}

/* The least that starting a command costs this thread: time on a processor, which others on the machine do not add to.
 */
static double cheapest(struct cordon *cordon)
{
	double best = 1e9;
	for (int i = 0; i < 30; i++) {
		struct timespec begun, ended;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
		run(cordon, "exit 0", 0);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
		double ms = (double)(ended.tv_sec - begun.tv_sec) * 1e3 + (double)(ended.tv_nsec - begun.tv_nsec) / 1e6;
		best = ms < best ? ms : best;
	}
	return best;
}

static void check_size(struct cordon *cordon)
{
	const size_t size = 500u << 20;
	double small = cheapest(cordon);
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	double large = cheapest(cordon);
	munmap(memory, size);
	/* Copying the page tables of that much takes longer than the whole of a command. */
	fprintf(stderr, "%.2f ms small, %.2f ms large\n", small, large);
	CHECK(large < small * 1.5 + 0.5);
}

int main(void)
{
	struct cordon_error err;
	struct cordon *cordon;
	MUST(cordon_open(NULL, &cordon, &err));
	check_alone(cordon);
	check_ignored_sigchld(cordon);
	check_reaped_by_others(cordon);
	check_size(cordon);
	cordon_unref(cordon);
	puts("fine");
	return 0;
}
