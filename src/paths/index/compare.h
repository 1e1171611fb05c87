/* What a search found, compared with what was known before it. */
#pragma once
#include "paths/index/table.h"

/* A masked name that was known is not where it was. A false alarm costs time only. */
bool names_masked_is_lost(const struct names_table *table);
