/* A proxy at a port of this machine's loopback, as on systems without network namespaces: the library's end and the
 * real program. Each command has a token; whose it is has the row, and no row has the token. The ledger is this test's
 * own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/row.h"
#include "base/json.h"
#include "config/config.h"
#include "egress/egress.h"
#include "support/proxy-process.h"

/* ---- what it stands for ------------------------------------------------------------------------------------------ */

static char *rows[64];
static atomic_size_t row_count;
static pid_t proxy_pid;

void audit_row_begin(struct json *json, const char *kind, const char *id, const char *session_id)
{
	(void)id;
	json_init(json);
	json_object_begin(json);
	json_key_string(json, "row", kind);
	json_key_string(json, "session", session_id);
}

int audit_row_end_in(struct json *json, struct ledger *ledger, struct ledger_room *room, struct cordon_error *err)
{
	(void)ledger, (void)room, (void)err;
	json_object_end(json);
	rows[row_count] = json_take(json);
	row_count++;
	return 0;
}

int egress_send_gateways(const struct egress *egress)
{
	(void)egress;
	return 0;
}

int proxy_gateway_fd(struct cordon_error *err)
{
	return fail(err, CORDON_E_INTERNAL, 0, NULL, "no gateway here");
}

void egress_ask(struct egress *egress, const struct proxy_message *message)
{
	(void)egress, (void)message;
}

void egress_ask_end(struct egress_command *command)
{
	(void)command;
}

int denials_add(struct denials *denials, struct arena *arena, enum cordon_wall wall, const char *what, const char *note,
                const char *grant)
{
	(void)denials, (void)arena, (void)wall, (void)what, (void)note, (void)grant;
	return 0;
}

int proxy_program_fd(struct cordon_error *err)
{
	(void)err;
	return 0;
}

int proxy_open(struct proxy_process *ret_process, struct cordon_error *err)
{
	(void)err;
	int fd = proxy_process_start(PROXY_PROGRAM, NULL, 0, &proxy_pid);
	*ret_process = (struct proxy_process){ .fd = fd, .child_fd = -1, .pidfd = -1 };
	return fd < 0 ? -1 : 0;
}

int proxy_start(struct proxy_process *process, int program_fd, struct cordon_error *err)
{
	(void)process, (void)program_fd, (void)err;
	return 0;
}

void proxy_kill(const struct proxy_process *process)
{
	(void)process;
	if (proxy_pid > 0)
		kill(proxy_pid, SIGKILL);
}

void proxy_end(struct proxy_process *process)
{
	proxy_kill(process);
	if (proxy_pid > 0)
		waitpid(proxy_pid, NULL, 0);
	proxy_pid = -1;
	if (process->fd >= 0)
		close(process->fd);
	process->fd = -1;
}
/* After ours: it has a macro of the name of our fail(). */
#include <cmocka.h>

/* ---- the ground -------------------------------------------------------------------------------------------------- */

static struct {
	struct arena arena;
	struct strings hosts, none;
	struct config config;
	struct egress_plan plan;
	struct egress *egress;
	int server;
	uint16_t proxy_port, server_port;
} ground;

static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 64) == 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

static void begin(bool stays)
{
	struct cordon_error err;
	char host[64];
	memset(&ground, 0, sizeof(ground));
	row_count = 0;
	ground.config.network.connections = 64;
	ground.config.network.total_connections = 1000;
	ground.config.network.connect_ms = ground.config.network.idle_ms = 30000;
	ground.config.network.header_bytes = 16384;
	ground.server = listen_here(&ground.server_port);
	snprintf(host, sizeof(host), "localhost:%u", ground.server_port);
	assert_int_equal(strings_add(&ground.arena, &ground.hosts, arena_strdup(&ground.arena, host)), 0);
	assert_int_equal(egress_make(&ground.arena, &ground.hosts, &ground.plan, &err), 0);
	egress_on_loopback(&ground.plan);
	assert_int_equal(ground.plan.count, 1);
	const struct egress_facts facts = { .config = &ground.config, .plan = &ground.plan, .hosts = &ground.hosts,
		                            .private_hosts = &ground.none, .session_id = "s", .stays = stays };
	assert_int_equal(egress_begin(&facts, &ground.egress, &err), 0);
}

/* The port is taken before anything runs, and handed over once it does. */
static void listen_for_all(void)
{
	*egress_listeners(ground.egress) = listen_here(&ground.proxy_port);
	egress_started(ground.egress, true);
}

static struct egress_command *join(const char *id)
{
	struct egress_command *command;
	struct cordon_error err;
	const struct egress_command_facts facts = { .program = "curl", .audit_id = id };
	assert_int_equal(egress_join(ground.egress, &facts, &command, &err), 0);
	const char *token = egress_command_token(command);
	assert_non_null(token);
	assert_int_equal(strlen(token), PROXY_TOKEN_LENGTH);
	assert_int_equal(strspn(token, "0123456789abcdef"), PROXY_TOKEN_LENGTH);
	return command;
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port),
		                  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	return fd;
}

static void step(void)
{
	if (!ground.egress->facts.stays)
		egress_handle(ground.egress);
}

/* The status of what the proxy says to a CONNECT with this token, or without one. */
static int ask(const char *token)
{
	char request[1024], pair[128], basic[256], heard[1024] = "";
	size_t used = 0;
	int client = connect_to(ground.proxy_port);
	int length = snprintf(request, sizeof(request), "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n",
	                      ground.server_port, ground.server_port);
	if (token) {
		int size = snprintf(pair, sizeof(pair), "cordon:%s", token);
		sodium_bin2base64(basic, sizeof(basic), (unsigned char *)pair, (size_t)size,
		                  sodium_base64_VARIANT_ORIGINAL);
		length += snprintf(request + length, sizeof(request) - (size_t)length,
		                   "Proxy-Authorization: Basic %s\r\n", basic);
	}
	length += snprintf(request + length, sizeof(request) - (size_t)length, "\r\n");
	assert_int_equal(send(client, request, (size_t)length, MSG_NOSIGNAL), length);
	shutdown(client, SHUT_WR);
	while (!strchr(heard, '\n') && used + 1 < sizeof(heard)) {
		ssize_t got = recv(client, heard + used, sizeof(heard) - 1 - used, MSG_DONTWAIT);
		step();
		if (got == 0)
			break;
		used += got > 0 ? (size_t)got : 0;
		if (got < 0)
			usleep(1000);
	}
	int status = strncmp(heard, "HTTP/1.1 ", 9) ? -1 : atoi(heard + 9);
	if (status == 200)
		close(accept(ground.server, NULL, NULL));
	close(client);
	return status;
}

static const char *await_row(size_t index)
{
	for (int i = 0; row_count <= index && i < 30000; i++) {
		step();
		usleep(1000);
	}
	assert_true(row_count > index);
	return rows[index];
}

static void leave(struct egress_command *command)
{
	struct egress_report report = { .arena = &ground.arena };
	struct cordon_error err;
	assert_int_equal(egress_leave(command, &report, &err), 0);
}

static void end(void)
{
	egress_free(ground.egress);
	for (size_t i = 0; i < row_count; i++)
		free(rows[i]);
	close(ground.server);
	arena_free(&ground.arena);
}

static void has_audit_id(const char *row, const char *id)
{
	char wanted[64];
	snprintf(wanted, sizeof(wanted), "\"audit_id\":%s%s%s,", id ? "\"" : "", id ? id : "null", id ? "\"" : "");
	if (!strstr(row, wanted))
		fail_msg("%s not in %s", wanted, row);
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static void of_several_commands(void **state)
{
	char tokens[3][PROXY_TOKEN_LENGTH + 1];
	struct egress_command *commands[3];
	(void)state;
	begin(true);
	commands[0] = join("ONE");
	commands[1] = join("TWO");
	listen_for_all();
	for (int i = 0; i < 2; i++)
		strcpy(tokens[i], egress_command_token(commands[i]));
	assert_string_not_equal(tokens[0], tokens[1]);
	assert_int_equal(ask(tokens[1]), 200);
	has_audit_id(await_row(0), "TWO");
	assert_int_equal(ask(tokens[0]), 200);
	has_audit_id(await_row(1), "ONE");
	/* One that comes while the proxy runs. */
	commands[2] = join("THREE");
	strcpy(tokens[2], egress_command_token(commands[2]));
	usleep(50000);
	assert_int_equal(ask(tokens[2]), 200);
	has_audit_id(await_row(2), "THREE");
	/* Anybody on this machine: no command's. */
	assert_int_equal(ask(NULL), 407);
	has_audit_id(await_row(3), NULL);
	assert_non_null(strstr(rows[3], "\"decision\":\"denied\""));
	assert_non_null(strstr(rows[3], "\"running\":[\"THREE\",\"TWO\",\"ONE\"]"));
	leave(commands[0]);
	assert_int_equal(ask(tokens[0]), 407);
	has_audit_id(await_row(4), NULL);
	assert_non_null(strstr(rows[4], "\"running\":[\"THREE\",\"TWO\"]"));
	assert_int_equal(ask(tokens[1]), 200);
	has_audit_id(await_row(5), "TWO");
	leave(commands[1]);
	leave(commands[2]);
	for (size_t i = 0; i < row_count; i++)
		for (int token = 0; token < 3; token++)
			assert_null(strstr(rows[i], tokens[token]));
	end();
}

static void of_one_command(void **state)
{
	struct cordon_error err;
	char token[PROXY_TOKEN_LENGTH + 1];
	(void)state;
	begin(false);
	struct egress_command *command = join("ONE");
	listen_for_all();
	strcpy(token, egress_command_token(command));
	assert_int_equal(ask(NULL), 407);
	assert_int_equal(ask("0000000000000000000000000000000000000000000000000000000000000000"), 407);
	assert_int_equal(ask(token), 200);
	assert_int_equal(egress_end(ground.egress, &err), 0);
	struct egress_report report = { .arena = &ground.arena };
	assert_int_equal(egress_leave(command, &report, &err), 0);
	assert_int_equal(report.counts.connections, 1);
	assert_int_equal(report.counts.denied, 2);
	bool found = false;
	for (size_t i = 0; i < row_count; i++) {
		found |= strstr(rows[i], "\"decision\":\"allowed\"") && strstr(rows[i], "\"audit_id\":\"ONE\"");
		has_audit_id(rows[i], strstr(rows[i], "\"decision\":\"allowed\"") ? "ONE" : NULL);
		assert_null(strstr(rows[i], token));
	}
	assert_true(found);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_several_commands),
		cmocka_unit_test(of_one_command),
	};
	return cmocka_run_group_tests_name("egress-loopback", tests, NULL, NULL);
}
