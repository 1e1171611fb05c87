/* See ask.h. */
#include "door/rpc/ask.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "door/wire/hello.h"

#define ANSWER_MAX (4u << 20)
#define PATIENCE_S 2

static int send_request(int fd, const char *method, const char *id)
{
	json_t *request =
		json_pack("{s:s,s:i,s:s,s:{s:s*}}", "jsonrpc", "2.0", "id", 1, "method", method, "params", "id", id);
	auto_free char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_decref(request);
	if (!text)
		return -1;
	size_t length = strlen(text);
	text[length] = '\n';
	return send(fd, text, length + 1, MSG_NOSIGNAL) == (ssize_t)length + 1 ? 0 : -1;
}

/* One line; NULL: there is none. */
static char *read_line(int fd)
{
	size_t length = 0, capacity = 0;
	char *text = NULL;
	for (;;) {
		if (length == capacity) {
			capacity = capacity ? 2 * capacity : 4096;
			char *grown = capacity <= ANSWER_MAX ? realloc(text, capacity + 1) : NULL;
			if (!grown)
				break;
			text = grown;
		}
		ssize_t got = recv(fd, text + length, capacity - length, 0);
		if (got <= 0)
			break;
		length += (size_t)got;
		text[length] = '\0';
		char *end = memchr(text, '\n', length);
		if (end) {
			*end = '\0';
			return text;
		}
	}
	free(text);
	return NULL;
}

json_t *ask_daemon(const char *host, const char *method, const char *id)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	auto_close int fd = hello_connect(host);
	if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    send_request(fd, method, id) < 0)
		return NULL;
	auto_free char *line = read_line(fd);
	json_t *answer = line ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;
	json_t *result = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	return result;
}
