/* See passwd.h; passwd(5). */
#include "base/passwd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 4096

/* The field of this number, ended by NUL in place; NULL where the line has fewer. */
static char *field(char *line, int number)
{
	while (number-- > 0 && line)
		line = (line = strchr(line, ':')) ? line + 1 : NULL;
	if (line)
		line[strcspn(line, ":\n")] = '\0';
	return line;
}

static bool is_user(const char *line, unsigned uid)
{
	char copy[LINE_SIZE], *end;
	snprintf(copy, sizeof(copy), "%s", line);
	const char *text = field(copy, 2);
	unsigned long number = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
	return text && *text >= '0' && *text <= '9' && !*end && number == uid;
}

bool passwd_home(const char *file, unsigned uid, char *ret_home, size_t size)
{
	char line[LINE_SIZE];
	FILE *stream = fopen(file, "re");
	bool found = false;
	while (stream && !found && fgets(line, sizeof(line), stream)) {
		bool whole = strchr(line, '\n') || feof(stream);
		for (int c = 0; !whole && c != '\n' && c != EOF;)
			c = fgetc(stream);
		found = whole && is_user(line, uid);
	}
	if (stream)
		fclose(stream);
	const char *home = found ? field(line, 5) : NULL;
	if (!home || *home != '/' || strlen(home) >= size)
		return false;
	memcpy(ret_home, home, strlen(home) + 1);
	return true;
}
