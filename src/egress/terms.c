/* Tells the proxy what to look for in requests that are sent in the clear. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "egress/egress.h"
#include "secrets/screen.h"

static int send_secret(const struct egress *egress, const struct secret_own *own)
{
	struct proxy_message message = { .kind = PROXY_SECRET };
	int result = 0;
	snprintf(message.host, sizeof(message.host), "%s", own->name);
	message.secret.given = own->is_exempt;
	for (size_t at = 0; at < own->length && result == 0; at += message.secret.length) {
		size_t left = own->length - at,
		       length = left < sizeof(message.secret.bytes) ? left : sizeof(message.secret.bytes);
		memcpy(message.secret.bytes, own->bytes + at, length);
		message.secret.length = (uint16_t)length;
		message.secret.more = length < left;
		result = egress_send(egress, &message, -1);
	}
	sodium_memzero(&message, sizeof(message));
	return result;
}

int egress_send_terms(const struct egress *egress)
{
	const struct secret_terms *terms = &egress->facts.terms;
	struct proxy_message message = { .kind = PROXY_SCAN };
	_Static_assert(sizeof(message.scan.rows) == SECRET_ROWS && sizeof(message.scan.key) == SECRET_KEY,
	               "as the message has it");
	if (!terms->set || egress->facts.plan->is_offline)
		return 0;
	memcpy(message.scan.rows, terms->policy.rows, sizeof(message.scan.rows));
	message.scan.own = terms->policy.own;
	memcpy(message.scan.key, terms->key, sizeof(message.scan.key));
	int result = egress_send(egress, &message, -1);
	sodium_memzero(&message, sizeof(message));
	/* The proxy's set makes the escaped forms itself. */
	for (size_t i = 0; i < secret_set_count(terms->set) && result == 0; i++)
		if (!secret_set_own(terms->set, i)->is_escaped)
			result = send_secret(egress, secret_set_own(terms->set, i));
	return result;
}

int egress_clean_row(const struct egress *egress, struct json *json)
{
	struct secret_policy hide;
	struct secret_screen screen;
	if (!egress->facts.terms.set)
		return 0;
	secret_policy_set(&hide, SECRET_REDACT);
	secret_screen_init(&screen, egress->facts.terms.set, &hide);
	screen.with_given = true;
	int result = secret_screen_json(&screen, json);
	secret_screen_free(&screen);
	return result;
}
