/* Cards: see card.h. Every word in the text that is not cordon's own is quoted so that no two values are written the
 * same way (base/visible.h), and numbers are exact: a hash over the text distinguishes any two questions. */
#include "policy/card.h"

#include <inttypes.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>

#include "policy/capability-json.h"
/* after libjansson's */
#include "base/json.h"
#include "base/sha256.h"
#include "base/visible.h"

#define LABEL_WIDTH 11

static const struct {
	const char *words;
	size_t offset;
	bool is_path;
} lists[] = {
#define LIST(words, list, is_path) { words, offsetof(struct capability_set, list), is_path }
	LIST("read ", fs_read, true),
	LIST("write ", fs_write, true),
	LIST("connect to ", hosts, false),
	LIST("answer at this machine's loopback, as MACHINE:INSIDE, the port ", publish, false),
	LIST("start the program ", programs, true),
	LIST("use the device ", devices, true),
	LIST("connect to the socket ", sockets, true),
#undef LIST
};

enum unit { COUNT, PERCENT, BYTES, TIME };

static const struct {
	const char *words;
	size_t offset;
	enum unit unit;
} limits[] = {
#define LIMIT(words, field, unit) { words, offsetof(struct limits, field), unit }
	LIMIT("memory", memory_bytes, BYTES),
	LIMIT("processor time", cpu_percent, PERCENT),
	LIMIT("processes", processes, COUNT),
	LIMIT("disk", disk_bytes, BYTES),
	LIMIT("time to run", wall_ms, TIME),
	LIMIT("standard output", stdout_bytes, BYTES),
	LIMIT("standard error", stderr_bytes, BYTES),
	LIMIT("open files", open_files, COUNT),
	LIMIT("temporary files", tmp_bytes, BYTES),
#undef LIMIT
};
_Static_assert(ARRAY_SIZE(limits) * sizeof(uint64_t) == sizeof(struct limits), "every limit has a row");

static const struct scale {
	uint64_t size;
	const char *name;
} counts[] = { { 1, "" } }, percents[] = { { 1, " %" } },
  sizes[] = { { UINT64_C(1) << 40, " TiB" },
	      { 1 << 30, " GiB" },
	      { 1 << 20, " MiB" },
	      { 1 << 10, " KiB" },
	      { 1, " bytes" } },
  times[] = { { 3600000, " h" }, { 60000, " min" }, { 1000, " s" }, { 1, " ms" } };
static const struct scale *const scales[] = { [COUNT] = counts, [PERCENT] = percents, [BYTES] = sizes, [TIME] = times };

/* In the largest unit that needs no rounding. */
static void write_amount(FILE *out, enum unit unit, uint64_t amount)
{
	const struct scale *scale = scales[unit];
	while (amount % scale->size)
		scale++;
	if (amount == UINT64_MAX)
		fputs("without limit", out);
	else
		fprintf(out, "%" PRIu64 "%s", amount / scale->size, scale->name);
}

static uint64_t limit_in(const struct limits *set, size_t i)
{
	return *(const uint64_t *)((const char *)set + limits[i].offset);
}

static const struct place *place_of(const struct places *places, const char *path)
{
	for (size_t i = 0; places && i < places->count; i++)
		if (places->items[i].alias && !strcmp(places->items[i].alias, path))
			return &places->items[i];
	return NULL;
}

/* A label, or the same room. */
static void begin_line(FILE *out, const char *label)
{
	fprintf(out, "  %-*s", LABEL_WIDTH, label);
}

static void write_line(FILE *out, const char *label, const char *value)
{
	begin_line(out, label);
	visible_quote(out, value);
	fputc('\n', out);
}

/* One line for each thing asked for; the first has the label. */
struct asking {
	FILE *out;
	const struct card_question *question;
	const struct capability_set *excess;
	size_t count;
};

static void begin_item(struct asking *asking, const char *words)
{
	begin_line(asking->out, asking->count++ ? "" : "asks for");
	fputs(words, asking->out);
}

static void write_list(struct asking *asking, size_t row)
{
	const struct strings *list = (const struct strings *)((const char *)asking->excess + lists[row].offset);
	for (size_t i = 0; i < list->count; i++) {
		const struct place *place =
			lists[row].is_path ? place_of(asking->question->places, list->items[i]) : NULL;
		begin_item(asking, lists[row].words);
		visible_quote(asking->out, list->items[i]);
		if (place) {
			fputs(" (leads to ", asking->out);
			visible_quote(asking->out, place->path);
			fputc(')', asking->out);
		}
		fputc('\n', asking->out);
	}
}

static void write_limit(struct asking *asking, size_t row)
{
	uint64_t amount = limit_in(&asking->excess->limits, row);
	const struct capability_set *ceiling = asking->question->ceiling;
	uint64_t free_amount = ceiling ? limit_in(&ceiling->limits, row) : 0;
	if (!amount)
		return;
	begin_item(asking, limits[row].words);
	fputc(' ', asking->out);
	write_amount(asking->out, limits[row].unit, amount);
	if (free_amount) {
		fputs(" (", asking->out);
		write_amount(asking->out, limits[row].unit, free_amount);
		fputs(" without asking)", asking->out);
	}
	fputc('\n', asking->out);
}

static void write_asking(FILE *out, const struct card_question *question, const struct capability_set *excess)
{
	struct asking asking = { out, question, excess, 0 };
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		write_list(&asking, i);
	if (excess->network == NETWORK_ALL)
		begin_item(&asking, "network: all of the host's\n");
	if (excess->spawn)
		begin_item(&asking, "start other programs\n");
	if (question->any_program)
		begin_item(&asking, "start any program, not only the listed ones\n");
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		write_limit(&asking, i);
	if (!asking.count)
		begin_item(&asking, "nothing beyond its grants: a rule requires approval for each such call\n");
}

static void write_command(FILE *out, const struct card_question *question)
{
	write_line(out, "program", question->program);
	begin_line(out, "command");
	for (size_t i = 0; i < question->argv->count; i++) {
		fputs(i ? " " : "", out);
		visible_quote(out, question->argv->items[i]);
	}
	fputc('\n', out);
	write_line(out, "directory", question->cwd);
}

static void write_text(FILE *out, const struct card_question *question, const struct capability_set *excess)
{
	fputs(question->for_session ? "A session asks for more than it may do without approval, until it ends.\n" :
	      *question->session ? "A command asks for more than its session may do without approval.\n" :
	      "A command asks for something that requires approval.\n", out);
	if (*question->session)
		write_line(out, "session", question->session);
	write_line(out, "tool", question->tool);
	if (!question->for_session)
		write_command(out, question);
	for (size_t i = 0; i < question->env.count; i++)
		write_line(out, i ? "" : "with", question->env.items[i]);
	for (size_t i = 0; i < question->env_pass.count; i++)
		write_line(out, i ? "" : "passes on", question->env_pass.items[i]);
	write_asking(out, question, excess);
	if (question->rule)
		write_line(out, "because of", question->rule);
}

static void write_links(struct json *json, const struct places *places)
{
	json_key(json, "links");
	json_array_begin(json);
	for (size_t i = 0; places && i < places->count; i++) {
		if (!places->items[i].alias)
			continue;
		json_object_begin(json);
		json_key_path(json, "path", places->items[i].alias);
		json_key_path(json, "leads_to", places->items[i].path);
		json_object_end(json);
	}
	json_array_end(json);
}

/* Variables lead a program elsewhere as well as arguments do. */
static void write_variables(struct json *json, const char *key, const struct strings *variables)
{
	if (!variables->count)
		return;
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < variables->count; i++)
		path_write_json(json, variables->items[i]);
	json_array_end(json);
}

static char *write_content(const struct card_question *question, const struct capability_set *excess, const char *text)
{
	struct json json;
	json_init(&json);
	json_object_begin(&json);
	json_key_string(&json, "session", question->session);
	json_key_string(&json, "tool", question->tool);
	json_key_path(&json, "program", question->program);
	json_key(&json, "argv");
	json_array_begin(&json);
	for (size_t i = 0; i < question->argv->count; i++)
		path_write_json(&json, question->argv->items[i]);
	json_array_end(&json);
	json_key_path(&json, "cwd", question->cwd);
	write_variables(&json, "env", &question->env);
	write_variables(&json, "env_pass", &question->env_pass);
	json_key(&json, "asks_for");
	capability_write_json(&json, excess);
	json_key_bool(&json, "any_program", question->any_program);
	write_links(&json, question->places);
	json_key_string(&json, "rule", question->rule);
	if (question->for_session)
		json_key_bool(&json, "for_session", true);
	json_key_string(&json, "text", text);
	json_object_end(&json);
	return json_take(&json);
}

static char *make_text(struct arena *arena, const struct card_question *question, const struct capability_set *excess)
{
	char *text = NULL, *kept = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return NULL;
	write_text(out, question, excess);
	bool failed = ferror(out);
	if (fclose(out) == 0 && !failed)
		kept = arena_strndup(arena, text, length);
	free(text);
	return kept;
}

static char *make_content(struct arena *arena, const struct card_question *question,
                          const struct capability_set *excess, const char *text)
{
	auto_free char *json = write_content(question, excess, text);
	auto_free char *safe = json ? visible_json(json) : NULL;
	return safe ? arena_strdup(arena, safe) : NULL;
}

void card_hash(const char *content, char ret_hash[CARD_HASH_SIZE])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	sha256(hash, content, strlen(content));
	sodium_bin2hex(ret_hash, CARD_HASH_SIZE, hash, sizeof(hash));
}

static int normalise(struct arena *arena, const struct capability_set *set, struct capability_set *ret_set,
                     struct cordon_error *err)
{
	static const struct strings none;
	const char *subject = NULL;
	if (capability_normalise(arena, set, ret_set, &subject) < 0)
		return subject ? fail(err, CORDON_E_INVALID_REQUEST, 0, subject, "the path must be absolute") :
		                 fail_oom(err);
	/* No grant changes these; and "without limit", which a normal set leaves out, is what may be asked for here. */
	ret_set->deny = ret_set->protect = ret_set->exempt = none;
	ret_set->limits = set->limits;
	return 0;
}

int card_make(struct arena *arena, const struct card_question *question, struct card *ret_card,
              struct cordon_error *err)
{
	struct card card = { 0 };
	if (normalise(arena, question->excess, &card.excess, err) < 0)
		return -1;
	card.text = make_text(arena, question, &card.excess);
	if (!card.text)
		return fail_oom(err);
	if (strlen(card.text) > CARD_TEXT_MAX) {
		fail(err, CORDON_E_CAPABILITY_DENIED, 0, question->program,
		     "to be shown whole to a human, this command is too long: %zu bytes", strlen(card.text));
		fail_remedy(err, "put what is long into a file in the workspace and name the file, or have it granted "
		            "beforehand (cordon session new)");
		return fail_boundary(err, "approval");
	}
	card.content = make_content(arena, question, &card.excess, card.text);
	if (!card.content)
		return fail_oom(err);
	card_hash(card.content, card.hash);
	*ret_card = card;
	return 0;
}
