/* The job object: see windows.h. */
#include "driver/windows/windows.h"

#define FLAGS (JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION)
#define BREAKAWAY (JOB_OBJECT_LIMIT_BREAKAWAY_OK | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK)
#define UI_LIMITS (JOB_OBJECT_UILIMIT_DESKTOP | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS | JOB_OBJECT_UILIMIT_EXITWINDOWS | \
	           JOB_OBJECT_UILIMIT_GLOBALATOMS | JOB_OBJECT_UILIMIT_HANDLES | JOB_OBJECT_UILIMIT_READCLIPBOARD | \
	           JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS | JOB_OBJECT_UILIMIT_WRITECLIPBOARD)

/* Memory is kept in whole pages, and read back so. */
static SIZE_T whole_pages(uint64_t bytes)
{
	SYSTEM_INFO info;
	GetSystemInfo(&info);
	uint64_t page = info.dwPageSize ? info.dwPageSize : 4096;
	return (SIZE_T)(bytes < page ? page : bytes - bytes % page);
}

static JOBOBJECT_EXTENDED_LIMIT_INFORMATION wanted_limits(const struct profile *profile)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };
	limits.BasicLimitInformation.LimitFlags = FLAGS;
	if (profile->limits.memory_bytes) {
		limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
		limits.JobMemoryLimit = whole_pages(profile->limits.memory_bytes);
	}
	uint64_t processes = profile->spawn ? profile->limits.processes : 1;
	if (processes) {
		limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
		limits.BasicLimitInformation.ActiveProcessLimit = (DWORD)processes;
	}
	return limits;
}

static uint32_t read_limits(HANDLE job, const JOBOBJECT_EXTENDED_LIMIT_INFORMATION *wanted,
                            const struct profile *profile)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };
	uint32_t held = 0;
	if (!QueryInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof(limits), NULL))
		return 0;
	DWORD flags = limits.BasicLimitInformation.LimitFlags;
	if ((flags & FLAGS) == FLAGS && !(flags & BREAKAWAY))
		held |= WALL_BIT(LIFETIME);
	if (flags & JOB_OBJECT_LIMIT_JOB_MEMORY && limits.JobMemoryLimit == wanted->JobMemoryLimit)
		held |= WALL_BIT(LIMIT_MEMORY);
	if (flags & JOB_OBJECT_LIMIT_ACTIVE_PROCESS &&
	    limits.BasicLimitInformation.ActiveProcessLimit == wanted->BasicLimitInformation.ActiveProcessLimit)
		held |= WALL_BIT(LIMIT_PROCESSES) | (profile->spawn ? 0 : WALL_BIT(SPAWN));
	return held;
}

/* 100 % is one processor; the system counts in hundredths of a percent of all. */
static uint32_t limit_cpu(HANDLE job, uint64_t percent)
{
	SYSTEM_INFO info;
	GetSystemInfo(&info);
	uint64_t rate = percent * 100 / (info.dwNumberOfProcessors ? info.dwNumberOfProcessors : 1);
	JOBOBJECT_CPU_RATE_CONTROL_INFORMATION control = {
		.ControlFlags = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
	};
	JOBOBJECT_CPU_RATE_CONTROL_INFORMATION now = { 0 };
	control.CpuRate = (DWORD)(rate < 1 ? 1 : rate > 10000 ? 10000 : rate);
	return SetInformationJobObject(job, JobObjectCpuRateControlInformation, &control, sizeof(control)) &&
	       QueryInformationJobObject(job, JobObjectCpuRateControlInformation, &now, sizeof(now), NULL) &&
	       now.ControlFlags == control.ControlFlags && now.CpuRate == control.CpuRate ? WALL_BIT(LIMIT_CPU) : 0;
}

int windows_job(const struct profile *profile, HANDLE *ret_job, uint32_t *ret_held, struct cordon_error *err)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = wanted_limits(profile);
	JOBOBJECT_BASIC_UI_RESTRICTIONS ui = { UI_LIMITS }, ui_now = { 0 };
	HANDLE job = CreateJobObjectW(NULL, NULL);
	if (!job)
		return windows_fail(err, CORDON_WALL_LIFETIME, GetLastError(), "a job object cannot be made");
	/* What fails shows when it is read. */
	(void)!SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof(limits));
	uint32_t held = read_limits(job, &limits, profile);
	if (SetInformationJobObject(job, JobObjectBasicUIRestrictions, &ui, sizeof(ui)) &&
	    QueryInformationJobObject(job, JobObjectBasicUIRestrictions, &ui_now, sizeof(ui_now), NULL) &&
	    ui_now.UIRestrictionsClass == UI_LIMITS)
		held |= WALL_BIT(IPC);
	if (profile->limits.cpu_percent)
		held |= limit_cpu(job, profile->limits.cpu_percent);
	*ret_job = job;
	*ret_held = held;
	return 0;
}

unsigned windows_job_count(HANDLE job)
{
	JOBOBJECT_BASIC_ACCOUNTING_INFORMATION now = { 0 };
	return QueryInformationJobObject(job, JobObjectBasicAccountingInformation, &now, sizeof(now), NULL)
	               ? now.ActiveProcesses : 0;
}

void windows_job_await(HANDLE job, unsigned ms)
{
	for (ULONGLONG begun = GetTickCount64(); windows_job_count(job) && GetTickCount64() - begun < ms;)
		Sleep(1);
}
