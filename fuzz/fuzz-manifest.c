/* Any bytes as a manifest: read or refused at a place; and what a pattern's own words say, filled in, fits it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* The placeholders stand for `value`. */
static struct strings filled(struct arena *arena, const struct manifest *manifest,
                             const struct manifest_pattern *pattern, const char *value)
{
	struct strings argv = { 0 };
	require(strings_add(arena, &argv, manifest->programs.items[0]) == 0);
	for (size_t i = 0; i < pattern->count; i++) {
		const struct manifest_word *word = &pattern->words[i];
		const char *argument = word->kind == WORD_LITERAL ? word->text :
		                       arena_printf(arena, "%s%s%s", word->before, value, word->after);
		require(strings_add(arena, &argv, argument) == 0);
	}
	return argv;
}

static void check_pattern(struct arena *arena, const struct manifest *manifest, const struct manifest_pattern *pattern)
{
	struct manifest alone = *manifest;
	bool open = false;
	for (size_t i = 0; i < pattern->count; i++)
		open |= pattern->words[i].kind != WORD_LITERAL && !pattern->words[i].option;
	alone.patterns = (struct manifest_pattern *)pattern;
	alone.pattern_count = 1;
	const char *program = manifest->programs.items[0];
	struct strings fits = filled(arena, manifest, pattern, "x y");
	struct strings option = filled(arena, manifest, pattern, "-x");
	struct cordon_error err;
	require(manifest_match(&alone, program, &fits, &err) == 0);
	require(manifest_match(&alone, program, &option, &err) == (open ? -1 : 0));
	require(manifest_match(manifest, program, &fits, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct cordon_error err = { 0 };
	struct manifest manifest;
	unsigned line, column;
	if (manifest_parse(&arena, "FILE", "/home/me", (const char *)data, size, &manifest, &err) < 0) {
		require(err.class == CORDON_E_CONFIG_INVALID && *err.reason);
		require(sscanf(err.subject, "FILE:%u:%u", &line, &column) == 2 && line && column);
	} else {
		require(manifest.name && manifest.programs.count);
		for (size_t i = 0; i < manifest.programs.count; i++)
			require(manifest.programs.items[i][0] == '/');
		for (size_t i = 0; i < manifest.pattern_count; i++)
			check_pattern(&arena, &manifest, &manifest.patterns[i]);
	}
	arena_free(&arena);
	return 0;
}
