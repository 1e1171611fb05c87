/* What became of a command's limits, as part of step 5: remarks about those that it met, and the pause of a session
 * that ran out of memory. The driver holds them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/text.h"
#include "run/complaint.h"
#include "session/session-row.h"
#include "walk.h"

/* Of disk space, what is too little to be given out. */
#define SPENT_BYTES (UINT64_C(64) << 10)

static const char seems[] = "it probably hit the limit of ";

static int tell_refused(struct execution *execution, uint64_t refusals)
{
	char note[128], grant[64];
	uint64_t most = execution->verdict.profile.limits.processes;
	snprintf(note, sizeof(note), "%" PRIu64 " more could not be started beside %" PRIu64, refusals, most);
	snprintf(grant, sizeof(grant), "--processes, more than %" PRIu64, most);
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_PROCESSES, "processes", note,
	                   grant);
}

static int pause_record(struct arena *arena, struct session_record *record, void *arg, struct cordon_error *err)
{
	(void)arena;
	if (record->state != SESSION_ACTIVE)
		return 1;
	record->state = SESSION_PAUSED;
	record->why = "oom";
	return session_row_write(((struct cordon *)arg)->ledger, "paused", record, false, err);
}

int limits_pause(struct execution *execution, struct cordon_error *err)
{
	struct session_record record;
	if (!execution->run.outcome.oom_kills || execution->verdict.session.one_off)
		return 0;
	sandboxes_retire(execution->cordon->sandboxes, &execution->run.place);
	return registry_change(&execution->arena, execution->cordon->data_dir, execution->verdict.session.id,
	                       pause_record, execution->cordon, &record, err);
}

/* It ended before that was found out. */
static int tell_disk_full(struct execution *execution)
{
	char note[128], grant[64], used[TEXT_AMOUNT_SIZE], most[TEXT_AMOUNT_SIZE];
	const struct outcome *outcome = &execution->run.outcome;
	text_format_size(outcome->disk_used, used);
	text_format_size(execution->verdict.profile.limits.disk_bytes, most);
	snprintf(note, sizeof(note), "%s %s when it ended; %s are allowed",
	         outcome->disk_growth ? "it had added" : "it held", used, most);
	snprintf(grant, sizeof(grant), "--disk, more than %s", most);
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_DISK,
	                   execution->verdict.session.workspace.path, note, grant);
}

/* Has the workspace's filesystem room for more? Then it was not that which was full. */
static bool has_room(const struct execution *execution)
{
	struct statvfs info;
	return fstatvfs(execution->verdict.session.workspace_fd, &info) == 0 &&
	       (uint64_t)info.f_bavail * info.f_frsize > SPENT_BYTES;
}

/* A process could not be started: either none may be, or too many run. */
static int tell_no_process(struct execution *execution)
{
	const struct profile *profile = &execution->verdict.profile;
	char note[128];
	if (!profile->spawn)
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_SPAWN, "processes",
		                   "it probably tried to start a process, which was not granted", "--spawn");
	if (!(profile->walls & ~execution->run.outcome.grouped & WALL_BIT(LIMIT_PROCESSES)) ||
	    !strcmp(execution->run.isolation[CORDON_WALL_LIMIT_PROCESSES], "none"))
		return 0;
	snprintf(note, sizeof(note), "%s%" PRIu64, seems, profile->limits.processes);
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_PROCESSES, "processes", note,
	                   "--processes N");
}

/* Files in memory lie in /tmp and, of a one-off, in its home; the output names what could not be written. */
static int tell_space(struct execution *execution, const struct captured *said)
{
	const char *home = execution->verdict.profile.home;
	char note[128], amount[TEXT_AMOUNT_SIZE];
	const uint64_t most = execution->verdict.profile.limits.tmp_bytes;
	if (!most || !has_room(execution))
		return 0;
	bool is_home = !execution->verdict.session.home_source && home &&
	               strcmp(home, execution->verdict.session.workspace.path) != 0 &&
	               memmem(said->data, said->length, home, strlen(home));
	text_format_size(most, amount);
	snprintf(note, sizeof(note), "%s%s for files that lie in memory%s", seems, amount,
	         is_home ? ", as a one-off's home does" : "");
	return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_DISK, is_home ? home : "/tmp",
	                   note, "--tmp SIZE");
}

/* A limit that ends nothing, but makes calls fail, is named where a command failed and said so. */
static int tell_complaint(struct execution *execution)
{
	const struct profile *profile = &execution->verdict.profile;
	const struct limits *limits = &profile->limits;
	const struct cordon_request *request = execution->request;
	const struct captured *said =
		&execution->run.outcome.streams[request->tty || request->one_stream ? CORDON_STDOUT : CORDON_STDERR];
	char note[128], amount[TEXT_AMOUNT_SIZE];
	if (!run_failed(execution) || execution->run.outcome.limit_hit.name)
		return 0;
	switch (complaint_find(said->data, said->length)) {
	case COMPLAINT_PROCESSES:
		return tell_no_process(execution);
	case COMPLAINT_FILES:
		if (!(profile->walls & WALL_BIT(LIMIT_FILES)))
			return 0;
		snprintf(note, sizeof(note), "%s%" PRIu64 " for each process", seems, limits->open_files);
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_FILES, "open files", note,
		                   "--open-files N");
	case COMPLAINT_SPACE:
		return tell_space(execution, said);
	case COMPLAINT_MEMORY:
		/* What is only watched has not been seen of a command that ended soon; the kernel counts its largest
		 * process. */
		if (!limits->memory_bytes || (execution->run.outcome.memory_peak_bytes < limits->memory_bytes / 2 &&
		                              execution->run.outcome.max_rss_kb < limits->memory_bytes / 2 / 1024))
			return 0;
		text_format_size(limits->memory_bytes, amount);
		snprintf(note, sizeof(note), "%s%s", seems, amount);
		return denials_add(&execution->denials, &execution->arena, CORDON_WALL_LIMIT_MEMORY, "memory", note,
		                   "--memory SIZE");
	default:
		return 0;
	}
}

int limits_end(struct execution *execution, struct cordon_error *err)
{
	const struct outcome *outcome = &execution->run.outcome;
	if (outcome->process_refusals && tell_refused(execution, outcome->process_refusals) < 0)
		return fail_oom(err);
	if (outcome->disk_passed && tell_disk_full(execution) < 0)
		return fail_oom(err);
	if (!denials_have(&execution->denials, 0, CORDON_WALL_LIMIT_MEMORY, CORDON_WALL_LIMIT_FILES) &&
	    tell_complaint(execution) < 0)
		return fail_oom(err);
	return 0;
}
