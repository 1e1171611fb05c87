/* Cells of a table: see cell.h. */
#include "door/cli/cell.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "door/cli/report.h"

size_t cell_width(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

char *cell_make(const char *text, size_t most)
{
	char *cell = NULL;
	size_t size = 0, shown = 0;
	FILE *out = open_memstream(&cell, &size);
	if (!out)
		return NULL;
	report_untrusted(out, text);
	if (fclose(out))
		return NULL;
	if (!most || cell_width(cell) <= most)
		return cell;
	const char *end = cell;
	for (; shown < most - 1; shown++)
		end += utf8_sequence(end, strlen(end));
	char *cut;
	if (asprintf(&cut, "%.*s\u2026", (int)(end - cell), cell) < 0)
		cut = NULL;
	free(cell);
	return cut;
}

size_t cell_print(const char *text, size_t most, size_t width)
{
	auto_free char *cell = cell_make(text, most);
	size_t shown = cell ? cell_width(cell) : 0;
	printf("%s%*s", cell ? cell : "", (int)(shown < width ? width - shown : 0), "");
	return shown;
}
