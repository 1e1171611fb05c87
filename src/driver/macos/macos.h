/* macOS: /usr/bin/sandbox-exec around a command, with the profile that profile/seatbelt.c writes. What the parts share.
 *
 * The program is executed by that path only, as root owns it. What it applies stays with every process that the command
 * starts. The tree of these is followed by looking (tree.c): a process that leaves its session and its parent between
 * two looks is lost. */
#pragma once
#include "driver/driver.h"

#include <sys/types.h>

#define SANDBOX_EXEC "/usr/bin/sandbox-exec"
#define TREE_MAX 8192

struct macos_process {
	pid_t pid;
	uint64_t started_us;            /* with the number, it is this process and no later one */
};

/* What a command has started, as far as was seen. */
struct macos_tree {
	struct macos_process *items;
	size_t count;
	pid_t session;                  /* of the command's first process, which leads it */
	uint64_t leader_us;             /* when that was started */
};

/* Once that process is there; it may not lead a session yet. */
void macos_tree_begin(struct macos_tree *tree, pid_t leader);

/* Adds the children of those that are known, and what is in their session; forgets what has ended. 0, or -1 when memory
 * is short. */
int macos_tree_look(struct macos_tree *tree);
/* Ends all of them, and what they start meanwhile; true when nothing is left that can be seen. */
bool macos_tree_kill(struct macos_tree *tree);
/* Memory that only they use. */
uint64_t macos_tree_memory(const struct macos_tree *tree);

struct macos_sandbox {
	struct sandbox sandbox;
	const char *const *arguments;   /* of sandbox-exec, but for the program; the arena of raise() */
	size_t count;
	struct macos_tree *tree;        /* of its command while that is followed; or NULL */
	int listener;                   /* the proxy's, until it is taken; or -1 */
	uint16_t port;                  /* of it; or 0 */
};
/* Between fork and exec; async-signal-safe. Writes errno where it fails. */
_Noreturn void macos_become(const struct command *command, const int theirs[3], char *const *argv, int report_fd);
/* sandbox-exec's own arguments, then the first candidate that can be executed, by its path, and the rest; or NULL. */
char *const *macos_arguments(const struct macos_sandbox *sandbox, const struct command *command,
                             struct cordon_error *err);
extern const struct driver driver_macos;
int macos_start(struct sandbox *sandbox, const struct command *command, struct running **ret_running,
                struct cordon_error *err) must_check;
