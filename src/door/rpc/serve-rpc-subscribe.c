/* What else a connection is told without asking, as notices:
 *
 *     approvals.asked     a question; approvals.settled: its card: after approvals.subscribe
 *     event               of sessions, processes, approvals and ports: after events.subscribe
 *
 * All are looked for at one place and time: what is there now is compared with what each client was told of, so that
 * one that leaves much unread is told later, of what has changed by then. Sessions and ports have rows in the ledger,
 * and are told of by these, also where another process of this user changed them. */
#include <stdio.h>
#include <string.h>

#include "door/rpc/serve-rpc.h"

#define LOOK_MS 250
#define ROWS_MOST 500

enum event_kind { EVENT_SESSION = 1, EVENT_PROCESS = 2, EVENT_APPROVAL = 4, EVENT_PORT = 8, EVENT_ALL = 15 };

struct subscriptions {
	bool questions;            /* approvals.subscribe */
	json_t *asked;             /* the questions that were told by it */
	unsigned kinds;            /* events.subscribe */
	json_t *cards, *processes; /* the questions and processes that were told by it */
	char *rows;                /* the place in the ledger up to which it was told */
};

static void tell(struct client *client, const char *method, json_t *params)
{
	struct json json;
	size_t length;
	auto_free char *text = params ? json_dumps(params, JSON_COMPACT) : NULL;
	json_decref(params);
	if (!text)
		return;
	rpc_notice_begin(&json, method);
	json_verbatim(&json, text);
	char *line = rpc_end(&json, &length);
	rpc_send(client, line, length);
}

/* The member `name` of what a method answers; NULL: there is none. */
static json_t *look(struct server *server, const char *method, const char *params, const char *name)
{
	struct cordon_value *result;
	struct cordon_error err;
	if (cordon_call(server->cordon, method, params, &result, &err) < 0)
		return NULL;
	auto_free char *text = cordon_value_json(result, name);
	cordon_value_unref(result);
	return text ? json_loads(text, 0, NULL) : NULL;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

static json_t *find_in(const json_t *list, const char *id)
{
	size_t i;
	json_t *each;
	json_array_foreach(list, i, each) if (!strcmp(text_of(each, "id"), id)) return each;
	return NULL;
}

static void keep(json_t **kept, json_t *now)
{
	json_decref(*kept);
	*kept = json_incref(now);
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

static void tell_question(struct client *client, json_t *card, bool asked, bool as_event)
{
	if (as_event)
		tell(client, "event",
		     json_pack("{s:s, s:s, s:O}", "kind", "approval", "change", asked ? "asked" : "settled", "approval",
			       card));
	else
		tell(client, asked ? "approvals.asked" : "approvals.settled",
		     asked ? json_incref(card) : json_pack("{s:s}", "card", text_of(card, "id")));
}

static void tell_questions(struct client *client, json_t **told, json_t *now, bool as_event)
{
	size_t i;
	json_t *each;
	if (*told == now)
		return;
	json_array_foreach(now, i, each) if (!find_in(*told, text_of(each, "id")))
		tell_question(client, each, true, as_event);
	json_array_foreach(*told, i, each) if (!find_in(now, text_of(each, "id")))
		tell_question(client, each, false, as_event);
	keep(told, now);
}

static void look_for_questions(struct server *server)
{
	struct cordon_error err;
	char *now;
	if (cordon_approvals_list(server->cordon, &now, &err) < 0)
		return;
	if (server->asked && !strcmp(now, server->asked)) {
		free(now);
		return;
	}
	json_t *whole = json_loads(now, 0, NULL);
	free(server->asked);
	server->asked = now;
	json_decref(server->asked_list);
	server->asked_list = json_incref(json_object_get(whole, "approvals"));
	json_decref(whole);
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

static bool has_ended(const json_t *process)
{
	return !strcmp(text_of(process, "state"), "ended");
}

static void tell_processes(struct client *client, json_t **told, json_t *now)
{
	size_t i;
	json_t *each;
	json_array_foreach(now, i, each)
	{
		const json_t *before = find_in(*told, text_of(each, "id"));
		if (!before)
			tell(client, "event",
			     json_pack("{s:s, s:s, s:O}", "kind", "process", "change", "started", "process", each));
		if (has_ended(each) && !(before && has_ended(before)))
			tell(client, "event",
			     json_pack("{s:s, s:s, s:O}", "kind", "process", "change", "ended", "process", each));
	}
	keep(told, now);
}

/* ---- sessions and ports ---------------------------------------------------------------------------------------- */

static void tell_row(struct client *client, unsigned kinds, json_t *row)
{
	const char *change = text_of(row, "change");
	bool is_port = !strncmp(change, "port ", 5);
	if (kinds & (is_port ? EVENT_PORT : EVENT_SESSION))
		tell(client, "event",
		     json_pack("{s:s, s:s, s:s, s:O}", "kind", is_port ? "port" : "session", "change",
			       is_port ? change + 5 : change, "session", text_of(row, "session"), "row", row));
}

static void tell_rows(struct client *client, struct subscriptions *told)
{
	char params[200];
	size_t i;
	json_t *each;
	snprintf(params, sizeof(params), "{\"decision\":\"session\",\"after\":\"%.100s\",\"limit\":%d}", told->rows,
		 ROWS_MOST);
	json_t *answer = look(client->server, "audit.query", params, "");
	json_array_foreach(json_object_get(answer, "rows"), i, each) tell_row(client, told->kinds, each);
	char *next = answer ? strdup(text_of(answer, "next")) : NULL;
	if (next) {
		free(told->rows);
		told->rows = next;
	}
	json_decref(answer);
}

/* ---- the look -------------------------------------------------------------------------------------------------- */

static void tell_changes(struct client *client, json_t *processes)
{
	struct server *server = client->server;
	struct subscriptions *told = client->subscriptions;
	if (!told || client_unread(client) > UNREAD_MAX)
		return;
	if (told->questions)
		tell_questions(client, &told->asked, server->asked_list, false);
	if (told->kinds & EVENT_APPROVAL)
		tell_questions(client, &told->cards, server->asked_list, true);
	if (told->kinds & EVENT_PROCESS && processes)
		tell_processes(client, &told->processes, processes);
	if (told->kinds & (EVENT_SESSION | EVENT_PORT))
		tell_rows(client, told);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	unsigned kinds = 0;
	(void)fd, (void)what;
	for (struct client *client = server->clients; client; client = client->next)
		if (client->subscriptions)
			kinds |=
				client->subscriptions->kinds | (client->subscriptions->questions ? EVENT_APPROVAL : 0u);
	if (!kinds)
		return;
	evtimer_add(&server->questions, &(struct timeval){ .tv_usec = LOOK_MS * 1000 });
	if (kinds & EVENT_APPROVAL)
		look_for_questions(server);
	json_t *processes = kinds & EVENT_PROCESS ? look(server, "process.list", NULL, "processes") : NULL;
	for (struct client *client = server->clients; client; client = client->next)
		tell_changes(client, processes);
	json_decref(processes);
}

static void look_now(struct server *server)
{
	if (!event_initialized(&server->questions))
		evtimer_assign(&server->questions, server->base, on_look, server);
	on_look(-1, 0, server);
}

static unsigned kinds_of(const json_t *list)
{
	static const struct {
		const char *name;
		enum event_kind kind;
	} names[] = { { "session", EVENT_SESSION },
		      { "process", EVENT_PROCESS },
		      { "approval", EVENT_APPROVAL },
		      { "port", EVENT_PORT } };
	unsigned kinds = list ? 0 : EVENT_ALL;
	size_t i;
	json_t *each;
	json_array_foreach(list, i, each) for (size_t j = 0; j < ARRAY_SIZE(names); j++) kinds |=
		strcmp(names[j].name, json_string_value(each)) ? 0u : names[j].kind;
	return kinds;
}

/* What is there already is not told. */
static void begin_events(struct client *client, const struct rpc_call *call, const struct cordon_value *result)
{
	struct subscriptions *told = client->subscriptions;
	const char *next = cordon_value_text(result, "next", NULL);
	char *rows = strdup(next ? next : "");
	if (!rows)
		return;
	free(told->rows);
	told->rows = rows;
	told->kinds = kinds_of(json_object_get(call->params, "kinds"));
	look_for_questions(client->server);
	keep(&told->cards, client->server->asked_list);
	json_t *processes = look(client->server, "process.list", NULL, "processes");
	keep(&told->processes, processes);
	json_decref(processes);
	look_now(client->server);
}

static void end_questions(struct subscriptions *told)
{
	told->questions = false;
	keep(&told->asked, NULL);
}

void subscriptions_take(struct client *client, const struct rpc_call *call, const struct cordon_value *result)
{
	bool asks = !strcmp(call->method, "approvals.subscribe"), events = !strcmp(call->method, "events.subscribe");
	if ((asks || events) && !client->subscriptions)
		client->subscriptions = calloc(1, sizeof(*client->subscriptions));
	struct subscriptions *told = client->subscriptions;
	if (!told)
		return;
	if (asks) {
		/* The new one is told at once of what waits already. */
		told->questions = true;
		look_now(client->server);
	} else if (events) {
		begin_events(client, call, result);
	} else if (!strcmp(call->method, "approvals.unsubscribe")) {
		end_questions(told);
	} else if (!strcmp(call->method, "events.unsubscribe")) {
		told->kinds = 0;
	}
}

void subscriptions_end(struct client *client)
{
	struct subscriptions *told = client->subscriptions;
	if (!told)
		return;
	end_questions(told);
	keep(&told->cards, NULL);
	keep(&told->processes, NULL);
	free(told->rows);
	free(told);
	client->subscriptions = NULL;
}
