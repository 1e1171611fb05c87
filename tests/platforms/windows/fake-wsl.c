/* Stands in for wsl.exe: says what a script says, and writes down what it was asked. Both lie beside the prefix, in the
 * directory that FAKE_WSL names: "script" has lines "WORDS<tab>STATUS<tab>FILE", of which the first whose WORDS begin
 * the arguments counts; FILE is what is printed ("-": nothing, "=": the input, "&NAME": that with the last id that was
 * mounted for each "@"; ">NAME": nothing, and the input is kept there). A line that begins with "!" counts once.
 * "calls" gets a line for each call. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static char place[1024], words[8192];

static FILE *open_file(const char *name, const char *mode)
{
	char path[2048];
	snprintf(path, sizeof(path), "%s\\%s", place, name);
	return fopen(path, mode);
}

static void note_call(unsigned long long input, unsigned hash)
{
	FILE *file = NULL;
	/* Who had it last may not have closed it yet. */
	for (int waited = 0; !(file = open_file("calls", "ab")) && waited < 2000; waited += 10)
		Sleep(10);
	if (!file)
		exit(98);
	fprintf(file, "%s", words);
	if (input)
		fprintf(file, " < %llu bytes %08x", input, hash);
	wchar_t value[8];
	if (GetEnvironmentVariableW(L"WSLENV", value, 8))
		fputs(" WSLENV", file);
	fputs("\n", file);
	fclose(file);
}

static void print_file(const char *name)
{
	char id[64] = "";
	bool filled = *name == '&';
	FILE *of_id = filled ? open_file("id", "rb") : NULL, *file = open_file(name + filled, "rb");
	if (!file || (of_id && !fgets(id, sizeof(id), of_id)))
		exit(97);
	for (int c; (c = getc(file)) != EOF;)
		if (filled && c == '@')
			fputs(id, stdout);
		else
			putchar(c);
	fclose(file);
	if (of_id)
		fclose(of_id);
}

static void note_id(void)
{
	const char *up = strstr(words, "/opt/cordon/up ");
	FILE *file = up && strlen(up) == 15 + 26 ? open_file("id", "wb") : NULL;
	if (!file)
		return;
	fputs(up + 15, file);
	fclose(file);
}

/* The input, kept in "input-N" by the number of the call, so that a test can look at it. */
static unsigned long long take_input(unsigned *ret_hash, const char *also)
{
	static char part[65536];
	char name[64];
	unsigned long long total = 0;
	unsigned hash = 2166136261u;
	int number = 0;
	FILE *file;
	do
		snprintf(name, sizeof(name), "input-%d", number++);
	while ((file = open_file(name, "rb")) && !fclose(file));
	file = open_file(name, "wb");
	FILE *second = also ? open_file(also, "wb") : NULL;
	for (size_t got; file && (got = fread(part, 1, sizeof(part), stdin)) > 0; total += got) {
		fwrite(part, 1, got, file);
		if (second)
			fwrite(part, 1, got, second);
		for (size_t i = 0; i < got; i++)
			hash = (hash ^ (unsigned char)part[i]) * 16777619u;
	}
	if (file)
		fclose(file);
	if (second)
		fclose(second);
	*ret_hash = hash;
	return total;
}

/* The script's line for these words, without its end; it is struck out where it counts once. */
static bool find_line(char ret_line[1024])
{
	FILE *file = open_file("script", "r+b");
	bool found = false;
	for (long at = 0; file && !found && (at = ftell(file), fgets(ret_line, 1024, file));) {
		ret_line[strcspn(ret_line, "\r\n")] = '\0';
		char *tab = strchr(ret_line, '\t');
		bool once = *ret_line == '!';
		if (!tab || *ret_line == '#' || strncmp(ret_line + once, words, (size_t)(tab - ret_line) - once) != 0)
			continue;
		found = true;
		if (once) {
			fseek(file, at, SEEK_SET);
			fputc('#', file);
		}
	}
	if (file)
		fclose(file);
	return found;
}

int wmain(int argc, wchar_t **argv);
int wmain(int argc, wchar_t **argv)
{
	char row[1024], *status, *answer;
	unsigned hash = 0;
	setvbuf(stdout, NULL, _IOFBF, 65536);
	for (int fd = 0; fd < 2; fd++)
		_setmode(fd, 0x8000);
	if (!GetEnvironmentVariableA("FAKE_WSL", place, sizeof(place)))
		return 99;
	for (int i = 1; i < argc; i++) {
		size_t length = strlen(words);
		WideCharToMultiByte(CP_UTF8, 0, argv[i], -1, words + length, (int)(sizeof(words) - length - 2), NULL,
		                    NULL);
		if (i + 1 < argc)
			strcat(words, " ");
	}
	bool known = find_line(row);
	char *tab = known ? strchr(row, '\t') : NULL;
	status = tab ? tab + 1 : NULL;
	answer = status ? strchr(status, '\t') : NULL;
	bool copies = answer && answer[1] == '>';
	unsigned long long input = answer && answer[1] == '=' ? 0 : take_input(&hash, copies ? answer + 2 : NULL);
	note_call(input, hash);
	note_id();
	if (!known)
		return 96;
	if (answer && answer[1] == '=') {
		char part[4096];
		for (size_t got; (got = fread(part, 1, sizeof(part), stdin)) > 0;)
			fwrite(part, 1, got, stdout);
	} else if (answer && !copies && strcmp(answer + 1, "-") != 0) {
		print_file(answer + 1);
	}
	fflush(stdout);
	return atoi(status);
}
