/* Writing an order: see order.h. */
#include "driver/linux/order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compat.h"

static size_t add(char *to, const char *text)
{
	size_t length = strlen(text) + 1;
	if (to)
		memcpy(to, text, length);
	return length;
}

static size_t add_all(char *to, const char *const *texts, uint32_t *ret_count)
{
	size_t length = 0;
	*ret_count = 0;
	for (; texts[*ret_count]; (*ret_count)++)
		length += add(to ? to + length : NULL, texts[*ret_count]);
	return length;
}

/* Once to measure, with `to` NULL, and once to write. */
static size_t put_texts(const struct launch *launch, struct order *order, char *to)
{
	size_t length = add(to, launch->cwd);
	length += add_all(to ? to + length : NULL, launch->candidates, &order->candidates);
	length += add_all(to ? to + length : NULL, launch->argv, &order->arguments);
	return length + add_all(to ? to + length : NULL, launch->environment, &order->variables);
}

int order_write(const struct launch *launch, struct cordon_error *err)
{
	struct order order = {
		.rlimit_count = (uint32_t)launch->seal.rlimit_count,
		.program_device = launch->program_device,
		.program_inode = launch->program_inode,
		.umask = launch->umask,
		.rows = launch->rows,
		.columns = launch->columns,
		.program_judged = launch->program_judged,
		.check_program = launch->check_program,
		.own_session = launch->own_session,
		.close_descriptors = launch->close_descriptors,
		.tty = launch->tty,
		.narrow = launch->narrow,
		.tells_renames = launch->tells_renames,
	};
	size_t length = put_texts(launch, &order, NULL);
	/* Each list of pointers is ended by NULL. */
	size_t text_at =
		sizeof(order) + (order.candidates + order.arguments + order.variables + UINT64_C(3)) * sizeof(char *);
	order.size = text_at + length;
	if (order.size > ORDER_MAX || order.rlimit_count > ORDER_RLIMITS_MAX)
		return fail(err, CORDON_E_INVALID_REQUEST, E2BIG, "run", "the arguments and environment are too long");
	memcpy(order.rlimits, launch->seal.rlimits, order.rlimit_count * sizeof(*order.rlimits));
	auto_close int fd = memfd_create("cordon-order", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)order.size) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "memfd_create", "cannot store the command to execute");
	char *texts = malloc(length);
	if (!texts)
		return fail_oom(err);
	put_texts(launch, &order, texts);
	bool written = pwrite(fd, &order, sizeof(order), 0) == (ssize_t)sizeof(order) &&
	               pwrite(fd, texts, length, (off_t)text_at) == (ssize_t)length;
	explicit_bzero(texts, length);
	free(texts);
	if (!written)
		return fail(err, CORDON_E_INTERNAL, errno, "write", "cannot store the command to execute");
	return take_fd(&fd);
}
