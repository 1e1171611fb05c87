/* What the lines that tests give to sh would do: commands with ";" or "&&" between them, in braces or not, words in
 * quotes, and of commands mkdir, touch, rm, rmdir, mv, cp, cat, chmod, echo and printf of one word into a file, cd,
 * true. The directory is that of the line. Anything else fails, git and ln among it. */
#include "shim.h"

#include <dirent.h>
#include <ftw.h>

#define WORDS_MAX 64
struct words {
	char text[WORDS_MAX][PATH_MAX];
	size_t count;
	char to[PATH_MAX]; /* ">": empty where there is none */
	bool appends;
};

static char here[PATH_MAX];

static const char *at(const char *path)
{
	static char whole[2][PATH_MAX];
	static unsigned next;
	char *room = whole[next++ % 2];
	snprintf(room, PATH_MAX, "%s%s%s", *path == '/' ? "" : here, *path == '/' || !*here ? "" : "/", path);
	return room;
}

static int make_directories(const char *path)
{
	char part[PATH_MAX];
	struct stat info;
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(part, 0755);
	}
	mkdir(part, 0755);
	return stat(part, &info) == 0 && S_ISDIR(info.st_mode) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)type, (void)walk;
	if (!S_ISDIR(info->st_mode))
		return unlink(path);
	return rmdir(path);
}

static int open_up(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)type, (void)walk;
	return chmod(path, S_ISDIR(info->st_mode) ? 0755 : 0644);
}

static int put(struct words *words)
{
	int fd = open(at(words->to), O_WRONLY | O_CREAT | (words->appends ? O_APPEND : O_TRUNC), 0644);
	bool line = !strcmp(words->text[0], "echo");
	if (fd < 0)
		return -1;
	for (size_t i = 1; i < words->count; i++) {
		for (char *at = words->text[i]; !line && (at = strstr(at, "\\n")); at++) {
			*at = '\n';
			memmove(at + 1, at + 2, strlen(at + 1));
		}
		write(fd, words->text[i], (unsigned)strlen(words->text[i]));
		if (line)
			write(fd, i + 1 < words->count ? " " : "\n", 1);
	}
	return close(fd);
}

static int do_one(const char *command, const char *option, const char *path)
{
	struct stat info;
	if (!strcmp(command, "mkdir"))
		return strchr(option, 'p') ? make_directories(at(path)) : mkdir(at(path), 0755);
	if (!strcmp(command, "touch")) {
		int fd = open(at(path), O_WRONLY | O_CREAT, 0644);
		return fd < 0 || futimens(fd, NULL) < 0 ? -1 : close(fd);
	}
	if (!strcmp(command, "rmdir"))
		return rmdir(at(path));
	if (!strcmp(command, "rm")) {
		if (strchr(option, 'r'))
			nftw(at(path), remove_one, 16, FTW_DEPTH | FTW_PHYS);
		else
			unlink(at(path));
		return lstat(at(path), &info) < 0 ? 0 : -1;
	}
	return -1;
}

static int do_command(struct words *words)
{
	const char *command = words->count ? words->text[0] : "";
	size_t first = words->count > 1 && words->text[1][0] == '-' ? 2 : 1;
	const char *option = first == 2 ? words->text[1] : "";
	if (!*command || !strcmp(command, "true") || !strcmp(command, ":"))
		return words->to[0] ? put(words) : 0;
	if (!strcmp(command, "echo") || !strcmp(command, "printf"))
		return words->to[0] ? put(words) : -1;
	if (!strcmp(command, "cd"))
		return words->count == 2 ? snprintf(here, sizeof(here), "%s", at(words->text[1])) < 0 : -1;
	if (!strcmp(command, "mv"))
		return words->count == first + 2 ? rename(at(words->text[first]), at(words->text[first + 1])) : -1;
	if (!strcmp(command, "chmod")) {
		int result = 0;
		for (size_t i = first + 1; i < words->count; i++)
			result |= strchr(option, 'R')
			                  ? nftw(at(words->text[i]), open_up, 16, FTW_DEPTH | FTW_PHYS)
			                  : chmod(at(words->text[i]), (unsigned)strtoul(words->text[first], NULL, 8));
		return result;
	}
	int result = 0;
	for (size_t i = first; i < words->count && !result; i++)
		result = do_one(command, option, words->text[i]);
	return words->count > first ? result : -1;
}

/* One word from `*line`, which is left behind it. */
static void take_word(const char **line, char *ret_word)
{
	size_t length = 0;
	char quote = 0;
	for (; **line && (quote || !strchr(" ;&\n>", **line)) && length < PATH_MAX - 1; (*line)++) {
		if (quote ? **line == quote : **line == '\'' || **line == '"')
			quote = quote ? 0 : **line;
		else
			ret_word[length++] = **line;
	}
	ret_word[length] = '\0';
}

int shell_run(const char *line)
{
	static struct words words;
	int result = 0;
	bool skipped = false;
	*here = '\0';
	for (;;) {
		memset(&words, 0, sizeof(words));
		while (*line && !strchr(";&\n", *line)) {
			line += strspn(line, " ");
			if (*line == '>') {
				words.appends = line[1] == '>';
				line += strspn(line, "> ");
				take_word(&line, words.to);
			} else if (*line && !strchr(";&\n", *line) && words.count < WORDS_MAX) {
				char *word = words.text[words.count];
				take_word(&line, word);
				words.count += strcmp(word, "{") && strcmp(word, "}");
			}
		}
		/* What follows "&&" is left out where the command before it failed. */
		if (!skipped && words.count + strlen(words.to))
			result = do_command(&words) ? 1 : 0;
		if (!*line)
			return result;
		skipped = line[0] == '&' && result;
		line += line[0] == '&' && line[1] == '&' ? 2 : 1;
	}
}
