/* See publish.h. */
#include "egress/publish.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "config/config.h"
#include "driver/driver.h"
#include "egress/egress.h"

#define BACKLOG 128

struct publish {
	struct arena arena;
	struct strings ports, none;
	struct egress_plan plan;
	unsigned host_ports[PUBLISH_MAX];
	int problems[PUBLISH_MAX];              /* 0, or why it does not listen */
	const struct config *config;            /* referenced */
	struct egress *egress;
};

static int listen_at(unsigned port)
{
	static const int yes = 1;
	struct sockaddr_in name = { .sin_family = AF_INET,
		                    .sin_port = htons((uint16_t)port),
		                    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

static unsigned port_of(int fd)
{
	struct sockaddr_in name = { 0 };
	return getsockname(fd, (struct sockaddr *)&name, &(socklen_t){ sizeof(name) }) < 0 ? 0 : ntohs(name.sin_port);
}

static int refuse(const char *entry, unsigned port, int os_errno, struct cordon_error *err)
{
	fail(err, CORDON_E_INVALID_REQUEST, os_errno, entry,
	     os_errno == EADDRINUSE ? "port %u of this machine is in use" :
	     os_errno == EACCES     ? "port %u of this machine is not for this user" :
	                              "port %u of this machine cannot be listened at",
	     port);
	fail_boundary(err, "network");
	return fail_remedy(err, "choose another: --publish %u%s",
	                   port < 1024  ? port + 8000 :
	                   port < 65535 ? port + 1 :
	                                  port - 1,
	                   strchr(entry, ':'));
}

static int take_ports(struct publish *publish, const struct publish_facts *facts, struct cordon_error *err)
{
	struct egress_listener *listeners = arena_alloc(&publish->arena, PUBLISH_MAX * sizeof(*listeners));
	if (!listeners)
		return fail_oom(err);
	publish->plan = (struct egress_plan){ .listeners = listeners };
	for (size_t i = 0; i < facts->ports->count && i < PUBLISH_MAX; i++) {
		const char *entry = arena_strdup(&publish->arena, facts->ports->items[i]);
		unsigned outer = 0, inner = 0;
		if (!entry || strings_add(&publish->arena, &publish->ports, entry) < 0)
			return fail_oom(err);
		if (sscanf(entry, "%5u:%5u", &outer, &inner) != 2)
			return fail(err, CORDON_E_INTERNAL, 0, entry, "this is no port to publish");
		listeners[i] = (struct egress_listener){ .use = EGRESS_PUBLISHED, .port = (uint16_t)inner };
		publish->host_ports[i] = outer;
		publish->plan.count++;
	}
	return 0;
}

/* The reader waits for them from the start, so they are handed over whatever comes. */
static int listen_all(struct publish *publish, const struct publish_facts *facts, struct cordon_error *err)
{
	int *fds = egress_listeners(publish->egress);
	for (size_t i = 0; i < publish->plan.count; i++) {
		fds[i] = listen_at(publish->host_ports[i]);
		publish->problems[i] = fds[i] < 0 ? -fds[i] : 0;
		if (fds[i] >= 0 && !publish->host_ports[i])
			publish->host_ports[i] = port_of(fds[i]);
		if (fds[i] < 0 && facts->required && strings_find(facts->required, publish->ports.items[i]) >= 0)
			return refuse(publish->ports.items[i], publish->host_ports[i], -fds[i], err);
		fds[i] = fds[i] < 0 ? -1 : fds[i];
	}
	return 0;
}

int publish_begin(const struct publish_facts *facts, struct publish **ret_publish, struct cordon_error *err)
{
	struct publish *publish = calloc(1, sizeof(*publish));
	if (!publish)
		return fail_oom(err);
	publish->config = config_ref(facts->config);
	const struct egress_facts carries = {
		.config = publish->config,
		.plan = &publish->plan,
		.hosts = &publish->none,
		.private_hosts = &publish->none,
		.gate = facts->gate,
		.session_id = facts->session_id,
		.publishes = true,
		.stays = facts->stays,
	};
	if (take_ports(publish, facts, err) < 0 || egress_begin(&carries, &publish->egress, err) < 0 ||
	    listen_all(publish, facts, err) < 0) {
		publish_free(publish);
		return -1;
	}
	*ret_publish = publish;
	return 0;
}

void publish_started(struct publish *publish, const struct sandbox *sandbox)
{
	int user = -1, network = -1;
	bool found = sandbox->driver->network(sandbox, &user, &network) == 0;
	egress_enter(publish->egress, user, network);
	egress_started(publish->egress, found);
}

unsigned publish_host_port(const struct publish *publish)
{
	return publish->host_ports[0];
}

struct egress *publish_egress(const struct publish *publish)
{
	return publish->egress;
}

bool publish_is_for(const struct publish *publish, const struct strings *ports)
{
	return publish ? strings_same(&publish->ports, ports) : !ports->count;
}

void publish_write_json(struct json *json, const struct publish *publish)
{
	json_key(json, "published");
	json_array_begin(json);
	for (size_t i = 0; publish && i < publish->plan.count; i++) {
		json_object_begin(json);
		json_key_uint(json, "host_port", publish->host_ports[i]);
		json_key_uint(json, "port", publish->plan.listeners[i].port);
		json_key_string(json, "why", publish->problems[i] ? strerrordesc_np(publish->problems[i]) : "");
		json_object_end(json);
	}
	json_array_end(json);
}

void publish_free(struct publish *publish)
{
	if (!publish)
		return;
	egress_free(publish->egress);
	config_unref(publish->config);
	arena_free(&publish->arena);
	free(publish);
}
