/* See guard.h. */
#include "secrets/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "secrets/own.h"

struct stream {
	struct secret_guard *guard;
	int number;
	struct secret_filter *filter;   /* made with the first output */
};

struct secret_guard {
	struct secret_set *set, *handed_on;     /* handed_on: made when it is needed */
	struct secret_policy before, after;
	struct strings passed;
	char *data_dir;
	unsigned char key[SECRET_KEY];
	bool has_key, is_short_of_memory;
	void (*deliver)(void *context, int stream, const void *bytes, size_t length);
	void *context;
	struct stream streams[3];
	struct secret_place places[SECRET_PLACES];
	size_t place_count, other_count;        /* of these, found elsewhere than in a stream; and all that were */
	uint64_t other_hidden;                  /* of these */
	bool is_blocked;
	struct secret_screen screen, row_screen;        /* made when they are needed */
	const struct strings *exempt_names;
};

/* ---- the key ---------------------------------------------------------------------------------------------------- */

static bool read_key(int directory, unsigned char *ret_key)
{
	auto_close int fd = openat(directory, SECRET_KEY_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && read(fd, ret_key, SECRET_KEY) == SECRET_KEY;
}

/* Under a temporary name first, so that the file is complete when it is found. */
static bool make_key(int directory, unsigned char *ret_key)
{
	char name[64];
	randombytes_buf(ret_key, SECRET_KEY);
	snprintf(name, sizeof(name), SECRET_KEY_FILE ".%08x%08x", randombytes_random(), randombytes_random());
	auto_close int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool is_linked = write(fd, ret_key, SECRET_KEY) == SECRET_KEY &&
	                 linkat(directory, name, directory, SECRET_KEY_FILE, 0) == 0;
	unlinkat(directory, name, 0);
	return is_linked;
}

/* The same secret has the same fingerprint in every row of this user's ledger. Where the key cannot be kept, one for
 * this command has to do. */
static void load_key(void *arg, unsigned char *ret_key)
{
	struct secret_guard *guard = arg;
	if (!guard->has_key) {
		auto_close int directory = open(guard->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (directory < 0 || (!read_key(directory, guard->key) && !make_key(directory, guard->key) &&
		                      !read_key(directory, guard->key)))
			randombytes_buf(guard->key, sizeof(guard->key));
		guard->has_key = true;
	}
	memcpy(ret_key, guard->key, sizeof(guard->key));
}

/* ---- the guard -------------------------------------------------------------------------------------------------- */

static int collect(struct secret_guard *guard, const struct secret_guard_options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(options->given); i++)
		if (own_exempt(guard->set, options->given[i]) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_SIZE(options->environments); i++)
		if (own_add_environment(guard->set, options->environments[i], options->passed) < 0)
			return -1;
	return 0;
}

int secret_guard_new(const struct secret_guard_options *options, struct secret_guard **ret_guard,
                     struct cordon_error *err)
{
	struct secret_guard *guard = calloc(1, sizeof(*guard));
	if (!guard)
		return fail_oom(err);
	guard->deliver = options->deliver;
	guard->context = options->context;
	guard->exempt_names = options->passed;
	guard->data_dir = strdup(options->data_dir);
	guard->set = secret_set_new();
	for (int i = 0; i < 3; i++)
		guard->streams[i] = (struct stream){ guard, i, NULL };
	if (!guard->data_dir || !guard->set || collect(guard, options) < 0) {
		secret_guard_free(guard);
		return fail_oom(err);
	}
	*ret_guard = guard;
	return 0;
}

void secret_guard_free(struct secret_guard *guard)
{
	if (!guard)
		return;
	for (int i = 0; i < 3; i++)
		secret_filter_free(guard->streams[i].filter);
	secret_screen_free(&guard->screen);
	secret_screen_free(&guard->row_screen);
	secret_set_unref(guard->set);
	secret_set_unref(guard->handed_on);
	free(guard->data_dir);
	sodium_memzero(guard, sizeof(*guard));
	free(guard);
}

int secret_guard_add_own(struct secret_guard *guard, const char *name, const char *value, size_t length,
                         enum secret_use use)
{
	if (use == SECRET_GIVEN)
		return secret_set_exempt(guard->set, name, value, length, true);
	return use == SECRET_GATEWAY_KEY ? secret_set_add_key(guard->set, name, value, length) :
	                                   secret_set_add(guard->set, name, value, length);
}

void secret_guard_set_policies(struct secret_guard *guard, const struct secret_policy *before,
                               const struct secret_policy *after)
{
	guard->before = *before;
	guard->after = *after;
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

static struct secret_place *add_place(struct secret_guard *guard, const char *where,
                                      const struct secret_finding *finding)
{
	guard->other_count++;
	if (guard->place_count == SECRET_PLACES)
		return NULL;
	struct secret_place *place = &guard->places[guard->place_count++];
	*place = (struct secret_place){ .finding = *finding };
	snprintf(place->where, sizeof(place->where), "%s", where);
	return place;
}

static void note_content(void *arg, const struct secret_finding *finding)
{
	struct secret_guard *guard = arg;
	struct secret_place *place = add_place(guard, "content", finding);
	if (place)
		place->is_output = true;
	guard->other_hidden += finding->action != SECRET_REPORT;
	guard->is_blocked |= finding->action == SECRET_BLOCK;
}

struct secret_screen *secret_guard_screen(struct secret_guard *guard)
{
	struct secret_screen *screen = &guard->screen;
	if (screen->set)
		return screen;
	secret_screen_init(screen, guard->set, &guard->after);
	screen->note = note_content;
	screen->note_arg = guard;
	screen->scanner.load_key = load_key;
	screen->scanner.load_key_arg = guard;
	return screen;
}

/* The fingerprints of what is hidden here are not reported, so they need no lasting key. */
static struct secret_screen *row_screen(struct secret_guard *guard)
{
	struct secret_policy hide;
	secret_policy_set(&hide, SECRET_REDACT);
	if (!guard->row_screen.set) {
		secret_screen_init(&guard->row_screen, guard->set, &hide);
		guard->row_screen.with_given = true;
	}
	return &guard->row_screen;
}

int secret_guard_clean_json(struct secret_guard *guard, struct json *json)
{
	return secret_screen_json(row_screen(guard), json);
}

int secret_guard_clean_array(struct secret_guard *guard, char *text, size_t size)
{
	return secret_screen_array(row_screen(guard), text, size);
}

/* ---- before the start ------------------------------------------------------------------------------------------- */

static int refuse(const char *where, const struct secret_finding *finding, struct cordon_error *err)
{
	fail(err, CORDON_E_LEAK_BLOCKED, 0, where, "it has %s %s in it (%s)",
	     finding->is_own ? "the value of" : "a secret of the kind", finding->name, finding->layer);
	fail_boundary(err, "secrets");
	if (finding->is_own)
		return fail_remedy(err, "hand it over by name, with --pass-env %s, or run it with --secrets report",
		                   finding->name);
	return fail_remedy(err, "hand it over by name, with --env, or run it with --secrets report");
}

static int check_text(struct secret_guard *guard, struct secret_scanner *scanner, const char *where, const void *text,
                      size_t length, struct cordon_error *err)
{
	if (secret_scan(scanner, text, length, true) < 0)
		return fail_oom(err);
	for (size_t i = 0; i < scanner->found_count; i++) {
		const struct secret_found *found = &scanner->found[i];
		struct secret_finding finding = { .offset = found->start };
		secret_finding_fill(&finding, guard->set, found);
		add_place(guard, where, &finding);
		if (finding.action == SECRET_BLOCK)
			return refuse(where, &finding, err);
	}
	return 0;
}

static int check_all(struct secret_guard *guard, struct secret_scanner *scanner, const struct strings *argv,
                     const struct strings *environment, struct cordon_error *err)
{
	char where[80];
	for (size_t i = 0; i < argv->count; i++) {
		snprintf(where, sizeof(where), i ? "argument %zu" : "the program", i);
		if (check_text(guard, scanner, where, argv->items[i], strlen(argv->items[i]), err) < 0)
			return -1;
	}
	for (size_t i = 0; environment && i < environment->count; i++) {
		size_t length = strcspn(environment->items[i], "=");
		snprintf(where, sizeof(where), "environment %.*s", (int)(length < 60 ? length : 60),
		         environment->items[i]);
		if (!own_is_passed(guard->exempt_names, environment->items[i], length) &&
		    check_text(guard, scanner, where, environment->items[i] + length,
		               strlen(environment->items[i] + length), err) < 0)
			return -1;
	}
	return 0;
}

static enum secret_action judge_before(const void *arg, const struct secret_found *found)
{
	const struct secret_guard *guard = arg;
	return secret_policy_for(&guard->before, guard->set, found);
}

static void begin_check(struct secret_guard *guard, struct secret_scanner *scanner)
{
	secret_scanner_init(scanner, guard->set, NULL);
	scanner->load_key = load_key;
	scanner->load_key_arg = guard;
	scanner->judge = judge_before;
	scanner->judge_arg = guard;
}

int secret_guard_check_text(struct secret_guard *guard, const char *where, const void *text, size_t length,
                            struct cordon_error *err)
{
	struct secret_scanner scanner;
	begin_check(guard, &scanner);
	int status = check_text(guard, &scanner, where, text, length, err);
	secret_scanner_free(&scanner);
	return status;
}

int secret_guard_check(struct secret_guard *guard, const struct strings *argv, const struct strings *environment,
                       struct cordon_error *err)
{
	struct secret_scanner scanner;
	begin_check(guard, &scanner);
	int status = check_all(guard, &scanner, argv, environment, err);
	secret_scanner_free(&scanner);
	return status;
}

int secret_guard_terms(struct secret_guard *guard, bool with_key, struct secret_terms *ret_terms)
{
	if (!guard->handed_on)
		guard->handed_on = secret_set_without_keys(guard->set);
	if (!guard->handed_on)
		return -1;
	ret_terms->set = guard->handed_on;
	ret_terms->policy = guard->before;
	if (with_key)
		load_key(guard, ret_terms->key);
	return 0;
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void deliver(void *context, const void *bytes, size_t length)
{
	const struct stream *stream = context;
	stream->guard->deliver(stream->guard->context, stream->number, bytes, length);
}

void secret_guard_add(struct secret_guard *guard, int number, const void *bytes, size_t length)
{
	struct stream *stream = &guard->streams[number];
	if (!stream->filter && !guard->is_short_of_memory) {
		stream->filter = secret_filter_new(guard->set, &guard->after, NULL, deliver, stream);
		if (stream->filter)
			secret_filter_load_key(stream->filter, load_key, guard);
		else
			guard->is_short_of_memory = true;
	}
	if (stream->filter)
		secret_filter_add(stream->filter, bytes, length, (uint64_t)clock_ms());
}

uint64_t secret_guard_held_ms(const struct secret_guard *guard)
{
	uint64_t now = (uint64_t)clock_ms(), least = 0;
	for (int i = 1; i < 3; i++) {
		uint64_t deadline = guard->streams[i].filter ? secret_filter_deadline(guard->streams[i].filter) : 0;
		uint64_t left = !deadline ? 0 : deadline > now ? deadline - now : 1;
		if (left && (!least || left < least))
			least = left;
	}
	return least;
}

void secret_guard_release(struct secret_guard *guard)
{
	for (int i = 1; i < 3; i++) {
		struct secret_filter *filter = guard->streams[i].filter;
		uint64_t deadline = filter ? secret_filter_deadline(filter) : 0;
		if (deadline && deadline <= (uint64_t)clock_ms() + 1)
			secret_filter_release(filter);
	}
}

void secret_guard_finish(struct secret_guard *guard)
{
	for (int i = 1; i < 3; i++)
		if (guard->streams[i].filter)
			secret_filter_finish(guard->streams[i].filter);
}

uint64_t secret_guard_total(const struct secret_guard *guard, int stream)
{
	return guard->streams[stream].filter ? secret_filter_total(guard->streams[stream].filter) : UINT64_MAX;
}

size_t secret_guard_left_out(const struct secret_guard *guard)
{
	return secret_set_left_out(guard->set);
}

uint64_t secret_guard_count(const struct secret_guard *guard, uint64_t *ret_hidden)
{
	uint64_t count = guard->other_count;
	*ret_hidden = guard->other_hidden;
	for (int i = 1; i < 3; i++) {
		uint64_t hidden = 0;
		count += guard->streams[i].filter ? secret_filter_count(guard->streams[i].filter, &hidden) : 0;
		*ret_hidden += hidden;
	}
	return count;
}

size_t secret_guard_places(struct secret_guard *guard, const struct secret_place **ret_places)
{
	size_t count = guard->place_count;
	for (int i = 1; i < 3; i++) {
		const struct secret_finding *findings;
		size_t found =
			guard->streams[i].filter ? secret_filter_findings(guard->streams[i].filter, &findings) : 0;
		for (size_t k = 0; k < found && count < SECRET_PLACES; k++, count++) {
			guard->places[count].finding = findings[k];
			guard->places[count].is_output = true;
			snprintf(guard->places[count].where, sizeof(guard->places[count].where), "%s",
			         i == 1 ? "stdout" : "stderr");
		}
	}
	*ret_places = guard->places;
	return count;
}

bool secret_guard_is_blocked(const struct secret_guard *guard)
{
	bool is_blocked = guard->is_short_of_memory || guard->is_blocked;
	for (int i = 1; i < 3; i++)
		is_blocked |= guard->streams[i].filter && secret_filter_is_blocked(guard->streams[i].filter);
	return is_blocked;
}
