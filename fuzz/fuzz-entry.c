/* Any bytes as what a daemon says to the program's first code, which is compiled here with system calls of our own: they cut
 * the bytes, and what is written, wherever the first byte of the input wants it. What comes of it is what wire-read.c
 * sees in the same bytes. */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "door/wire-read.h"
#include "run/sys.h"

#define sys6 fake_call
#define sys_exit fake_exit
static long fake_call(long nr, long a, long b, long c, long d, long e, long f);
static _Noreturn void fake_exit(int status);
#include "entry/client.c"
#undef sys6
#undef sys_exit

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SOCKET 77
enum end { GONE_ON, DECLINED, FAILED, EXITED };

struct entry_handed entry_handed;

static struct {
	const uint8_t *data;
	size_t size, at;
	unsigned pace;
	char *out[3];
	size_t length[3];
	int status;
	jmp_buf left;
} world;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void add(char **out, size_t *length, const void *bytes, size_t count)
{
	must((*out = realloc(*out, *length + count + 1)) != NULL);
	memcpy(*out + *length, bytes, count);
	*length += count;
}

static long fake_read(void *to, size_t room)
{
	size_t length = world.size - world.at, most = 1 + world.pace * 3u % 5000;
	length = length < room ? length : room;
	length = length < most ? length : most;
	must(room > 0);
	memcpy(to, world.data + world.at, length);
	world.at += length;
	return (long)length;
}

static long fake_poll(struct pollfd *ready, long count)
{
	long found = 0;
	for (long i = 0; i < count; i++) {
		ready[i].revents = ready[i].fd >= 0 && (ready[i].events & POLLOUT || ready[i].fd == SOCKET) ? ready[i].events : 0;
		found += ready[i].revents != 0;
	}
	must(found > 0);
	return found;
}

static long fake_call(long nr, long a, long b, long c, long d, long e, long f)
{
	(void)d, (void)e, (void)f;
	if (nr == SYS_read && a == SOCKET)
		return fake_read((void *)b, (size_t)c);
	if (nr == SYS_ppoll)
		return fake_poll((struct pollfd *)a, b);
	if (nr == SYS_write) {
		size_t length = world.pace % 7 ? (size_t)c : 1 + (size_t)c / 2;
		must((a == 1 || a == 2) && c > 0);
		add(&world.out[a], &world.length[a], (const void *)b, length);
		return (long)length;
	}
	return nr == SYS_writev ? (long)sizeof(struct wire_head) + 4 : 0;
}

static void fake_exit(int status)
{
	world.status = status;
	longjmp(world.left, 1);
}

bool entry_hello(const struct entry_process *process, struct conversation *conversation)
{
	(void)process;
	conversation->socket = SOCKET;
	conversation->signal_fd = -1;
	conversation->out[1] = 1;
	conversation->out[2] = 2;
	conversation->stdin_open = conversation->stdin_terminal = false;
	return true;
}

bool entry_is_in_foreground(int fd)
{
	(void)fd;
	return true;
}

void entry_release_signals(struct conversation *conversation)
{
	(void)conversation;
}

static enum end run(void)
{
	if (setjmp(world.left))
		return EXITED;
	entry_converse(NULL);
	return entry_handed.what == ENTRY_GOES_ON ? GONE_ON : entry_handed.what == ENTRY_DECLINED ? DECLINED : FAILED;
}

static int stream_of(uint8_t kind)
{
	return kind == WIRE_STDOUT || kind == WIRE_SAY_OUT ? 1 : kind == WIRE_STDERR || kind == WIRE_SAY_ERR ? 2 : 0;
}

/* The same by the reader of the whole program. */
static enum end expect(const char *bytes, size_t size, char *out[3], size_t length[3], uint32_t *ret_status)
{
	struct wire_frame frame;
	enum wire_state state;
	for (; (state = wire_next(bytes, size, false, &frame)) == WIRE_WHOLE; bytes += frame.size, size -= frame.size) {
		int stream = stream_of(frame.head.kind);
		if (frame.head.zero || frame.head.kind == WIRE_ASK || frame.head.kind == WIRE_SETTLED)
			return GONE_ON;
		if (frame.head.kind == WIRE_DECLINE)
			return DECLINED;
		if (frame.head.kind == WIRE_END)
			return wire_number(&frame, ret_status) ? EXITED : FAILED;
		if (stream)
			add(&out[stream], &length[stream], frame.body, frame.head.length);
	}
	struct wire_head head;
	if (state == WIRE_PARTIAL && size >= sizeof(head)) {
		memcpy(&head, bytes, sizeof(head));
		if (stream_of(head.kind) && !head.zero) /* is written as it comes */
			add(&out[stream_of(head.kind)], &length[stream_of(head.kind)], bytes + sizeof(head), size - sizeof(head));
	}
	return GONE_ON;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *out[3] = { NULL };
	size_t length[3] = { 0 };
	uint32_t status = 0;
	if (!size)
		return 0;
	memset(&world, 0, sizeof(world));
	memset(&entry_handed, 0, sizeof(entry_handed));
	world.data = data + 1;
	world.size = size - 1;
	world.pace = data[0];
	enum end seen = run();
	must(seen == expect((const char *)data + 1, size - 1, out, length, &status));
	must(seen != EXITED || world.status == (int)status);
	must(entry_handed.from <= entry_handed.to && entry_handed.to <= ENTRY_BYTES);
	for (int i = 1; i <= 2; i++) {
		must(world.length[i] == length[i] && (!length[i] || !memcmp(world.out[i], out[i], length[i])));
		free(world.out[i]);
		free(out[i]);
	}
	return 0;
}
