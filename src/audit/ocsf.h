/* A row as an event of the Open Cybersecurity Schema Framework, version 1.3. What the schema has no word for is in
 * `unmapped`, which is the row itself, whole; cordon(1) tells which row becomes which class. */
#pragma once
#include <stddef.h>

/* One line of JSON, to be free()d; NULL when memory is short. A row that is no JSON becomes an event that says so. */
char *ocsf_from_row(const char *row, size_t length);
