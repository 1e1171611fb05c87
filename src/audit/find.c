/* Finding a row: see find.h. */
#include "audit/find.h"

#include <stdio.h>
#include <string.h>

#include "audit/ledger-files.h"
#include "audit/lines.h"
#include "base/error.h"

/* A whole row; of a torn line, what it was going to say does not count. */
static bool is_row(const struct line *line, const char *text)
{
	if (!line->text || !line->ended || !memmem(line->text, line->length, text, strlen(text)))
		return false;
	json_t *row = line_parse(line);
	json_decref(row);
	return row;
}

/* 1, 0, or -1 and errno. */
static int search(int directory, const char *name, const char *text)
{
	struct lines lines;
	struct line line;
	int got;
	auto_close int fd = ledger_open_readable(directory, name);
	if (fd < 0 || lines_open(&lines, fd, 0) < 0)
		return -1;
	while ((got = lines_next(&lines, true, &line)) > 0 && !is_row(&line, text))
		;
	lines_close(&lines);
	return got;
}

int ledger_find(const char *data_dir, const char *kind, const char *id, bool *ret_found, struct cordon_error *err)
{
	char text[128];
	struct days days = { 0 };
	snprintf(text, sizeof(text), "\"row\":\"%s\",\"id\":\"%s\"", kind, id);
	auto_close int directory = ledger_open_directory(data_dir);
	int found = directory >= 0 ? days_list(directory, &days) : errno == ENOENT ? 0 : -1;
	for (size_t i = days.count; found == 0 && i-- > 0;)
		found = search(directory, days.names[i], text);
	free(days.names);
	if (found < 0) {
		const struct ledger_files files = { .data_dir = (char *)(uintptr_t)data_dir };
		return ledger_refuse(&files, errno, "", "the ledger cannot be searched", err);
	}
	*ret_found = found;
	return 0;
}
