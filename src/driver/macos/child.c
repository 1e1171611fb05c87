/* What a command's first process is: see macos.h. */
#include "driver/macos/macos.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/cleanup.h"

static bool set_limit(int resource, rlim_t most)
{
	struct rlimit limit = { most, most };
	return setrlimit(resource, &limit) == 0;
}

_Noreturn void macos_become(const struct command *command, const int theirs[3], char *const *argv, int report_fd)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
		signal(signal_number, SIG_DFL);
	umask((mode_t)command->umask);
	bool ready = setsid() >= 0 && fchdir(command->cwd_fd) == 0;
	for (int fd = 0; ready && fd < 3; fd++)
		ready = dup2(theirs[fd], fd) >= 0;
	int highest = getdtablesize();
	for (int fd = 3; ready && fd < highest; fd++)
		if (fd != report_fd)
			close(fd);
	ready = ready && set_limit(RLIMIT_CORE, 0) &&
	        (!command->profile->limits.open_files || set_limit(RLIMIT_NOFILE, command->profile->limits.open_files));
	if (ready)
		execve(SANDBOX_EXEC, argv, (char *const *)(uintptr_t)command->environment->items);
	int number = errno;
	(void)!write(report_fd, &number, sizeof(number));
	_exit(127);
}

char *const *macos_arguments(const struct macos_sandbox *sandbox, const struct command *command,
                                 struct cordon_error *err)
{
	const struct profile *profile = command->profile;
	struct strings list = { 0 };
	struct stat info;
	const char *program = NULL;
	for (size_t i = 0; i < profile->candidates.count && !program; i++) {
		const char *path = profile->candidates.items[i];
		if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0)
			program = path;
	}
	if (!program || program[0] != '/') {
		fail(err, CORDON_E_PROGRAM_NOT_FOUND, 0, profile->program, "there is no such program");
		return NULL;
	}
	if (info.st_mode & (S_ISUID | S_ISGID)) {
		fail(err, CORDON_E_PROGRAM_NOT_ALLOWED, 0, program, "it is setuid or setgid");
		return NULL;
	}
	if (command->program &&
	    (command->program->device != (uint64_t)info.st_dev || command->program->inode != info.st_ino)) {
		fail(err, CORDON_E_PROGRAM_NOT_ALLOWED, 0, program, "it is another file than the one that was judged");
		return NULL;
	}
	int result = 0;
	for (size_t i = 0; i < sandbox->count; i++)
		result |= strings_add(command->arena, &list, sandbox->arguments[i]);
	result |= strings_add(command->arena, &list, program);
	for (size_t i = 1; i < profile->argv.count; i++)
		result |= strings_add(command->arena, &list, profile->argv.items[i]);
	if (result < 0)
		fail_oom(err);
	return result < 0 ? NULL : (char *const *)(uintptr_t)list.items;
}
