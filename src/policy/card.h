/* The card: what a human is shown before a command gets more than its session may do without approval.
 *
 * Its content is JSON in one fixed form, and the text that is shown is a part of it: the hash of the content is the
 * hash of what was seen. The same question always has the same content; ids and times are not part of it. A card is
 * shown whole or not at all: a question that needs more than CARD_TEXT_MAX cannot be asked. */
#pragma once
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/place.h"
#include "policy/capability.h"

#define CARD_TEXT_MAX ((size_t)64 * 1024)
#define CARD_HASH_SIZE 65               /* hexadecimal SHA-256, with the NUL */

struct card_question {
	const char *session;                    /* "" for a command without one */
	const char *tool, *program, *cwd;
	const struct strings *argv;
	struct strings env, env_pass;           /* variables that are set (NAME=VALUE), and passed on (NAME) */
	const struct capability_set *excess;    /* what is asked for */
	const struct capability_set *ceiling;   /* what needs no asking, for comparison; or NULL */
	const struct places *places;            /* what the paths in `excess` are; or NULL */
	bool any_program;                       /* any program may start, where the ceiling lists them */
	const char *rule;                       /* why a rule asks; or NULL */
	bool for_session;                       /* nothing runs: the session is to have it from now on */
};

struct card {
	const char *content, *text;             /* the arena's; every character is safe to print */
	char hash[CARD_HASH_SIZE];              /* of `content` */
	struct capability_set excess;           /* normalised, and nothing in it but what is asked for */
};

int card_make(struct arena *arena, const struct card_question *question, struct card *ret_card,
              struct cordon_error *err) must_check;
/* The hash of any content. */
void card_hash(const char *content, char ret_hash[CARD_HASH_SIZE]);
