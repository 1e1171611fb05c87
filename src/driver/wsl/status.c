/* What of the distro reads back: see wsl.h. */
#include "driver/wsl/wsl.h"

#include <jansson.h>
#include <string.h>

#include "driver/wsl/inside.h"

#define DOCTOR_MS 120000

struct looking {
	struct arena *arena;
	const struct wsl_record *record;
	struct wsl_status *status;
};

static void note(struct looking *looking, const char *name, bool holds, const char *found)
{
	struct wsl_status *status = looking->status;
	if (status->count < WSL_CHECKS_MAX)
		status->checks[status->count++] =
			(struct wsl_check){ name, found ? found : "memory is short", holds && found };
	status->holds &= holds && found;
}

/* The output of a program in the distro; NULL, and noted, where it fails. */
static const char *ask(struct looking *looking, const char *name, const char *user, const char *const *words)
{
	struct wsl_answer answer;
	struct cordon_error err = { 0 };
	if (wsl_inside(looking->arena, user, words, NULL, &answer, &err) < 0) {
		note(looking, name, false, arena_strdup(looking->arena, err.reason));
		return NULL;
	}
	if (answer.status != 0) {
		note(looking, name, false, arena_printf(looking->arena, "%s ended with %d", words[0], answer.status));
		return NULL;
	}
	return answer.out;
}

static void look_at_settings(struct looking *looking)
{
	const char *text = ask(looking, "settings", "root", (const char *[]){ "/bin/cat", "/etc/wsl.conf", NULL });
	if (text)
		note(looking, "settings", !strcmp(text, wsl_settings),
		     strcmp(text, wsl_settings)
		             ? "/etc/wsl.conf is not as cordon wrote it"
		             : "no drives, no programs of Windows: /etc/wsl.conf is as it was written");
}

static void look_at_scripts(struct looking *looking)
{
	const char *up = ask(looking, "scripts", "root",
	                     (const char *[]){ "/bin/cat", "/opt/cordon/up", "/opt/cordon/down", NULL });
	size_t length = strlen(wsl_up);
	bool same = up && !strncmp(up, wsl_up, length) && !strcmp(up + length, wsl_down);
	if (up)
		note(looking, "scripts", same, same ? "as cordon wrote them" : "/opt/cordon is not as cordon wrote it");
}

static void look_at_user(struct looking *looking)
{
	char wanted[16];
	const char *text = ask(looking, "user", NULL, (const char *[]){ "/usr/bin/id", "-u", NULL });
	snprintf(wanted, sizeof(wanted), "%d\n", WSL_UID);
	if (text)
		note(looking, "user", !strcmp(text, wanted),
		     arena_printf(looking->arena, "commands belong to the user %.*s", (int)strcspn(text, "\n"), text));
}

static void look_at_drives(struct looking *looking)
{
	const char *text = ask(looking, "drives", "root", (const char *[]){ "/bin/cat", "/proc/self/mounts", NULL });
	const char *foreign = text ? wsl_foreign_mount(looking->arena, text) : NULL;
	if (text)
		note(looking, "drives", !foreign && strstr(text, " / "),
		     foreign ? arena_printf(looking->arena, "Windows is mounted at %s", foreign)
		             : "no drive of Windows is mounted");
}

/* Where programs of Windows may be started, a process is told by this variable whom to ask. */
static void look_at_interop(struct looking *looking)
{
	const char *text = ask(looking, "interop", NULL, (const char *[]){ "/usr/bin/env", NULL });
	if (!text)
		return;
	bool told = !strncmp(text, "WSL_INTEROP=", 12) || strstr(text, "\nWSL_INTEROP="),
	     path = strstr(text, "PATH=") != NULL;
	note(looking, "interop", !told && path,
	     told ? "programs of Windows can be started" : path ? "programs of Windows cannot be started" :
	                                                          "the environment cannot be read");
}

static void look_at_program(struct looking *looking)
{
	struct wsl_answer answer;
	struct cordon_error err = { 0 };
	const struct wsl_call call = { .hash = true };
	bool read = wsl_inside(looking->arena, "root", (const char *[]){ "/bin/cat", WSL_PROGRAM, NULL }, &call,
	                       &answer, &err) == 0 &&
	            answer.status == 0;
	bool same = read && !strcmp(answer.sum, looking->record->program);
	note(looking, "program", same,
	     same   ? "cordon for Linux, as it was put there"
	     : read ? WSL_PROGRAM " is another file"
	            : WSL_PROGRAM " cannot be read");
}

static void take_walls(struct looking *looking, const json_t *driver)
{
	size_t i;
	json_t *row;
	json_array_foreach(json_object_get(driver, "walls"), i, row) {
		const char *name = json_string_value(json_object_get(row, "wall"));
		const char *mechanism = json_string_value(json_object_get(row, "mechanism"));
		for (int wall = 0; name && mechanism && wall < CORDON_WALL_MAX; wall++)
			if (!strcmp(name, cordon_wall_name(wall)) && json_is_true(json_object_get(row, "holds")))
				looking->status->mechanisms[wall] = arena_printf(looking->arena, "WSL: %s", mechanism);
	}
}

/* cordon's own doctor, in the distro, as the user that commands belong to. */
static void look_at_walls(struct looking *looking)
{
	struct wsl_answer answer;
	struct cordon_error err = { 0 };
	const struct wsl_call call = { .timeout_ms = DOCTOR_MS };
	size_t i;
	json_t *driver;
	if (wsl_inside(looking->arena, NULL, (const char *[]){ WSL_PROGRAM, "doctor", "--json", NULL }, &call, &answer,
	               &err) < 0) {
		note(looking, "walls", false, arena_strdup(looking->arena, err.reason));
		return;
	}
	json_t *all = json_loadb(answer.out, answer.length, 0, NULL);
	const char *wanted = json_string_value(json_object_get(all, "default_driver"));
	bool works = false;
	json_array_foreach(json_object_get(all, "drivers"), i, driver) {
		const char *name = json_string_value(json_object_get(driver, "name"));
		if (!wanted || !name || strcmp(wanted, name) != 0)
			continue;
		works = json_is_true(json_object_get(driver, "works"));
		take_walls(looking, driver);
	}
	note(looking, "walls", works && json_is_true(json_object_get(all, "holds")) && answer.status == 0,
	     works ? "cordon's doctor raised them in the distro" : "cordon raises no walls in the distro");
	json_decref(all);
}

int wsl_status(struct arena *arena, const char *data_dir, struct wsl_status *ret_status, struct cordon_error *err)
{
	struct wsl_status status = { .holds = true };
	struct wsl_record record = { .id = "" };
	struct looking looking = { arena, &record, &status };
	struct cordon_error untold = { 0 };
	unsigned version;
	if (wsl_list(arena, &status.registered, &version, err) < 0)
		return -1;
	note(&looking, "distro", status.registered,
	     status.registered ? WSL_DISTRO " is registered" : "it is not set up");
	if (status.registered) {
		note(&looking, "version", version == 2, version == 2 ? "WSL 2" : "it does not run under WSL 2");
		bool ours = wsl_record_read(data_dir, &record) && wsl_is_ours(arena, &record, &untold);
		note(&looking, "mark", ours, ours ? "cordon's own" : "it has no mark of cordon's");
	}
	/* Nothing is executed in what is another's. */
	if (status.holds) {
		look_at_settings(&looking);
		look_at_scripts(&looking);
		look_at_user(&looking);
		look_at_drives(&looking);
		look_at_interop(&looking);
		look_at_program(&looking);
	}
	if (status.holds)
		look_at_walls(&looking);
	*ret_status = status;
	return 0;
}
