/* A ledger in a directory of its own, for the tests of what writes, reads and verifies it. */
#pragma once
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/ledger.h"
#include "audit/seal.h"
#include "audit/verify.h"
#include "base/json.h"

struct ground {
	char root[64], data[80], directory[96], file[160];      /* `file` is today's */
	struct ledger *ledger;
};

static inline void ground_day(struct ground *ground)
{
	struct tm utc;
	time_t now = time(NULL);
	char day[32];
	strftime(day, sizeof(day), "%Y-%m-%d", gmtime_r(&now, &utc));
	snprintf(ground->file, sizeof(ground->file), "%s/%s.jsonl", ground->directory, day);
}

static inline struct ground *ground_make(void)
{
	struct ground *ground = calloc(1, sizeof(*ground));
	struct cordon_error err;
	strcpy(ground->root, "/tmp/cordon-test-ledger.XXXXXX");
	assert_non_null(mkdtemp(ground->root));
	snprintf(ground->data, sizeof(ground->data), "%s/share/cordon", ground->root);
	snprintf(ground->directory, sizeof(ground->directory), "%s/ledger", ground->data);
	ground_day(ground);
	assert_int_equal(ledger_open(ground->data, false, &ground->ledger, &err), 0);
	return ground;
}

static int ground_remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static inline void ground_remove(struct ground *ground)
{
	ledger_unref(ground->ledger);
	nftw(ground->root, ground_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(ground);
}

static inline void ground_append(struct ledger *ledger, const char *line)
{
	struct cordon_error err;
	if (ledger_append(ledger, line, strlen(line), &err) < 0)
		fail_msg("%s: %s", err.subject, err.reason);
}

/* The whole file, ended by NUL, to be free()d; NULL if there is none. */
static inline char *ground_slurp(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return NULL;
	fseek(file, 0, SEEK_END);
	size_t size = (size_t)ftell(file);
	rewind(file);
	char *text = calloc(1, size + 1);
	assert_int_equal(fread(text, 1, size, file), size);
	fclose(file);
	return text;
}

static inline void ground_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* What verify says, to be json_decref()ed. */
static inline json_t *ground_verify(const struct ground *ground)
{
	struct cordon_error err;
	struct json json;
	bool intact;
	json_init(&json);
	assert_int_equal(verify_ledger(ground->data, &json, &intact, &err), 0);
	char *text = json_take(&json);
	json_t *report = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(report);
	assert_int_equal(json_is_true(json_object_get(report, "intact")), intact);
	free(text);
	return report;
}

static inline void ground_intact(const struct ground *ground, bool expected)
{
	json_t *report = ground_verify(ground);
	if (json_is_true(json_object_get(report, "intact")) != expected)
		fail_msg("%s", json_dumps(report, JSON_INDENT(2)));
	json_decref(report);
}
