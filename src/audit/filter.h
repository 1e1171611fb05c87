/* Which rows were asked for (struct cordon_audit_filter), in a form that is quick to ask. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/utc.h"
#include "cordon-internal.h"

enum filter_text { FILTER_ID, FILTER_SESSION, FILTER_PROGRAM, FILTER_TEXT_MAX };

struct filter {
	char *texts[FILTER_TEXT_MAX];           /* as they stand in a row: quoted and escaped; NULL: any */
	size_t lengths[FILTER_TEXT_MAX];
	json_t *asked[FILTER_TEXT_MAX];         /* the same as values */
	const char *decision;                   /* NULL: any */
	char since[UTC_SIZE], until[UTC_SIZE];  /* as they stand in a row; "": any */
};

/* To be released with filter_free(), whatever the outcome. */
int filter_make(const struct cordon_audit_filter *given, struct filter *ret_filter, struct cordon_error *err)
	must_check;
void filter_free(struct filter *filter);

/* No condition except time: then damaged lines, which meet no condition, are returned too. */
bool filter_takes_damaged(const struct filter *filter);
bool filter_is_open(const struct filter *filter);

/* False: it need not be looked at any closer. */
bool filter_may_take(const struct filter *filter, const char *line, size_t length);
bool filter_takes(const struct filter *filter, const json_t *row);
bool filter_in_time(const struct filter *filter, const json_t *row);
