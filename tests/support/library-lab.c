/* A process that stays and does what its input tells it, by the library. Each line of input is an
 * object whose "do" names one of actions[]; each is answered by a line of output, commands when they have ended (with
 * "name"), and what a command writes meanwhile is passed on as it comes ("name" and "said"). */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "walk.h"

#define RUNS_MAX 64
#define WORDS_MAX 512

static struct run {
	char *name;
	struct cordon_request *request;
	struct cordon_execution *execution;
} runs[RUNS_MAX];
static struct cordon *cordon;
static struct cordon_error err;
static enum cordon_answer answer = CORDON_DENIED;

static const char *text(json_t *from, const char *key)
{
	return json_string_value(json_object_get(from, key));
}

static void say(json_t *line)
{
	char *dumped = json_dumps(line, JSON_COMPACT);
	printf("%s\n", dumped);
	fflush(stdout);
	free(dumped);
	json_decref(line);
}

static void say_error(const char *name)
{
	char *dumped = cordon_error_json(&err);
	json_t *line = json_loads(dumped, 0, NULL);
	if (name)
		json_object_set_new(line, "name", json_string(name));
	free(dumped);
	say(line);
}

static void say_done(int result)
{
	if (result < 0)
		say_error(NULL);
	else
		say(json_pack("{s:b}", "done", 1));
}

static enum cordon_answer approve(void *arg, const struct cordon_card *card, char reason[256])
{
	(void)arg, (void)card;
	snprintf(reason, 256, "told to");
	return answer;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static void forget(struct run *run)
{
	cordon_execution_unref(run->execution);
	cordon_request_unref(run->request);
	free(run->name);
	*run = (struct run){ 0 };
}

static struct run *find_run(const char *name)
{
	for (size_t i = 0; i < RUNS_MAX; i++)
		if (name ? runs[i].name && !strcmp(runs[i].name, name) : !runs[i].name)
			return &runs[i];
	return NULL;
}

static void pass_on(void *arg, enum cordon_stream stream, const void *data, size_t length)
{
	const struct run *run = arg;
	if (stream == CORDON_STDOUT)
		say(json_pack("{s:s, s:s%}", "name", run->name, "said", data, length));
}

static int fill(struct cordon_request *request, json_t *told)
{
	json_t *settings = json_object_get(told, "settings"), *argv = json_object_get(told, "argv"), *setting, *word;
	const char *words[WORDS_MAX + 1] = { NULL };
	size_t i;
	json_array_foreach(settings, i, setting)
		if (cordon_request_set(request, json_string_value(json_array_get(setting, 0)),
		                       json_string_value(json_array_get(setting, 1)), &err) < 0)
			return -1;
	json_array_foreach(argv, i, word)
		words[i < WORDS_MAX ? i : WORDS_MAX] = i < WORDS_MAX ? json_string_value(word) : NULL;
	return argv ? cordon_request_command(request, words, &err) : 0;
}

static void do_run(json_t *told)
{
	struct run *run = find_run(NULL);
	run->name = strdup(text(told, "name"));
	if (cordon_request_new(&run->request, &err) < 0 || fill(run->request, told) < 0) {
		say_error(run->name);
		forget(run);
		return;
	}
	cordon_request_output(run->request, pass_on, run);
	if (cordon_execution_start(cordon, run->request, &run->execution, &err) < 0) {
		say_error(run->name);
		forget(run);
	}
}

static void end_run(struct run *run)
{
	struct cordon_result *result;
	if (cordon_execution_result(run->execution, &result, &err) < 0) {
		say_error(run->name);
	} else {
		char *dumped = cordon_result_json(result);
		json_t *line = json_loads(dumped, 0, NULL);
		json_object_set_new(line, "name", json_string(run->name));
		free(dumped);
		cordon_result_unref(result);
		say(line);
	}
	forget(run);
}

static void step_run(struct run *run)
{
	bool finished = false;
	if (cordon_execution_step(run->execution, &finished, &err) < 0) {
		say_error(run->name);
		forget(run);
	} else if (finished) {
		end_run(run);
	}
}

/* ---- what it can be told ----------------------------------------------------------------------------------------- */

static void do_open(json_t *told)
{
	const struct cordon_options options = { .data_dir = text(told, "data"), .config = text(told, "config") };
	int result = cordon_open(&options, &cordon, &err);
	if (result == 0)
		cordon_approver(cordon, approve, NULL);
	say_done(result);
}

static void do_close(json_t *told)
{
	(void)told;
	for (size_t i = 0; i < RUNS_MAX; i++)
		if (runs[i].name)
			forget(&runs[i]);
	cordon_unref(cordon);
	cordon = NULL;
	say_done(0);
}

static void do_session(json_t *told)
{
	struct cordon_request *settings = NULL;
	char *shown = NULL;
	int result = cordon_request_new(&settings, &err);
	if (result == 0)
		result = fill(settings, told);
	if (result == 0)
		result = cordon_session_new(cordon, text(told, "id"), settings, &shown, &err);
	say_done(result);
	free(shown);
	cordon_request_unref(settings);
}

static void do_end(json_t *told)
{
	say_done(cordon_session_end(cordon, text(told, "id"), false, &err));
}

static void do_pause(json_t *told)
{
	say_done(cordon_session_pause(cordon, text(told, "id"), "a test", &err));
}

static void do_resume(json_t *told)
{
	say_done(cordon_session_resume(cordon, text(told, "id"), &err));
}

static void do_signal(json_t *told)
{
	struct run *run = find_run(text(told, "name"));
	if (run)
		cordon_execution_signal(run->execution, (int)json_integer_value(json_object_get(told, "signal")));
	say_done(0);
}

/* Ends it as a caller does who has lost interest. */
static void do_forget(json_t *told)
{
	struct run *run = find_run(text(told, "name"));
	if (run)
		forget(run);
	say_done(0);
}

static void do_approve(json_t *told)
{
	static const char *const answers[CORDON_ANSWER_MAX] = { "", "once", "session", "denied" };
	for (int i = 0; i < CORDON_ANSWER_MAX; i++)
		if (!strcmp(answers[i], text(told, "answer")))
			answer = (enum cordon_answer)i;
	say_done(0);
}

static void do_descriptors(json_t *told)
{
	int count = 0;
	DIR *directory = opendir("/proc/self/fd");
	(void)told;
	while (directory && readdir(directory))
		count++;
	closedir(directory);
	say(json_pack("{s:i}", "count", count - 3));
}

static const struct {
	const char *name;
	void (*act)(json_t *told);
} actions[] = {
	{ "open", do_open },
	{ "close", do_close },
	{ "session", do_session },
	{ "run", do_run },
	{ "signal", do_signal },
	{ "forget", do_forget },
	{ "end", do_end },
	{ "pause", do_pause },
	{ "resume", do_resume },
	{ "approve", do_approve },
	{ "descriptors", do_descriptors },
};

static bool obey(void)
{
	static char *line;
	static size_t room;
	if (getline(&line, &room, stdin) <= 0)
		return false;
	json_t *told = json_loads(line, 0, NULL);
	for (size_t i = 0; told && i < ARRAY_SIZE(actions); i++)
		if (!strcmp(actions[i].name, text(told, "do")))
			actions[i].act(told);
	json_decref(told);
	return true;
}

int main(void)
{
	/* A line at a time is read, so that none lies in a buffer while a descriptor is waited for. */
	setvbuf(stdin, NULL, _IONBF, 0);
	for (bool open = true; open;) {
		struct pollfd ready[RUNS_MAX + 1] = { { .fd = STDIN_FILENO, .events = POLLIN } };
		for (size_t i = 0; i < RUNS_MAX; i++)
			ready[i + 1] =
				(struct pollfd){ .fd = runs[i].execution ? cordon_execution_fd(runs[i].execution) : -1,
				                 .events = POLLIN };
		if (poll(ready, RUNS_MAX + 1, -1) < 0)
			continue;
		for (size_t i = 0; i < RUNS_MAX; i++)
			if (ready[i + 1].revents)
				step_run(&runs[i]);
		if (ready[0].revents)
			open = obey();
	}
	if (cordon)
		do_close(NULL);
	return 0;
}
