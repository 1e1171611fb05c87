/* Comparing a git configuration with what it was: see git-config.h.
 *
 * The record of a configuration is a sorted set of hashes, so that it is small and has one size per entry whatever the
 * settings are. A hash is 128 bits of SHA-256: a command must not be able to find a value of its own with the hash of
 * another. */
#include "paths/planted/git-config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha256.h"

/* Each text with its length, so that no two different pairs hash the same. */
static struct git_config_fact hash_of(char kind, const char *name, const char *value)
{
	const uint64_t lengths[] = { strlen(name), value ? strlen(value) : UINT64_MAX };
	unsigned char hash[crypto_hash_sha256_BYTES];
	struct git_config_fact fact;
	crypto_hash_sha256_state state;
	crypto_hash_sha256_init(&state);
	sha256_update(&state, &kind, 1);
	sha256_update(&state, lengths, sizeof(lengths));
	sha256_update(&state, name, strlen(name));
	if (value)
		sha256_update(&state, value, strlen(value));
	sha256_final(&state, hash);
	memcpy(fact.hash, hash, sizeof(fact.hash));
	return fact;
}

static struct git_config_fact setting_fact(const char *name, const struct git_setting *setting)
{
	return hash_of('s', name, setting->value);
}

static struct git_config_fact object_fact(const struct git_setting *setting)
{
	return hash_of('o', setting->section, setting->subsection);
}

/* ---- Before ------------------------------------------------------------------------------------------------------ */

struct reading {
	struct git_config_fact *facts;
	size_t count;
	struct git_config_fact last_object;
	bool full;
};

static void add(struct reading *reading, const struct git_config_fact *fact)
{
	if (reading->count == GIT_CONFIG_FACTS_MAX)
		reading->full = true;
	else
		reading->facts[reading->count++] = *fact;
}

/* A value that is cut cannot be compared: it is left out, and so counts as new. */
static void read_setting(void *arg, const char *name, const struct git_setting *setting)
{
	struct reading *reading = arg;
	if (setting->subsection) {
		struct git_config_fact object = object_fact(setting);
		if (memcmp(&object, &reading->last_object, sizeof(object)))
			add(reading, &object);
		reading->last_object = object;
	}
	if (git_setting_find(setting)->class != GIT_SETTING_HARMLESS && !setting->cut) {
		struct git_config_fact fact = setting_fact(name, setting);
		add(reading, &fact);
	}
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct git_config_fact));
}

bool git_config_read(const char *text, size_t length, struct git_config_fact *ret_facts, size_t *ret_count)
{
	struct reading reading = { .facts = ret_facts };
	if (!git_syntax_read(text, length, read_setting, &reading) || reading.full)
		return false;
	size_t kept = 0;
	if (reading.count)
		qsort(ret_facts, reading.count, sizeof(*ret_facts), compare);
	for (size_t i = 0; i < reading.count; i++)
		if (!kept || compare(&ret_facts[kept - 1], &ret_facts[i]))
			ret_facts[kept++] = ret_facts[i];
	*ret_count = kept;
	return true;
}

/* ---- After ------------------------------------------------------------------------------------------------------- */

struct judging {
	const struct git_config_context *context;
	struct git_config_verdict verdict;
};

static bool had(const struct git_config_before *before, struct git_config_fact fact)
{
	return before && before->known && before->count &&
	       bsearch(&fact, before->facts, before->count, sizeof(fact), compare);
}

static void condemn(struct git_config_verdict *verdict, const char *key, const char *reason)
{
	if (verdict->reason)
		return;
	snprintf(verdict->key, sizeof(verdict->key), "%.*s", (int)sizeof(verdict->key) - 1, key);
	verdict->reason = reason;
}

/* What a setting redirects is new, so that it redirects nothing. */
static bool concerns_new(const struct git_config_context *context, const struct git_setting *setting,
			 enum git_setting_class class)
{
	if (context->is_overlay || class == GIT_SETTING_RUNS)
		return false;
	if (!context->before)
		return true;
	return class == GIT_SETTING_REDIRECTS_ONE && context->before->known &&
	       !had(context->before, object_fact(setting));
}

/* git takes the last one. A new one beside another that differs is not accepted. */
static void judge_worktree(struct judging *judging, const char *name, const struct git_setting *setting, bool is_new)
{
	struct git_config_verdict *verdict = &judging->verdict;
	const char *value = setting->value ? setting->value : "";
	bool differs = *verdict->worktree && strcmp(verdict->worktree, value);
	bool fits = *value && !setting->cut && strlen(value) < sizeof(verdict->worktree);
	if (fits)
		memcpy(verdict->worktree, value, strlen(value) + 1);
	verdict->worktree_is_new |= is_new;
	if (is_new && (!judging->context->may_have_worktree || differs || !fits || *value == '~'))
		condemn(verdict, name, GIT_SETTING_ELSEWHERE);
}

static void judge_setting(void *arg, const char *name, const struct git_setting *setting)
{
	struct judging *judging = arg;
	const struct git_setting_row *row = git_setting_find(setting);
	if (row->class == GIT_SETTING_HARMLESS)
		return;
	bool is_new = setting->cut || !had(judging->context->before, setting_fact(name, setting));
	if (!strcmp(name, "core.worktree"))
		judge_worktree(judging, name, setting, is_new);
	else if (is_new && !concerns_new(judging->context, setting, row->class))
		condemn(&judging->verdict, name, row->reason);
}

void git_config_judge(const char *text, size_t length, const struct git_config_context *context,
                      struct git_config_verdict *ret_verdict)
{
	struct judging judging = { .context = context };
	if (!git_syntax_read(text, length, judge_setting, &judging))
		condemn(&judging.verdict, "the file", "is not a git configuration that can be judged");
	*ret_verdict = judging.verdict;
}
