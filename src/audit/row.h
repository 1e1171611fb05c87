/* What is asked for of a row, found in one pass over its bytes, without a tree: most rows of a large ledger are
 * looked at only to be left out. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum row_member { ROW_KIND, ROW_ID, ROW_TIME, ROW_SESSION, ROW_PROGRAM, ROW_OUTCOME, ROW_DECISION, ROW_AUDIT_ID,
                   ROW_MEMBER_MAX };

struct row_text {
	const char *bytes;      /* within the line, still escaped; NULL where there is no such member or it is no text */
	size_t length;
};

struct row {
	struct row_text members[ROW_MEMBER_MAX];
};

/* False where the line is not one JSON object (or is nested deeper than any row). Of a member that is there twice,
 * the first counts. */
bool row_scan(const char *line, size_t length, struct row *ret_row);
