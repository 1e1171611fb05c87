/* The processes of a command, by libproc: see macos.h. */
#include "driver/macos/macos.h"

#include <libproc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/proc.h>
#include <sys/resource.h>

#include "base/cleanup.h"

static bool started_us(pid_t pid, uint64_t *ret_us)
{
	struct proc_bsdinfo info;
	if (proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &info, sizeof(info)) != (int)sizeof(info) ||
	    info.pbi_status == SZOMB)
		return false;
	*ret_us = info.pbi_start_tvsec * 1000000 + info.pbi_start_tvusec;
	return true;
}

static bool is_there(const struct macos_process *process)
{
	uint64_t now;
	return started_us(process->pid, &now) && now == process->started_us;
}

void macos_tree_begin(struct macos_tree *tree, pid_t leader)
{
	tree->session = leader;
	tree->leader_us = 0;
	started_us(leader, &tree->leader_us);
}

/* A number is given anew only when no process and no session has it: if another process has it by now, nothing of this
 * session is left. */
static bool session_is_ours(const struct macos_tree *tree)
{
	uint64_t started;
	return tree->session > 1 && (!started_us(tree->session, &started) || started == tree->leader_us);
}

static int add(struct macos_tree *tree, pid_t pid)
{
	uint64_t started;
	for (size_t i = 0; i < tree->count; i++)
		if (tree->items[i].pid == pid)
			return 0;
	if (pid <= 1 || pid == getpid() || tree->count == TREE_MAX || !started_us(pid, &started))
		return 0;
	struct macos_process *grown = reallocarray(tree->items, tree->count + 1, sizeof(*grown));
	if (!grown)
		return -1;
	tree->items = grown;
	tree->items[tree->count++] = (struct macos_process){ pid, started };
	return 0;
}

static void forget_ended(struct macos_tree *tree)
{
	size_t kept = 0;
	for (size_t i = 0; i < tree->count; i++)
		if (is_there(&tree->items[i]))
			tree->items[kept++] = tree->items[i];
	tree->count = kept;
}

int macos_tree_look(struct macos_tree *tree)
{
	auto_free pid_t *pids = malloc(TREE_MAX * sizeof(*pids));
	bool ours = session_is_ours(tree);
	if (!pids || (ours && add(tree, tree->session) < 0))
		return -1;
	/* What is in its session, whoever its parent is by now. */
	int count = ours ? proc_listallpids(pids, (int)(TREE_MAX * sizeof(*pids))) : 0;
	for (int i = 0; i < count; i++)
		if (getsid(pids[i]) == tree->session && add(tree, pids[i]) < 0)
			return -1;
	/* And children of what is known, which grows meanwhile. */
	for (size_t i = 0; i < tree->count; i++) {
		count = proc_listchildpids(tree->items[i].pid, pids, (int)(TREE_MAX * sizeof(*pids)));
		for (int child = 0; child < count; child++)
			if (add(tree, pids[child]) < 0)
				return -1;
	}
	forget_ended(tree);
	return 0;
}

bool macos_tree_kill(struct macos_tree *tree)
{
	if (session_is_ours(tree))
		kill(-tree->session, SIGKILL);
	/* Stopped first, so that none starts another while the next is looked at. */
	for (int turn = 0; turn < 8; turn++) {
		if (macos_tree_look(tree) < 0)
			return false;
		if (!tree->count)
			return true;
		for (size_t i = 0; i < tree->count; i++)
			if (is_there(&tree->items[i]))
				kill(tree->items[i].pid, SIGSTOP);
		if (macos_tree_look(tree) < 0)
			return false;
		for (size_t i = 0; i < tree->count; i++)
			if (is_there(&tree->items[i]))
				kill(tree->items[i].pid, SIGKILL);
	}
	return false;
}

uint64_t macos_tree_memory(const struct macos_tree *tree)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < tree->count; i++) {
		struct rusage_info_v2 info;
		if (proc_pid_rusage(tree->items[i].pid, RUSAGE_INFO_V2, (rusage_info_t *)(void *)&info) == 0)
			sum += info.ri_phys_footprint;
	}
	return sum;
}
