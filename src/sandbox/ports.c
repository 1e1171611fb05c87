/* Ports of sandboxes that are up, which were opened one by one: each has listeners and a proxy of its own, so that
 * closing one ends no other's connections. They end with their sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "sandbox/live.h"

static size_t count_ports(const struct live *live)
{
	size_t count = 0;
	for (const struct sandbox_port *port = live->ports; port; port = port->next)
		count++;
	return count;
}

static void free_port(struct sandbox_port *port)
{
	publish_free(port->publish);
	free(port);
}

void live_close_ports(struct live *live)
{
	for (struct sandbox_port *port; (port = live->ports);) {
		live->ports = port->next;
		free_port(port);
	}
}

static bool is_up(const struct live *live)
{
	return live->sandbox && live->sandbox->driver->keeping->is_up(live->sandbox);
}

static int check(const struct live *live, const char *session_id, struct cordon_error *err)
{
	if (!live || !is_up(live)) {
		fail(err, CORDON_E_NOT_FOUND, 0, session_id, "no sandbox of this session is up in this process");
		fail_remedy(err, "start a command of the session first: its sandbox stays");
		return fail_boundary(err, "session");
	}
	if (live->networks && live->networks->is_host) {
		fail(err, CORDON_E_INVALID_REQUEST, 0, session_id,
		     "there is nothing to open: with the network of this machine, a program's ports are this "
		     "machine's");
		fail_remedy(err, "connect to the port itself");
	} else if (!live->sandbox->driver->network) {
		fail(err, CORDON_E_SPAWN_SANDBOX_UNAVAILABLE, 0, session_id, "the driver %s cannot open ports",
		     live->sandbox->driver->name);
		fail_remedy(err, "choose --driver namespaces");
	} else if (count_ports(live) >= PUBLISH_MAX) {
		fail(err, CORDON_E_LIMIT_EXCEEDED, 0, session_id, "%d ports of this session are open", PUBLISH_MAX);
		fail_remedy(err, "close one that is no longer needed");
	} else {
		return 0;
	}
	return fail_boundary(err, "network");
}

/* With the lock of `live` held. */
static int open_port(struct live *live, const struct port_request *request, struct sandbox_port *port,
                     struct cordon_error *err)
{
	struct arena arena = { 0 };
	struct strings ports = { 0 };
	const char *entry = arena_printf(&arena, "%u:%u", request->host_port, request->port);
	const struct publish_facts facts = { .config = request->config, .ports = &ports, .required = &ports,
		                             .gate = request->gate, .session_id = live->session_id, .stays = true };
	int result = -1;
	if (!entry || strings_add(&arena, &ports, entry) < 0)
		fail_oom(err);
	else
		result = publish_begin(&facts, &port->publish, err);
	arena_free(&arena);
	if (result < 0)
		return -1;
	publish_started(port->publish, live->sandbox);
	port->shown = (struct port_shown){ .port = request->port, .host_port = publish_host_port(port->publish) };
	id_make(port->shown.id);
	port->next = live->ports;
	live->ports = port;
	return 0;
}

int sandboxes_open_port(struct sandboxes *sandboxes, const struct port_request *request, struct port_shown *ret_port,
                        struct cordon_error *err)
{
	struct sandbox_port *port = calloc(1, sizeof(*port));
	struct live *live = live_hold(sandboxes, request->session_id);
	int result = port ? 0 : fail_oom(err);
	if (live)
		pthread_mutex_lock(&live->lock);
	if (result == 0)
		result = check(live, request->session_id, err);
	if (result == 0)
		result = open_port(live, request, port, err);
	if (result == 0)
		*ret_port = port->shown;
	if (live) {
		pthread_mutex_unlock(&live->lock);
		live_release(sandboxes, live);
	}
	if (result < 0)
		free(port);
	return result;
}

/* Takes the port out, if it is one of this sandbox's. */
static struct sandbox_port *take_port(struct live *live, const char *id)
{
	struct sandbox_port *port = NULL;
	pthread_mutex_lock(&live->lock);
	for (struct sandbox_port **at = &live->ports; *at && !port; at = port ? at : &(*at)->next)
		if (!strcmp((*at)->shown.id, id)) {
			port = *at;
			*at = port->next;
		}
	pthread_mutex_unlock(&live->lock);
	return port;
}

int sandboxes_close_port(struct sandboxes *sandboxes, struct arena *arena, const char *id, struct port_shown *ret_port,
                         const char **ret_session, struct cordon_error *err)
{
	struct sandbox_port *port = NULL;
	size_t count;
	struct live **lives = live_hold_all(sandboxes, &count);
	for (size_t i = 0; i < count; i++) {
		if (!port && (port = take_port(lives[i], id)))
			*ret_session = arena_strdup(arena, lives[i]->session_id);
		live_release(sandboxes, lives[i]);
	}
	free(lives);
	if (!port) {
		fail(err, CORDON_E_NOT_FOUND, 0, id, "there is no such port open");
		fail_remedy(err, "port.list tells which are; they end with their session's sandbox");
		return fail_boundary(err, "network");
	}
	*ret_port = port->shown;
	free_port(port);
	return *ret_session ? 0 : fail_oom(err);
}

void port_write_json(struct json *json, const char *session_id, const struct port_shown *port)
{
	char url[64];
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port->host_port);
	json_object_begin(json);
	json_key_string(json, "id", port->id);
	json_key_string(json, "session", session_id);
	json_key_string(json, "host", "127.0.0.1");
	json_key_uint(json, "host_port", port->host_port);
	json_key_uint(json, "port", port->port);
	json_key_string(json, "url", url);
	json_object_end(json);
}

void live_write_ports(struct json *json, const struct live *live)
{
	for (const struct sandbox_port *port = is_up(live) ? live->ports : NULL; port; port = port->next)
		port_write_json(json, live->session_id, &port->shown);
}

void sandboxes_write_ports(struct sandboxes *sandboxes, struct json *json, const char *session_id)
{
	size_t count;
	struct live **lives = live_hold_all(sandboxes, &count);
	json_key(json, "ports");
	json_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&lives[i]->lock);
		if (!session_id || !strcmp(session_id, lives[i]->session_id))
			live_write_ports(json, lives[i]);
		pthread_mutex_unlock(&lives[i]->lock);
		live_release(sandboxes, lives[i]);
	}
	json_array_end(json);
	free(lives);
}
