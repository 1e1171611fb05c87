/* What the proxy tells, in the ledger and for the result: see egress.h. The proxy reads what strangers send, so
 * nothing of what it says is taken for granted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/row.h"
#include "base/clock.h"
#include "base/json.h"
#include "egress/egress.h"
#include "policy/cover.h"

static const char *const ways[] = {
	[PROXY_BY_CONNECT] = "connect",  [PROXY_BY_HTTP] = "http", [PROXY_BY_SOCKS] = "socks",
	[PROXY_BY_ADDRESS] = "address",  [PROXY_BY_DNS] = "dns",   [PROXY_BY_GATEWAY] = "gateway",
	[PROXY_PUBLISHED] = "published",
};
_Static_assert(ARRAY_SIZE(ways) == PROXY_WAY_MAX, "every way has a word");

static const char *const decisions[] = {
	[PROXY_ALLOWED] = "allowed", [PROXY_DENIED] = "denied", [PROXY_FAILED] = "failed",
};
_Static_assert(ARRAY_SIZE(decisions) == PROXY_DECISION_MAX, "every decision has a word");

/* ---- is it sound? ------------------------------------------------------------------------------------------------ */

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool is_canonical(const char *text, bool with_port)
{
	struct host host;
	char again[HOST_TEXT_SIZE];
	const char *(*parse)(const char *, size_t, struct host *) = with_port ? host_parse_port : host_parse;
	if (parse(text, strlen(text), &host))
		return false;
	host_text(&host, again);
	return !strcmp(again, text);
}

static bool is_sound_address(const struct address *address)
{
	return address->length == 0 || address->length == 4 || address->length == 16;
}

static bool is_sound_connection(const struct proxy_message *message)
{
	if (message->connection.way >= PROXY_WAY_MAX || message->connection.decision >= PROXY_DECISION_MAX ||
	    !is_sound_address(&message->connection.address) || !is_sound_address(&message->connection.inside))
		return false;
	if (message->connection.open &&
	    (message->kind != PROXY_CONNECTION || !*message->host || message->connection.decision != PROXY_ALLOWED ||
	     message->connection.open != 1))
		return false;
	if (message->connection.outside > 1 ||
	    (message->connection.outside && (message->kind != PROXY_CONNECTION || !*message->host)))
		return false;
	if (message->connection.unresolved > 1 || (message->connection.unresolved && !message->connection.outside))
		return false;
	if (message->kind == PROXY_NAME_DENIED)
		return is_canonical(message->host, false);
	return !*message->host || is_canonical(message->host, true);
}

bool egress_message_is_sound(const struct proxy_message *message)
{
	if (!ends(message->host, sizeof(message->host)) || !ends(message->text, sizeof(message->text)))
		return false;
	switch (message->kind) {
	case PROXY_READY:
	case PROXY_TOLD:
	case PROXY_TOTALS:
		return true;
	case PROXY_CONNECTION:
	case PROXY_NAME_DENIED:
		return is_sound_connection(message);
	case PROXY_QUESTION:
		return is_sound_address(&message->connection.inside) && is_canonical(message->host, true);
	default:
		return false;
	}
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool is_at(const struct address *one, const struct address *other)
{
	return one->length && one->length == other->length && !memcmp(one->bytes, other->bytes, one->length);
}

/* Was it this command? By its token at a port of this machine's loopback, else by the address that it dialled. */
static bool is_of(const struct egress *egress, const struct proxy_message *message, uint32_t number,
                  const struct address *address)
{
	return egress->facts.plan->is_on_loopback ? message->connection.command == number :
	                                            is_at(&message->connection.inside, address);
}

struct egress_command *egress_sender(struct egress *egress, const struct proxy_message *message)
{
	for (struct egress_command *each = egress->commands; each; each = each->next)
		if (is_of(egress, message, each->number, &each->facts.address))
			return each;
	return NULL;
}

/* The same of a command that has ended since. */
static const struct egress_left *find_left(const struct egress *egress, const struct proxy_message *message)
{
	for (size_t i = 0; i < EGRESS_LEFT_MAX; i++)
		if (*egress->left[i].audit_id &&
		    is_of(egress, message, egress->left[i].number, &egress->left[i].address))
			return &egress->left[i];
	return NULL;
}

/* Whose a row is, as far as that is known. */
struct whose {
	bool is_known;
	const char *audit_id, *program;         /* else of the newest command, which may be the only one */
	int64_t began_ms;                       /* since then others may have ended whose it is */
};

static struct whose whose(const struct egress_command *command, bool is_known)
{
	return (struct whose){ is_known, command->facts.audit_id, command->facts.program, INT64_MAX };
}

/* The ids of all that have run since then, into `json` or, where that is NULL, only counted. */
static size_t write_running(struct json *json, const struct egress *egress, int64_t began_ms)
{
	size_t count = 0;
	for (const struct egress_command *each = egress->commands; each; each = each->next, count++)
		if (json)
			json_text(json, each->facts.audit_id);
	for (const struct egress_left *each = egress->left; each < egress->left + EGRESS_LEFT_MAX; each++) {
		if (!*each->audit_id || each->ended_ms <= began_ms)
			continue;
		count++;
		if (json)
			json_text(json, each->audit_id);
	}
	return count;
}

static void begin(struct json *json, const struct egress *egress, const struct whose *whose, const char *decision)
{
	size_t running = whose->is_known ? 0 : write_running(NULL, egress, whose->began_ms);
	/* What shows no token may be anybody's. */
	bool several = running > 1 || (running && (!egress->commands || egress->facts.plan->is_on_loopback));
	audit_row_begin(json, "network", NULL, egress->facts.session_id);
	json_key_string(json, "audit_id", several ? NULL : whose->audit_id);
	json_key_string(json, "program", several ? NULL : whose->program);
	if (several) {
		json_key(json, "running");
		json_array_begin(json);
		write_running(json, egress, whose->began_ms);
		json_array_end(json);
	}
	json_key_string(json, "decision", decision);
}

static int end(struct json *json, struct egress_command *command, struct cordon_error *err)
{
	const struct egress_facts *facts = &command->egress->facts;
	command->rows++;
	/* A probe leaves no trace. */
	if (facts->probe) {
		json_free(json);
		return 0;
	}
	if (egress_clean_row(command->egress, json) < 0) {
		json_free(json);
		return fail_oom(err);
	}
	return audit_row_end_in(json, facts->gate.ledger, command->facts.room, err);
}

static void write_host(struct json *json, const struct proxy_message *message)
{
	struct host host;
	bool has_port = message->kind == PROXY_CONNECTION && *message->host &&
	                !host_parse_port(message->host, strlen(message->host), &host);
	json_key_string(json, "host", has_port ? host.name : message->host);
	json_key(json, "port");
	if (has_port)
		json_uint(json, host.port);
	else
		json_nil(json);
}

/* Of the host that cordon runs on; never to be taken for one of the sandbox's own. */
static bool is_host_service(const struct proxy_message *message)
{
	struct host host;
	return message->kind == PROXY_CONNECTION && message->connection.outside &&
	       !host_parse_port(message->host, strlen(message->host), &host) && host_is_loopback(&host);
}

static int write_row(struct egress_command *command, const struct proxy_message *message, const struct whose *whose,
                     struct cordon_error *err)
{
	char address[ADDRESS_TEXT_SIZE] = "";
	struct json json;
	if (message->connection.address.length)
		address_text(&message->connection.address, address);
	begin(&json, command->egress, whose, decisions[message->connection.decision]);
	write_host(&json, message);
	json_key_string(&json, "address", *address ? address : NULL);
	json_key_string(&json, "way", ways[message->connection.way]);
	json_key_uint(&json, "bytes_in", message->connection.bytes_in);
	json_key_uint(&json, "bytes_out", message->connection.bytes_out);
	json_key_uint(&json, "duration_ms", message->connection.duration_us / 1000);
	if (message->connection.status)
		json_key_uint(&json, "status", message->connection.status);
	if (message->connection.count > 1)
		json_key_uint(&json, "count", message->connection.count);
	if (message->connection.open)
		json_key_bool(&json, "open", true);
	if (is_host_service(message))
		json_key_bool(&json, "host_service", true);
	json_key_string(&json, "why", message->text);
	return end(&json, command, err);
}

int egress_tell_failed(struct egress *egress, const char *why, struct cordon_error *err)
{
	const struct whose owner = whose(egress_owner(egress), false);
	struct json json;
	begin(&json, egress, &owner, decisions[PROXY_FAILED]);
	json_key_string(&json, "why", why);
	return end(&json, egress_owner(egress), err);
}

int egress_tell_rest(struct egress_command *command, struct cordon_error *err)
{
	const struct egress_counts *beyond = &command->beyond;
	const struct whose known = whose(command, true);
	struct json json;
	if (!beyond->connections && !beyond->denied && !beyond->failed)
		return 0;
	begin(&json, command->egress, &known, "more");
	json_key_uint(&json, "connections", beyond->connections);
	json_key_uint(&json, "denied", beyond->denied);
	json_key_uint(&json, "failed", beyond->failed);
	json_key_uint(&json, "bytes_in", beyond->bytes_in);
	json_key_uint(&json, "bytes_out", beyond->bytes_out);
	json_key_string(&json, "why", "these have no row of their own: there were too many");
	return end(&json, command, err);
}

/* ---- counters and denials ---------------------------------------------------------------------------------------- */

static void add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

static void count(struct egress_counts *counts, const struct proxy_message *message)
{
	uint64_t *const by_decision[] = {
		[PROXY_ALLOWED] = &counts->connections,
		[PROXY_DENIED] = &counts->denied,
		[PROXY_FAILED] = &counts->failed,
	};
	add(by_decision[message->connection.decision], message->connection.count ? message->connection.count : 1);
	add(&counts->bytes_in, message->connection.bytes_in);
	add(&counts->bytes_out, message->connection.bytes_out);
}

/* It was granted, and there is no such name, or no service that answers: that is reported like a denial. */
static bool is_missing(const struct proxy_message *message)
{
	return message->connection.decision == PROXY_FAILED &&
	       (message->connection.unresolved || (is_host_service(message) && !message->connection.bytes_in));
}

/* Without a network a name is one thing to allow, whether it was asked for by itself or with a port, and that is
 * kept. */
static bool is_same_host(const struct egress_facts *facts, struct egress_denied *denied, const char *host)
{
	size_t length = strcspn(host, ":"), other = strcspn(denied->host, ":");
	if (!strcmp(denied->host, host))
		return true;
	if (!facts->plan->is_offline || length != other || strncmp(denied->host, host, length) ||
	    host[0] == '[' || (host[length] && denied->host[other]))
		return false;
	if (host[length])
		snprintf(denied->host, sizeof(denied->host), "%s", host);
	return true;
}

static void remember_denied(struct egress_command *command, const struct proxy_message *message)
{
	const struct egress_facts *facts = &command->egress->facts;
	uint64_t times = message->connection.count ? message->connection.count : 1;
	for (size_t i = 0; i < command->denied_count; i++)
		if (is_same_host(facts, &command->denied[i], message->host)) {
			add(&command->denied[i].count, times);
			return;
		}
	if (!command->denied)
		command->denied = calloc(EGRESS_DENIED_MAX, sizeof(*command->denied));
	if (!command->denied || command->denied_count == EGRESS_DENIED_MAX) {
		add(&command->denied_more, times);
		return;
	}
	struct egress_denied *denied = &command->denied[command->denied_count++];
	memcpy(denied->host, message->host, sizeof(denied->host));
	memcpy(denied->why, message->text, sizeof(denied->why));
	if (message->connection.address.length && message->connection.decision == PROXY_DENIED) {
		struct address_verdict verdict = address_judge(&message->connection.address, NULL, 0);
		/* Where the address was not refused, something else was. */
		if (!verdict.allowed)
			address_text(&message->connection.address, denied->address);
		denied->is_at_site = !verdict.allowed && address_is_at_site(&verdict) && strchr(message->host, ':');
	}
	denied->covered = is_missing(message) || cover_host(facts->hosts, message->host, false);
	denied->count = times;
}

static void tell_command(struct egress_command *command, const struct proxy_message *message, bool has_row)
{
	if (!message->connection.open) {
		count(&command->counts, message);
		if (!has_row)
			count(&command->beyond, message);
	}
	if ((message->connection.decision == PROXY_DENIED || is_missing(message)) && *message->host)
		remember_denied(command, message);
}

int egress_tell(struct egress *egress, const struct proxy_message *message, struct cordon_error *err)
{
	const struct egress_left *left = find_left(egress, message);
	struct egress_command *sender = left ? &egress->idle : egress_sender(egress, message),
			      *owner = sender ? sender : egress_owner(egress);
	struct whose told = whose(owner, sender);
	if (left)
		told = (struct whose){ true, left->audit_id, left->program, 0 };
	else if (message->connection.duration_us)
		told.began_ms = clock_ms() - (int64_t)(message->connection.duration_us / 1000) - 1;
	/* What a command makes up must not hide what it reached, whatever it made of that then: of such it may have so
	 * many, and each has its row, and one while it is open. It is counted when it has ended. */
	bool is_outside = message->connection.decision == PROXY_ALLOWED || message->connection.outside;
	uint64_t most = EGRESS_ROWS_MAX;
	for (int i = 0; i < 2 && is_outside; i++)
		add(&most, egress->facts.config->network.total_connections);
	bool has_row = owner->rows < most;
	tell_command(owner, message, has_row);
	for (struct egress_command *other = sender ? NULL : owner->next; other; other = other->next)
		tell_command(other, message, true);
	return has_row ? write_row(owner, message, &told, err) : 0;
}
