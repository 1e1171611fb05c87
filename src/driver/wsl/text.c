/* Texts that go to the distro and come from it: see wsl.h. Pure. */
#include "driver/wsl/wsl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

const char wsl_settings[] =
	"# Written by cordon, and compared before each command.\n"
	"[automount]\n"
	"enabled=false\n"
	"mountFsTab=false\n"
	"[interop]\n"
	"enabled=false\n"
	"appendWindowsPath=false\n"
	"[user]\n"
	"default=" WSL_USER "\n"
	"[boot]\n"
	"systemd=false\n";

/* The input is the directory of Windows. What is in /run is in memory, and no part of what a command sees. */
const char wsl_up[] =
	"set -eu\n"
	"umask 022\n"
	"IFS= read -r source\n"
	"mkdir -p \"/workspace/$1\" \"/run/cordon/$1\"\n"
	"chown 64817:64817 \"/run/cordon/$1\"\n"
	"chmod 0700 \"/run/cordon/$1\"\n"
	"mount -t drvfs -o \"nosuid,nodev,uid=64817,gid=64817,umask=077\" \"$source\" \"/workspace/$1\"\n";

const char wsl_down[] =
	"set -u\n"
	"pid=\n"
	"[ ! -f \"/run/cordon/$1/pid\" ] || IFS= read -r pid < \"/run/cordon/$1/pid\"\n"
	"case \"$pid\" in ''|*[!0-9]*) ;; *) kill -KILL \"$pid\" 2>/dev/null ;; esac\n"
	"rm -rf \"/run/cordon/$1\"\n"
	"tries=0\n"
	"while grep -q \" /workspace/$1 \" /proc/self/mounts; do\n"
	"  umount \"/workspace/$1\" 2>/dev/null && continue\n"
	"  tries=$((tries + 1))\n"
	"  [ $tries -lt 50 ] || exit 1\n"
	"  sleep 0.1\n"
	"done\n"
	"[ ! -d \"/workspace/$1\" ] || rmdir \"/workspace/$1\"\n";

/* ---- what wsl.exe prints ----------------------------------------------------------------------------------------- */

static size_t put_character(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static uint32_t unit_at(const char *bytes, size_t at)
{
	return (uint32_t)(unsigned char)bytes[at] | (uint32_t)(unsigned char)bytes[at + 1] << 8;
}

char *wsl_decode(struct arena *arena, const char *bytes, size_t length)
{
	/* Text has no NUL in UTF-8, and a line's end has one in UTF-16. */
	if (!length || !memchr(bytes, '\0', length))
		return arena_strndup(arena, bytes, length);
	char *text = arena_alloc(arena, length / 2 * 3 + 1);
	size_t to = 0;
	for (size_t at = 0; text && at + 2 <= length; at += 2) {
		uint32_t c = unit_at(bytes, at);
		uint32_t low = at + 4 <= length ? unit_at(bytes, at + 2) : 0;
		if (c >= 0xd800 && c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			at += 2;
		} else if (c >= 0xd800 && c < 0xe000) {
			c = 0xfffd;
		}
		if (c && c != 0xfeff)
			to += put_character(text + to, c);
	}
	return text;
}

/* "* NAME  Running  2", under a heading in the user's language. */
bool wsl_listed(const char *listing, unsigned *ret_version)
{
	for (const char *line = listing; *line;) {
		size_t length = strcspn(line, "\r\n");
		const char *at = line + strspn(line, " *\t");
		size_t name = strcspn(at, " \t\r\n"), last = length;
		if (name == strlen(WSL_DISTRO) && !strncasecmp(at, WSL_DISTRO, name)) {
			while (last && strchr(" \t", line[last - 1]))
				last--;
			bool number = last > 1 && line[last - 1] >= '1' && line[last - 1] <= '9' &&
			              strchr(" \t", line[last - 2]);
			*ret_version = number ? (unsigned)(line[last - 1] - '0') : 0;
			return true;
		}
		line += length;
		line += strspn(line, "\r\n");
	}
	return false;
}

/* ---- the user ---------------------------------------------------------------------------------------------------- */

const char *wsl_add_user(struct arena *arena, const char *passwd, const char **ret_why)
{
	size_t length = strlen(passwd);
	for (const char *line = passwd; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char name[64], word[8];
		unsigned long uid = 0;
		int fields = sscanf(line, "%63[^:\n]:%7[^:\n]:%lu:", name, word, &uid);
		if (fields >= 1 && !strcmp(name, WSL_USER)) {
			*ret_why = "the archive has a user " WSL_USER " already";
			return NULL;
		}
		if (fields == 3 && uid == WSL_UID) {
			*ret_why = "the archive has a user of cordon's number already";
			return NULL;
		}
	}
	*ret_why = "memory is short";
	return arena_printf(arena, "%s%s" WSL_USER ":x:%d:%d::/home/" WSL_USER ":/bin/sh\n", passwd,
	                    length && passwd[length - 1] != '\n' ? "\n" : "", WSL_UID, WSL_UID);
}

/* ---- mounts ------------------------------------------------------------------------------------------------------ */

struct mount_line {
	const char *source, *target, *type, *options;
};

/* A field of /proc/self/mounts, whose blanks and backslashes are written as \ooo; NULL when memory is short. */
static const char *take_field(struct arena *arena, const char **line)
{
	size_t length = strcspn(*line, " \n"), to = 0;
	char *field = arena_strndup(arena, *line, length);
	for (size_t i = 0; field && i < length; i++) {
		const char *at = *line + i;
		bool escape = *at == '\\' && strspn(at + 1, "01234567") >= 3;
		field[to++] = escape ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')) : *at;
		i += escape ? 3 : 0;
	}
	if (field)
		field[to] = '\0';
	*line += length;
	*line += **line == ' ';
	return field;
}

/* The next line; false at the end. Where memory is short, a field is NULL. */
static bool take_mount(struct arena *arena, const char **mounts, struct mount_line *ret_line)
{
	if (!**mounts)
		return false;
	ret_line->source = take_field(arena, mounts);
	ret_line->target = take_field(arena, mounts);
	ret_line->type = take_field(arena, mounts);
	ret_line->options = take_field(arena, mounts);
	*mounts += strcspn(*mounts, "\n");
	*mounts += **mounts == '\n';
	return true;
}

static bool is_of_windows(const struct mount_line *line)
{
	return !strcmp(line->type, "drvfs") || !strcmp(line->type, "virtiofs") ||
	       (!strcmp(line->type, "9p") && strstr(line->options, "aname=drvfs"));
}

const char *wsl_foreign_mount(struct arena *arena, const char *mounts)
{
	struct mount_line line;
	while (take_mount(arena, &mounts, &line)) {
		if (!line.source || !line.target || !line.type || !line.options)
			return "(memory is short)";
		if (is_of_windows(&line) && strncmp(line.target, "/workspace/", 11) != 0)
			return line.target;
	}
	return NULL;
}

/* Windows compares without case, and a separator at the end means nothing. */
static bool same_directory(const char *found, size_t length, const char *native)
{
	size_t wanted = strlen(native);
	while (length > 3 && strchr("\\/", found[length - 1]))
		length--;
	while (wanted > 3 && strchr("\\/", native[wanted - 1]))
		wanted--;
	return length == wanted && !strncasecmp(found, native, length);
}

bool wsl_is_mounted(struct arena *arena, const char *mounts, const char *id, const char *native)
{
	struct mount_line line;
	unsigned count = 0;
	bool right = false;
	while (take_mount(arena, &mounts, &line)) {
		if (!line.source || !line.target || !line.type || !line.options)
			return false;
		if (strncmp(line.target, "/workspace/", 11) != 0 || strcmp(line.target + 11, id) != 0)
			continue;
		const char *path = strstr(line.options, "path=");
		count++;
		right = !strcmp(line.type, "drvfs")
		                ? same_directory(line.source, strlen(line.source), native) :
		                  !strcmp(line.type, "9p") && strstr(line.options, "aname=drvfs") && path &&
		                          same_directory(path + 5, strcspn(path + 5, ";,"), native);
	}
	return count == 1 && right;
}

const char *wsl_source_refused(const char *native)
{
	if (strpbrk(native, ",;"))
		return "a comma or semicolon in the path would end it where the distro mounts the directory";
	return text_has_control(native) ? "the path has a control character in it" : NULL;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

const char *wsl_profile_refused(const struct profile *profile, enum cordon_wall *ret_wall)
{
	*ret_wall = CORDON_WALL_FILESYSTEM;
	for (size_t i = 0; i < profile->mounts.count; i++) {
		const struct mount_op *op = &profile->mounts.ops[i];
		if (op->flags & MOUNT_GRANTED && strcmp(op->source, profile->workspace) != 0)
			return "one directory comes into the distro, the workspace; further grants of paths do not";
		if (op->flags & MOUNT_GRANTED && op->flags & MOUNT_READ_ONLY)
			return "the workspace comes into the distro writable";
	}
	if (profile->programs.count)
		return "programs are files of Windows here, and of Linux in the distro: leave out the list of them";
	*ret_wall = CORDON_WALL_NETWORK;
	if (profile->network == NETWORK_HOSTS)
		return "which hosts were reached would be recorded in the distro, and not here: choose --net none or "
		       "all";
	*ret_wall = CORDON_WALL_SOCKETS;
	if (profile->sockets.count)
		return "a socket of Windows is none in the distro";
	*ret_wall = CORDON_WALL_TERMINAL;
	return profile->tty ? "this driver gives a command no terminal" : NULL;
}

struct text {
	struct arena *arena;
	char *text;
};

/* Appends; once memory was short, nothing. */
static void add(struct text *text, const char *more)
{
	if (text->text)
		text->text = arena_printf(text->arena, "%s%s", text->text, more);
}

/* In single quotes, as one word of sh. */
static void add_word(struct text *text, const char *word)
{
	char *quoted = arena_alloc(text->arena, 4 * strlen(word) + 4), *to = quoted;
	if (!quoted) {
		text->text = NULL;
		return;
	}
	*to++ = ' ';
	*to++ = '\'';
	for (; *word; word++)
		to = *word == '\'' ? stpcpy(to, "'\\''") : (*to = *word, to + 1);
	strcpy(to, "'");
	add(text, quoted);
}

static void add_number(struct text *text, const char *option, uint64_t number, const char *unit)
{
	if (number)
		add(text, arena_printf(text->arena, " --%s '%llu%s'", option, (unsigned long long)number, unit));
}

/* What cordon itself says inside, or what means a directory or program of Windows. */
static bool is_left_out(const char *variable)
{
	static const char *const names[] = {
		"ALLUSERSPROFILE", "APPDATA", "COMSPEC", "HOME", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "LOGNAME",
		"OS", "PATH", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "PWD", "SHELL", "SYSTEMDRIVE", "SYSTEMROOT",
		"TEMP", "TMP", "TMPDIR", "USER", "USERNAME", "USERPROFILE", "WINDIR",
	};
	size_t length = strcspn(variable, "=");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (length == strlen(names[i]) && !strncasecmp(variable, names[i], length))
			return true;
	return !strncasecmp(variable, "CORDON_", 7) || !strncasecmp(variable, "WSL", 3);
}

static void add_grants(struct text *text, const struct profile *profile)
{
	const struct limits *limits = &profile->limits;
	add(text, profile->network == NETWORK_ALL ? " --net all" : " --net none");
	add(text, profile->spawn ? " --spawn" : " --no-spawn");
	add_number(text, "timeout", limits->wall_ms, "ms");
	add_number(text, "memory", limits->memory_bytes, "");
	add_number(text, "cpu", limits->cpu_percent, "");
	add_number(text, "processes", limits->processes, "");
	add_number(text, "disk", limits->disk_bytes, "");
	add_number(text, "tmp", limits->tmp_bytes, "");
	add_number(text, "open-files", limits->open_files, "");
}

char *wsl_script(struct arena *arena, const struct profile *profile, const struct strings *environment, const char *id)
{
	struct text text = { arena, NULL };
	const char *below = path_within(profile->cwd, profile->workspace)
	                            ? profile->cwd + strlen(profile->workspace) : "";
	text.text = arena_printf(arena,
	                         "echo $$ > /run/cordon/%s/pid || exit 125\n"
	                         "exec " WSL_PROGRAM
	                         " run --quiet --no-ask --no-daemon --config '/run/cordon/%s/config.toml'"
	                         " --workspace '/workspace/%s' --cwd",
	                         id, id, id);
	add_word(&text, arena_printf(arena, "/workspace/%s%s", id, below));
	add_grants(&text, profile);
	for (size_t i = 0; i < environment->count; i++)
		if (!is_left_out(environment->items[i])) {
			add(&text, " --env");
			add_word(&text, environment->items[i]);
		}
	add(&text, " --");
	for (size_t i = 0; i < profile->argv.count; i++)
		add_word(&text, profile->argv.items[i]);
	add(&text, "\n");
	return text.text;
}

/* As a glob that means this path alone, in a basic string of TOML. */
static void add_glob(struct text *text, const char *before, const char *path, const char *end)
{
	char *quoted = arena_alloc(text->arena, 6 * strlen(path) + 1), *to = quoted;
	if (!quoted) {
		text->text = NULL;
		return;
	}
	for (; *path; path++)
		if (strchr("*?[]\\", *path))
			to += sprintf(to, *path == '\\' ? "\\\\\\\\" : "\\\\%c", *path);
		else if ((unsigned char)*path < ' ' || *path == '"')
			to += sprintf(to, "\\u%04x", (unsigned)(unsigned char)*path);
		else
			*to++ = *path;
	*to = '\0';
	add(text, arena_printf(text->arena, "\"%s%s\"%s", before, quoted, end));
}

char *wsl_configuration(struct arena *arena, const struct profile *profile, const char *id)
{
	struct text text = { arena, arena_strdup(arena, "[capabilities]\ndeny = [") };
	size_t root = strlen(profile->workspace);
	for (size_t i = 0; i < profile->masked.count; i++) {
		const char *path = profile->masked.items[i].path;
		if (path_within(path, profile->workspace) && path[root])
			add_glob(&text, arena_printf(arena, "/workspace/%s", id), path + root, ", ");
	}
	add(&text, "]\nprotect = [");
	for (size_t i = 0; i < profile->protect.count; i++) {
		const char *path = profile->protect.items[i];
		if (path_within(path, profile->workspace) && path[root])
			add_glob(&text, "", path + root + 1, ", ");
	}
	add(&text, "]\n");
	return text.text;
}

bool wsl_sum_read(const char *text, char ret_sum[WSL_SUM_SIZE])
{
	if (strlen(text) != WSL_SUM_SIZE - 1 || strspn(text, "0123456789abcdefABCDEF") != WSL_SUM_SIZE - 1)
		return false;
	for (size_t i = 0; i < WSL_SUM_SIZE; i++)
		ret_sum[i] = text_lower(text[i]);
	return true;
}
