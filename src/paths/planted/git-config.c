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

/* ---- A change ---------------------------------------------------------------------------------------------------- */

#define TAKEN_AWAY "would be taken away"

struct changing {
	const struct git_config_fact *facts;    /* of the text that is to be */
	size_t count;
	struct git_config_fact *remotes;        /* that it names in `branch.*.remote` and the like; sorted */
	size_t remote_count;
	bool full;                              /* there are more than GIT_CONFIG_FACTS_MAX */
	crypto_hash_sha256_state runs;          /* of those that run something, in their order */
	struct git_config_verdict *verdict;
};

static bool is_among(const struct git_config_fact *facts, size_t count, struct git_config_fact fact)
{
	return count && bsearch(&fact, facts, count, sizeof(fact), compare);
}

/* Which remote a branch has, and a remote that is gone with all that it had, can be lost: git does so when a branch or
 * remote is removed or renamed. But for as long as something names the remote, its name would mean something else. */
static bool may_go(const struct changing *changing, const struct git_setting *setting, enum git_setting_class class)
{
	if (class != GIT_SETTING_REDIRECTS_ONE || setting->cut || !setting->subsection)
		return false;
	if (!strcmp(setting->section, "branch"))
		return true;
	return !strcmp(setting->section, "remote") && !changing->full &&
	       !is_among(changing->facts, changing->count, object_fact(setting)) &&
	       !is_among(changing->remotes, changing->remote_count, hash_of('n', setting->subsection, NULL));
}

static void note_run(struct changing *changing, const struct git_config_fact *fact, enum git_setting_class class)
{
	if (class == GIT_SETTING_RUNS)
		sha256_update(&changing->runs, fact->hash, sizeof(fact->hash));
}

static void look_at_old(void *arg, const char *name, const struct git_setting *setting)
{
	struct changing *changing = arg;
	enum git_setting_class class = git_setting_find(setting)->class;
	if (class == GIT_SETTING_HARMLESS)
		return;
	struct git_config_fact fact = setting_fact(name, setting);
	note_run(changing, &fact, class);
	if (!setting->cut && is_among(changing->facts, changing->count, fact))
		return;
	if (!may_go(changing, setting, class))
		condemn(changing->verdict, name, TAKEN_AWAY);
	else if (!*changing->verdict->removed && !strcmp(setting->section, "remote"))
		snprintf(changing->verdict->removed, sizeof(changing->verdict->removed), "%.*s",
		         (int)sizeof(changing->verdict->removed) - 1, name);
}

static void look_at_new(void *arg, const char *name, const struct git_setting *setting)
{
	struct changing *changing = arg;
	struct git_config_fact fact = setting_fact(name, setting);
	note_run(changing, &fact, git_setting_find(setting)->class);
	bool names_remote = !strcmp(name, "remote.pushdefault") || !strcmp(name, "checkout.defaultremote") ||
	                    (!strcmp(setting->section, "branch") && setting->subsection &&
	                     (!strcmp(setting->key, "remote") || !strcmp(setting->key, "pushremote")));
	if (!names_remote || !setting->value)
		return;
	changing->full |= changing->remote_count == GIT_CONFIG_FACTS_MAX;
	if (!changing->full)
		changing->remotes[changing->remote_count++] = hash_of('n', setting->value, NULL);
}

static void look_at_all(const char *text, size_t length, git_syntax_fn *look, struct changing *changing,
                        unsigned char ret_runs[crypto_hash_sha256_BYTES])
{
	crypto_hash_sha256_init(&changing->runs);
	(void)!git_syntax_read(text, length, look, changing);
	sha256_final(&changing->runs, ret_runs);
}

/* `facts` holds three times GIT_CONFIG_FACTS_MAX. False: one of the two cannot be judged. */
static bool judge_change(const char *before, size_t before_length, const char *text, size_t length,
                         struct git_config_fact *facts, struct git_config_verdict *ret_verdict)
{
	struct git_config_before had_before = { .facts = facts, .known = true };
	const struct git_config_context context = { .before = &had_before };
	struct changing changing = { .facts = facts + GIT_CONFIG_FACTS_MAX,
		                     .remotes = facts + 2 * GIT_CONFIG_FACTS_MAX,
		                     .verdict = ret_verdict };
	unsigned char runs[2][crypto_hash_sha256_BYTES];
	if (!git_config_read(before, before_length, facts, &had_before.count) ||
	    !git_config_read(text, length, facts + GIT_CONFIG_FACTS_MAX, &changing.count))
		return false;
	git_config_judge(text, length, &context, ret_verdict);
	look_at_all(text, length, look_at_new, &changing, runs[1]);
	if (changing.remote_count)
		qsort(changing.remotes, changing.remote_count, sizeof(*changing.remotes), compare);
	look_at_all(before, before_length, look_at_old, &changing, runs[0]);
	if (memcmp(runs[0], runs[1], sizeof(runs[0])))
		condemn(ret_verdict, "a setting that could run a program",
		        "would come in another place or another number of times");
	return true;
}

void git_config_judge_change(const char *before, size_t before_length, const char *text, size_t length,
                             struct git_config_verdict *ret_verdict)
{
	struct git_config_fact *facts = malloc(3 * GIT_CONFIG_FACTS_MAX * sizeof(*facts));
	struct git_config_verdict verdict = { .reason = NULL };
	if (!facts || !judge_change(before, before_length, text, length, facts, &verdict))
		condemn(&verdict, "the file", "is not a git configuration that can be judged");
	free(facts);
	*ret_verdict = verdict;
}
