/* The name server of the tests: see name-server.h. One thread; everything it cannot do ends the test. */
#include "support/name-server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAX 65535
#define ROWS_MAX 64
enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28, RCODE_SERVFAIL = 2, RCODE_NXDOMAIN = 3, RCODE_REFUSED = 5 };

struct name_server {
	const struct name_row *rows;
	size_t count;
	unsigned asked[ROWS_MAX];       /* atomically */
	int udp, tcp, stop;
	pthread_t thread;
	char text[32];
};

struct message {
	uint8_t bytes[MESSAGE_MAX];
	size_t length;
	unsigned answers;
};

static void must(bool holds, const char *what)
{
	if (!holds) {
		perror(what);
		abort();
	}
}

static void put16(struct message *message, unsigned value)
{
	message->bytes[message->length++] = (uint8_t)(value >> 8);
	message->bytes[message->length++] = (uint8_t)value;
}

static void put_name(struct message *message, const char *name)
{
	while (*name) {
		size_t length = strcspn(name, ".");
		message->bytes[message->length++] = (uint8_t)length;
		memcpy(message->bytes + message->length, name, length);
		message->length += length;
		name += length + (name[length] == '.');
	}
	message->bytes[message->length++] = 0;
}

/* NULL: the name of the question, compressed. */
static void put_record(struct message *message, const char *owner, unsigned type, const void *data, size_t length)
{
	if (owner)
		put_name(message, owner);
	else
		put16(message, 0xc00c);
	put16(message, type);
	put16(message, 1);
	put16(message, 0);
	put16(message, 60);
	put16(message, (unsigned)length);
	memcpy(message->bytes + message->length, data, length);
	message->length += length;
	message->answers++;
}

static void put_address(struct message *message, const char *owner, unsigned type, const char *text)
{
	uint8_t bytes[16];
	bool is_v6 = strchr(text, ':');
	must(inet_pton(is_v6 ? AF_INET6 : AF_INET, text, bytes) == 1, text);
	if (type == (is_v6 ? TYPE_AAAA : TYPE_A))
		put_record(message, owner, type, bytes, is_v6 ? 16 : 4);
}

static void put_answer(struct message *message, const char *answer, unsigned type, bool again)
{
	char copy[512], owner[256] = "", *rest = copy;
	const char *later = strchr(answer, '|');
	snprintf(copy, sizeof(copy), "%s", later && again ? later + 1 : answer);
	copy[strcspn(copy, "|")] = '\0';
	for (char *word; (word = strsep(&rest, " "));) {
		char *equals = strchr(word, '=');
		if (*word == '>') {
			struct message target = { .length = 0 };
			put_name(&target, word + 1);
			put_record(message, *owner ? owner : NULL, TYPE_CNAME, target.bytes, target.length);
			snprintf(owner, sizeof(owner), "%s", word + 1);
		} else if (*word == '#') {
			for (unsigned i = 0, count = (unsigned)atoi(word + 1); i < count && type == TYPE_A; i++)
				put_record(message, NULL, type, (uint8_t[]){ 93, 1, (uint8_t)(i >> 8), (uint8_t)i }, 4);
		} else if (equals) {
			*equals = '\0';
			put_address(message, word, type, equals + 1);
		} else if (*word) {
			put_address(message, *owner ? owner : NULL, type, word);
		}
	}
}

/* The question, and its end; 0 where it is none. */
static size_t read_question(const uint8_t *bytes, size_t length, char name[256], unsigned *ret_type)
{
	size_t at = 12, used = 0;
	while (at < length && bytes[at] && used + bytes[at] + 2 < 256) {
		memcpy(name + used, bytes + at + 1, bytes[at]);
		used += bytes[at];
		name[used++] = '.';
		at += 1u + bytes[at];
	}
	name[used ? used - 1 : 0] = '\0';
	if (at + 5 > length)
		return 0;
	*ret_type = (unsigned)bytes[at + 1] << 8 | bytes[at + 2];
	return at + 5;
}

/* False: no answer. */
static bool reply(struct name_server *server, const uint8_t *bytes, size_t length, bool is_tcp, struct message *message)
{
	char name[256];
	unsigned type = 0, rcode = 0, flags = 0x8180;
	size_t end = length >= 12 ? read_question(bytes, length, name, &type) : 0, row = 0;
	must(end, "a question");
	while (row < server->count && strcasecmp(server->rows[row].name, name))
		row++;
	memcpy(message->bytes, bytes, end);
	message->length = end;
	message->answers = 0;
	if (row == server->count) {
		rcode = RCODE_NXDOMAIN;
	} else {
		enum name_server_fault fault = server->rows[row].fault;
		unsigned before = __atomic_fetch_add(&server->asked[row], 1, __ATOMIC_SEQ_CST);
		if (fault == SILENT || (fault == SILENT_ON_AAAA && type == TYPE_AAAA))
			return false;
		if (fault == SERVFAIL || (fault == SERVFAIL_ON_AAAA && type == TYPE_AAAA))
			rcode = RCODE_SERVFAIL;
		else if (fault == REFUSES)
			rcode = RCODE_REFUSED;
		else if (fault == TRUNCATES && !is_tcp)
			flags |= 0x200;
		else
			put_answer(message, server->rows[row].answer, type, before >= 2);
		if (fault == GARBLES && message->answers)
			/* the length of the last record */
			message->bytes[message->length - (type == TYPE_A ? 6 : 18)] = 0xff;
		if (fault == CIRCLES && message->answers)
			message->bytes[end + 1] = (uint8_t)end;
	}
	message->bytes[2] = (uint8_t)(flags >> 8);
	message->bytes[3] = (uint8_t)((flags & 0xf0) | rcode);
	memset(message->bytes + 4, 0, 8);
	message->bytes[5] = 1;
	message->bytes[6] = (uint8_t)(message->answers >> 8);
	message->bytes[7] = (uint8_t)message->answers;
	return true;
}

static bool lies(const struct name_server *server, const uint8_t *bytes, size_t length)
{
	char name[256];
	unsigned type;
	if (!read_question(bytes, length, name, &type))
		return false;
	for (size_t i = 0; i < server->count; i++)
		if (!strcasecmp(server->rows[i].name, name))
			return server->rows[i].fault == LIES_FIRST;
	return false;
}

static void send_to(const struct name_server *server, const struct message *message, const struct sockaddr_in *to)
{
	ssize_t sent =
		sendto(server->udp, message->bytes, message->length, 0, (const struct sockaddr *)to, sizeof(*to));
	must(sent >= 0, "sendto");
}

static void serve_udp(struct name_server *server, struct message *message)
{
	uint8_t bytes[1024];
	struct sockaddr_in from;
	socklen_t from_length = sizeof(from);
	ssize_t length = recvfrom(server->udp, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &from_length);
	must(length >= 0, "recvfrom");
	if (lies(server, bytes, (size_t)length)) {
		struct message lie = { .length = 0 };
		size_t end;
		char name[256];
		unsigned type;
		end = read_question(bytes, (size_t)length, name, &type);
		memcpy(lie.bytes, bytes, end);
		lie.length = end;
		put_address(&lie, NULL, type, type == TYPE_A ? "10.6.6.6" : "fd00::6");
		lie.bytes[0] ^= 0x55;
		lie.bytes[2] = 0x81;
		lie.bytes[3] = 0x80;
		lie.bytes[7] = 1;
		send_to(server, &lie, &from);
	}
	if (reply(server, bytes, (size_t)length, false, message))
		send_to(server, message, &from);
}

/* One question of a connection, which may ask more. False: it is over. */
static bool serve_tcp(struct name_server *server, int fd, struct message *message)
{
	uint8_t bytes[2 + 1024];
	if (recv(fd, bytes, 2, MSG_WAITALL) != 2)
		return false;
	size_t length = (size_t)bytes[0] << 8 | bytes[1];
	if (length > 1024 || recv(fd, bytes + 2, length, MSG_WAITALL) != (ssize_t)length)
		return false;
	if (!reply(server, bytes + 2, length, true, message))
		return true;
	uint8_t size[2] = { (uint8_t)(message->length >> 8), (uint8_t)message->length };
	return send(fd, size, 2, MSG_NOSIGNAL) == 2 &&
	       send(fd, message->bytes, message->length, MSG_NOSIGNAL) == (ssize_t)message->length;
}

enum { STOP, UDP, TCP, CONNECTIONS, POLLED_MAX = 64 };

static void *serve(void *arg)
{
	struct name_server *server = arg;
	struct message *message = calloc(1, sizeof(*message));
	struct pollfd fds[POLLED_MAX] = {
		[STOP] = { server->stop, POLLIN, 0 },
		[UDP] = { server->udp, POLLIN, 0 },
		[TCP] = { server->tcp, POLLIN, 0 },
	};
	nfds_t count = CONNECTIONS;
	must(message, "calloc");
	for (;;) {
		must(poll(fds, count, -1) > 0, "poll");
		if (fds[STOP].revents)
			break;
		if (fds[UDP].revents)
			serve_udp(server, message);
		for (nfds_t i = CONNECTIONS; i < count; i++)
			if (fds[i].revents && !serve_tcp(server, fds[i].fd, message)) {
				close(fds[i].fd);
				fds[i--] = fds[--count];
			}
		if (fds[TCP].revents && count < POLLED_MAX)
			fds[count++] = (struct pollfd){ accept4(server->tcp, NULL, NULL, SOCK_CLOEXEC), POLLIN, 0 };
	}
	while (count > CONNECTIONS)
		close(fds[--count].fd);
	free(message);
	return NULL;
}

struct name_server *name_server_start(const struct name_row *rows, size_t count)
{
	struct name_server *server = calloc(1, sizeof(*server));
	must(server && count <= ROWS_MAX, "calloc");
	server->rows = rows;
	server->count = count;
	server->stop = eventfd(0, EFD_CLOEXEC);
	/* The same port for both; it may be taken for one of them. */
	for (int attempt = 0;; attempt++) {
		struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t length = sizeof(address);
		server->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		server->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		must(bind(server->udp, (struct sockaddr *)&address, length) == 0, "bind");
		must(getsockname(server->udp, (struct sockaddr *)&address, &length) == 0, "getsockname");
		snprintf(server->text, sizeof(server->text), "127.0.0.1:%u", ntohs(address.sin_port));
		if (bind(server->tcp, (struct sockaddr *)&address, length) == 0 && listen(server->tcp, 16) == 0)
			break;
		must(attempt < 20, "a port for UDP and TCP");
		close(server->udp);
		close(server->tcp);
	}
	must(pthread_create(&server->thread, NULL, serve, server) == 0, "pthread_create");
	return server;
}

void name_server_stop(struct name_server *server)
{
	uint64_t one = 1;
	must(write(server->stop, &one, sizeof(one)) == sizeof(one), "eventfd");
	must(pthread_join(server->thread, NULL) == 0, "pthread_join");
	close(server->udp);
	close(server->tcp);
	close(server->stop);
	free(server);
}

const char *name_server_text(const struct name_server *server)
{
	return server->text;
}

unsigned name_server_asked(struct name_server *server, const char *name)
{
	for (size_t i = 0; i < server->count; i++)
		if (!strcasecmp(server->rows[i].name, name))
			return __atomic_load_n(&server->asked[i], __ATOMIC_SEQ_CST);
	return 0;
}
