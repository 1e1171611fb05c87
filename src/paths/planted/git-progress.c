/* Files of an operation of git that is in progress: see git-progress.h.
 *
 * Which files can run a program, or make git write elsewhere, was found with git 2.39, and in the sources of older and
 * newer ones:
 *
 *     git-rebase-todo         `exec` lines
 *     strategy, opts          git runs git-merge-STRATEGY; with a slash in it, that is a file in the working tree
 *     apply-opt               options for `git apply`; --build-fake-ancestor overwrites any file
 *     gpg_sign_opt            one option for `git am`
 *     BISECT_NAMES            older versions have a shell evaluate it in `git bisect visualize`
 *
 * Knowingly excluded: `done` and `git-rebase-todo.backup` (shown, never run), `strategy_opts` (options of a strategy
 * that git has itself), `author-script` (since 2.20 three values are read from it, and nothing is run), the patches,
 * messages, object names and reference names. */
#include "paths/planted/git-progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/git-syntax.h"
#include "paths/index/look.h"

#define UNREADABLE "belongs to an operation of git in progress, and cannot be read"
#define TOO_MUCH "belongs to an operation of git in progress, and is too much to be judged"

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

static size_t without_line_end(const char *text, size_t length)
{
	if (length && text[length - 1] == '\n')
		length--;
	if (length && text[length - 1] == '\r')
		length--;
	return length;
}

static bool is_one_of(const char *text, size_t length, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && !memcmp(text, words[i], length))
			return true;
	return false;
}

static bool is_strategy(const char *text, size_t length)
{
	static const char *const own[] = { "", "octopus", "ort", "ours", "recursive", "resolve", "subtree" };
	return is_one_of(text, length, own, ARRAY_SIZE(own));
}

#define STRATEGY "would run a program as a merge strategy when the operation is continued"

static const char *judge_strategy(const char *text, size_t length)
{
	return is_strategy(text, without_line_end(text, length)) ? NULL : STRATEGY;
}

/* Lines that begin with no letter are comments, whatever the comment character is, or mistakes. */
static const char *judge_todo(const char *text, size_t length)
{
	static const char *const harmless[] = {
		"pick", "p", "revert", "edit", "e", "reword", "r", "fixup", "f", "squash", "s", "break", "b",
		"label", "l", "reset", "t", "merge", "m", "noop", "drop", "d", "update-ref", "u",
	};
	const char *end = text + length;
	for (const char *at = text; at < end; at++) {
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		const char *word = at;
		while (at < end && *at && !strchr(" \t\r\n", *at))
			at++;
		bool is_word = at > word && ((*word >= 'a' && *word <= 'z') || (*word >= 'A' && *word <= 'Z'));
		if (is_word && !is_one_of(word, (size_t)(at - word), harmless, ARRAY_SIZE(harmless)))
			return "has a line that would run a program when the operation is continued";
		while (at < end && *at != '\n')
			at++;
	}
	return NULL;
}

static void judge_option(void *arg, const char *name, const struct git_setting *setting)
{
	static const char *const harmless[] = {
		"options.allow-empty", "options.allow-empty-message", "options.allow-ff", "options.allow-rerere-auto",
		"options.default-msg-cleanup", "options.drop-redundant-commits", "options.edit", "options.gpg-sign",
		"options.keep-redundant-commits", "options.mainline", "options.no-commit", "options.record-origin",
		"options.signoff", "options.skip-commit-summary", "options.strategy-option",
	};
	const char **reason = arg;
	const char *value = setting->value ? setting->value : "";
	if (!strcmp(name, "options.strategy")) {
		if (setting->cut || !is_strategy(value, strlen(value)))
			*reason = STRATEGY;
	} else if (!is_one_of(name, strlen(name), harmless, ARRAY_SIZE(harmless))) {
		*reason = "has an option that is not known to be harmless";
	}
}

static const char *judge_opts(const char *text, size_t length)
{
	const char *reason = NULL;
	if (!git_syntax_read(text, length, judge_option, &reason))
		reason = "has options that cannot be judged";
	return reason;
}

/* Words as git writes them: each in single quotes, with \' and \! between such. `judge` (or NULL) is asked for the
 * start of each word up to the end of its first quotes. */
static bool are_quoted(const char *text, size_t length, bool (*judge)(const char *word, size_t length))
{
	bool inside = false, begun = false;
	const char *start = text;
	for (size_t i = 0; i < length; i++) {
		char byte = text[i];
		if (byte == '\'') {
			if (inside && !begun && judge && !judge(start, (size_t)(text + i - start)))
				return false;
			begun |= inside;
			inside = !inside;
			start = text + i + 1;
		} else if (inside) {
			continue;
		} else if (byte == ' ') {
			begun = false;
		} else if (byte == '\\' && begun && i + 1 < length && (text[i + 1] == '\'' || text[i + 1] == '!')) {
			i++;
		} else {
			return false;
		}
	}
	return !inside;
}

static bool is_apply_option(const char *word, size_t length)
{
	static const char *const whole[] = { "--reject", "--ignore-space-change", "--ignore-whitespace" };
	static const char *const starts[] = { "--whitespace=", "--directory=", "--exclude=", "--include=", "-C", "-p" };
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (length > strlen(starts[i]) && !memcmp(word, starts[i], strlen(starts[i])))
			return true;
	return is_one_of(word, length, whole, ARRAY_SIZE(whole));
}

static const char *judge_apply_options(const char *text, size_t length)
{
	return are_quoted(text, without_line_end(text, length), is_apply_option)
		? NULL : "has an option that could overwrite a file when the operation is continued";
}

static const char *judge_names(const char *text, size_t length)
{
	bool harmless = are_quoted(text, without_line_end(text, length), NULL);
	return harmless ? NULL : "could run a program in `git bisect visualize`";
}

static const char *judge_sign_option(const char *text, size_t length)
{
	static const char *const none[] = { "", "--no-gpg-sign" };
	length = without_line_end(text, length);
	bool harmless = is_one_of(text, length, none, ARRAY_SIZE(none)) || (length >= 2 && !memcmp(text, "-S", 2));
	return harmless ? NULL : "has an option that is not known to be harmless";
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

/* By directory. */
static const struct row {
	const char *directory, *name;   /* the name with the directory */
	const char *(*judge)(const char *text, size_t length);
} rows[] = {
	{ "", "BISECT_NAMES", judge_names },
	{ "rebase-apply", "rebase-apply/apply-opt", judge_apply_options },
	{ "rebase-apply", "rebase-apply/gpg_sign_opt", judge_sign_option },
	{ "rebase-apply", "rebase-apply/strategy", judge_strategy },
	{ "rebase-merge", "rebase-merge/git-rebase-todo", judge_todo },
	{ "rebase-merge", "rebase-merge/gpg_sign_opt", judge_sign_option },
	{ "rebase-merge", "rebase-merge/strategy", judge_strategy },
	{ "sequencer", "sequencer/opts", judge_opts },
	{ "sequencer", "sequencer/todo", judge_todo },
};

const char *git_progress_reason(const char *name, const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].name, name))
			return memchr(text, '\0', length) ? "cannot be judged, since it has a NUL in it"
							  : rows[i].judge(text, length);
	return NULL;
}

/* The length, which is one more than the bound where there is more; or -1. */
static ssize_t read_file(int fd, char *buffer)
{
	size_t length = 0;
	for (ssize_t got; length <= GIT_PROGRESS_SIZE_MAX; length += (size_t)got) {
		got = read(fd, buffer + length, GIT_PROGRESS_SIZE_MAX + 1 - length);
		if (got < 0)
			return -1;
		if (!got)
			break;
	}
	return (ssize_t)length;
}

struct search {
	uint64_t deadline_us;
	char *buffer;                   /* for the text of a file; NULL at first */
	git_progress_fn *take;
	void *arg;
};

/* A symbolic link, and what is no regular file, cannot be read: git would follow the one, and wait for the other. */
static int judge_file(struct search *search, int directory_fd, const struct row *row)
{
	const char *slash = strrchr(row->name, '/'), *leaf = slash ? slash + 1 : row->name, *reason = UNREADABLE;
	struct names_stat stat, opened;
	if (!names_stat(directory_fd, leaf, &stat)) {
		if (errno == ENOENT)
			return 0;
		stat = (struct names_stat){ 0 };
	}
	if (S_ISDIR(stat.mode))
		return 0;
	if (names_now_us() > search->deadline_us)
		return search->take(search->arg, row->name, &stat, TOO_MUCH);
	auto_close int fd = S_ISREG(stat.mode) ? names_open(directory_fd, leaf, O_RDONLY | O_NONBLOCK) : -1;
	if (fd >= 0 && names_stat(fd, "", &opened) && S_ISREG(opened.mode)) {
		if (!search->buffer && !(search->buffer = malloc(GIT_PROGRESS_SIZE_MAX + 1)))
			return -1;
		ssize_t length = read_file(fd, search->buffer);
		if (length > GIT_PROGRESS_SIZE_MAX)
			reason = TOO_MUCH;
		else if (length >= 0)
			reason = git_progress_reason(row->name, search->buffer, (size_t)length);
		stat = opened;
	}
	return reason ? search->take(search->arg, row->name, &stat, reason) : 0;
}

int git_progress_judge(int git_dir_fd, uint64_t deadline_us, git_progress_fn *take, void *arg)
{
	struct search search = { .deadline_us = deadline_us, .take = take, .arg = arg };
	auto_close int fd = -1;
	const char *opened = NULL;
	int status = 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows) && status == 0; i++) {
		if (!opened || strcmp(opened, rows[i].directory)) {
			cleanup_close(&fd);
			fd = names_open(git_dir_fd, rows[i].directory, O_PATH | O_DIRECTORY);
			opened = rows[i].directory;
		}
		/* A directory that is a link is judged as a link in a git directory. */
		if (fd >= 0)
			status = judge_file(&search, fd, &rows[i]);
	}
	free(search.buffer);
	return status;
}
