/* A stream with secrets taken out: bytes in, bytes out, and what was found.
 *
 * What may begin a secret is held back until it is decided. A caller that passes output on as it comes asks
 * secret_filter_deadline() and calls secret_filter_release() then: what is held goes out, complete secrets hidden, and
 * the rest of one that is completed later is hidden when it comes. One that keeps output until the end calls neither.
 * Everything handed to `deliver` together is the stream, with `[REDACTED:name]` in place of each secret. No UTF-8
 * sequence is split between two deliveries. A filter that only reports holds nothing back and changes nothing. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "secrets/scan.h"

const char *secret_action_name(enum secret_action action);
/* SECRET_ACTION_MAX if there is none with this name. */
enum secret_action secret_action_from_name(const char *name);

/* What is done about each kind. */
struct secret_policy {
	uint8_t rows[SECRET_ROWS];      /* enum secret_action, a row of the table each */
	uint8_t own;
};
/* The same for all. */
void secret_policy_set(struct secret_policy *policy, enum secret_action action);
/* For one kind; false if there is no such kind. "own" is the caller's own secrets. */
bool secret_policy_set_kind(struct secret_policy *policy, const char *kind, enum secret_action action);

/* What a search goes by that another process makes. */
struct secret_terms {
	struct secret_set *set;         /* NULL: nothing is searched */
	struct secret_policy policy;
	unsigned char key[SECRET_KEY];
};

#define SECRET_HOLD_MS 100
#define SECRET_FINDINGS 32              /* kept of one stream; all are counted */
#define SECRET_NAME 64

struct secret_finding {
	char name[SECRET_NAME];         /* a kind, or the name of an own secret */
	char layer[SECRET_LAYER_TEXT];
	char fingerprint[2 * SECRET_FINGERPRINT + 1];
	uint64_t offset, length;        /* in the stream as it came, encoding included */
	enum secret_action action;
	bool is_own;
};

struct secret_filter;
typedef void secret_deliver(void *context, const void *bytes, size_t length);

/* What is done about this one: SECRET_EXEMPT where the caller gave it to the command. */
enum secret_action secret_policy_for(const struct secret_policy *policy, const struct secret_set *set,
                                     const struct secret_found *found);
/* Everything about it but where it was. */
void secret_finding_fill(struct secret_finding *finding, const struct secret_set *set,
                         const struct secret_found *found);

/* `set` is shared, `policy` copied; `key` as for secret_scanner_init(). NULL if memory is short. */
struct secret_filter *secret_filter_new(struct secret_set *set, const struct secret_policy *policy,
                                        const unsigned char *key, secret_deliver *deliver, void *context);
void secret_filter_free(struct secret_filter *filter);
/* The key is asked for with the first finding. */
void secret_filter_load_key(struct secret_filter *filter, void (*load)(void *arg, unsigned char *ret_key), void *arg);

/* `now_ms` is any clock that does not go back. */
void secret_filter_add(struct secret_filter *filter, const void *bytes, size_t length, uint64_t now_ms);
/* When what is held is to be released; 0 if nothing is. */
uint64_t secret_filter_deadline(const struct secret_filter *filter);
void secret_filter_release(struct secret_filter *filter);
/* After the last byte: everything is decided and delivered. */
void secret_filter_finish(struct secret_filter *filter);

uint64_t secret_filter_total(const struct secret_filter *filter);       /* bytes that came in */
/* Secrets found, and how many of them were hidden; `ret_hidden` may be NULL. */
uint64_t secret_filter_count(const struct secret_filter *filter, uint64_t *ret_hidden);
/* The first SECRET_FINDINGS of them. */
size_t secret_filter_findings(const struct secret_filter *filter, const struct secret_finding **ret_findings);
bool secret_filter_is_blocked(const struct secret_filter *filter);
