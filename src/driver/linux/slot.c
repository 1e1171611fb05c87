/* The supervisor's half of slot.h: keepers, plans, slots. */
#include "driver/linux/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compat.h"
#include "driver/linux/await.h"
#include "driver/linux/control.h"
#include "driver/linux/receive.h"

#define READY_MS 10000                  /* far more than it ever takes */

/* ---- the keeper ------------------------------------------------------------------------------------------------- */

/* One of the same user, without walls. */
static struct launch plain_launch(const struct launch *launch, const char *mode, int control_fd)
{
	return (struct launch){
		.become = launch->become, .uid = launch->uid, .gid = launch->gid, .group_fd = -1, .group_joins = { -1, -1, -1 },
		.seal.drop_privileges = launch->seal.drop_privileges, .cwd_fd = -1, .stdio = { -1, -1, -1 }, .pass = { -1 },
		.init_fd = -1, .init_mode = mode, .control_fd = control_fd, .heard_fd = -1, .slot_fd = -1, .report_fd = -1, .ready_fd = -1,
		.go_fd = -1,
	};
}

struct keeper {
	int socket_fd, pidfd;
	atomic_uint users;
};

static int start(const struct launch *launch, struct keeper *keeper, struct cordon_error *err)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make the keeper's socket");
	auto_close int ours = sockets[0], theirs = sockets[1];
	struct launch plain = plain_launch(launch, INIT_KEEPER, theirs);
	plain.init_fd = launch_init_fd(err);
	if (plain.init_fd < 0 || launch_start(&plain, err) < 0)
		return -1;
	keeper->socket_fd = take_fd(&ours);
	keeper->pidfd = plain.pidfd;
	atomic_init(&keeper->users, 1);
	return 0;
}

int keeper_start(const struct launch *launch, struct keeper **ret_keeper, struct cordon_error *err)
{
	struct keeper *keeper = malloc(sizeof(*keeper));
	if (!keeper)
		return fail_oom(err);
	if (start(launch, keeper, err) < 0) {
		free(keeper);
		return -1;
	}
	*ret_keeper = keeper;
	return 0;
}

/* Keepers that were told to end, and wait for what runs in their slots. */
static pthread_mutex_t leaving_lock = PTHREAD_MUTEX_INITIALIZER;
static struct leaving {
	struct leaving *next;
	int pidfd;
} *leaving;

bool keeper_is_alive(const struct keeper *keeper)
{
	struct pollfd ended = { .fd = keeper->socket_fd, .events = POLLIN };
	return poll(&ended, 1, 0) == 0;
}

struct keeper *keeper_ref(struct keeper *keeper)
{
	keeper->users++;
	return keeper;
}

void keeper_unref(struct keeper *keeper)
{
	if (!keeper || --keeper->users)
		return;
	struct leaving *item = malloc(sizeof(*item));
	close_fd(&keeper->socket_fd);
	if (item) {
		item->pidfd = take_fd(&keeper->pidfd);
		pthread_mutex_lock(&leaving_lock);
		item->next = leaving;
		leaving = item;
		pthread_mutex_unlock(&leaving_lock);
	}
	close_fd(&keeper->pidfd);
	free(keeper);
}

void keeper_sweep(bool wait)
{
	pthread_mutex_lock(&leaving_lock);
	for (struct leaving **link = &leaving, *item; (item = *link);) {
		if (!await_gone(item->pidfd, wait)) {
			link = &item->next;
			continue;
		}
		*link = item->next;
		close(item->pidfd);
		free(item);
	}
	pthread_mutex_unlock(&leaving_lock);
}

/* ---- the plan --------------------------------------------------------------------------------------------------- */

/* Descriptors are counted in this order by whoever packs, sends and places them. */
struct positions {
	int fds[SLOT_DESCRIPTORS_MAX];
	int count;
};

static int position(struct positions *positions, int fd)
{
	if (fd < 0)
		return -1;
	if (SLOT_REQUEST_COMMONS + SLOT_COMMONS_MAX + positions->count == SLOT_DESCRIPTORS_MAX)
		return SLOT_DESCRIPTORS_MAX;
	positions->fds[positions->count] = fd;
	return positions->count++;
}

/* The parts of a control group come first: how many there are does not depend on the plan. `trees` may be NULL. */
static void collect(const struct launch *launch, struct positions *positions, int joins[LAUNCH_JOIN_MAX], int *trees,
                    int *ret_skeleton)
{
	const struct launch_root *root = launch->root;
	positions->count = 0;
	for (int i = 0; i < LAUNCH_JOIN_MAX; i++)
		joins[i] = launch->in_group ? position(positions, launch->group_joins[i]) : -1;
	*ret_skeleton = root->skeleton_tree >= 0 ? position(positions, root->skeleton_tree) : -1;
	for (size_t i = 0; root->trees && i < root->count; i++) {
		int at = position(positions, root->trees[i]);
		if (trees)
			trees[i] = at;
	}
}

#define FIELD(base, type, field) ((base) + (uint32_t)offsetof(type, field))

static void pack_ops(struct slot_packer *packer, uint32_t root_at, const struct launch_root *root)
{
	uint32_t ops = slot_pack_bytes(packer, root->ops, root->count * sizeof(*root->ops));
	slot_pack_point(packer, FIELD(root_at, struct launch_root, ops), ops);
	for (size_t i = 0; i < root->count && !packer->full; i++) {
		uint32_t at = ops + (uint32_t)(i * sizeof(*root->ops));
		slot_pack_text(packer, FIELD(at, struct mount_op, target), root->ops[i].target);
		slot_pack_text(packer, FIELD(at, struct mount_op, source), root->ops[i].source);
	}
}

static void pack_root(struct slot_packer *packer, uint32_t launch_at, const struct launch_root *root, const int *trees,
                      int skeleton)
{
	struct launch_root copy = *root;
	copy.skeleton_tree = skeleton;
	uint32_t at = slot_pack_bytes(packer, &copy, sizeof(copy));
	slot_pack_point(packer, FIELD(launch_at, struct launch, root), at);
	pack_ops(packer, at, root);
	slot_pack_text(packer, FIELD(at, struct launch_root, skeleton), root->skeleton);
	if (root->trees)
		slot_pack_point(packer, FIELD(at, struct launch_root, trees),
		                slot_pack_bytes(packer, trees, root->count * sizeof(*trees)));
}

/* What is empty lies nowhere. */
static uint32_t pack_array(struct slot_packer *packer, uint32_t field, const void *items, size_t size)
{
	uint32_t at = slot_pack_bytes(packer, items, size);
	if (size)
		slot_pack_point(packer, field, at);
	return at;
}

static void pack_seal(struct slot_packer *packer, uint32_t at, const struct launch_seal *seal)
{
	uint32_t rules = pack_array(packer, FIELD(at, struct launch, seal.rules), seal->rules,
	                            seal->rule_count * sizeof(*seal->rules));
	for (size_t i = 0; i < seal->rule_count && !packer->full; i++)
		slot_pack_text(packer, FIELD(rules + (uint32_t)(i * sizeof(*seal->rules)), struct landlock_rule, path),
		               seal->rules[i].path);
	pack_array(packer, FIELD(at, struct launch, seal.filter), seal->filter, seal->filter_length * sizeof(*seal->filter));
	pack_array(packer, FIELD(at, struct launch, seal.rlimits), seal->rlimits, seal->rlimit_count * sizeof(*seal->rlimits));
}

/* What a slot's user is in the keeper's namespace, it is in its own: "1000 65530 1" is "1000 1000 1" there. */
static void nest_map(const char *map, char text[32])
{
	unsigned inside = (unsigned)strtoul(map, NULL, 10);
	snprintf(text, 32, "%u %u 1\n", inside, inside);
}

static uint32_t pack_launch(struct slot_packer *packer, const struct launch *launch, uint64_t shared, const int *joins,
                            const int *trees, int skeleton)
{
	char uid_map[32], gid_map[32];
	struct launch copy = *launch;
	copy.namespaces &= ~shared;
	copy.become = copy.group_entered = copy.failed = false;
	copy.group_fd = copy.pidfd = -1;
	copy.late = 0;
	copy.joined_fd = -1;
	memcpy(copy.group_joins, joins, sizeof(copy.group_joins));
	copy.loopback = copy.namespaces & CLONE_NEWNET;
	/* Told later, or there already. */
	copy.cwd = NULL;
	copy.candidates = copy.argv = copy.environment = NULL;
	copy.hostname = NULL;
	copy.listeners = NULL;
	copy.root = NULL;
	uint32_t at = slot_pack_bytes(packer, &copy, sizeof(copy));
	nest_map(launch->uid_map, uid_map);
	nest_map(launch->gid_map, gid_map);
	slot_pack_text(packer, FIELD(at, struct launch, uid_map), uid_map);
	slot_pack_text(packer, FIELD(at, struct launch, gid_map), gid_map);
	slot_pack_text(packer, FIELD(at, struct launch, init_mode), launch->init_mode);
	if (!(shared & CLONE_NEWUTS))
		slot_pack_text(packer, FIELD(at, struct launch, hostname), launch->hostname);
	if (launch->listener_count)
		slot_pack_point(packer, FIELD(at, struct launch, listeners),
		                slot_pack_bytes(packer, launch->listeners, launch->listener_count * sizeof(*launch->listeners)));
	pack_root(packer, at, launch->root, trees, skeleton);
	pack_seal(packer, at, &launch->seal);
	return slot_pack_end(packer);
}

int slot_plan_make(const struct launch *launch, uint64_t shared, struct slot_plan *ret_plan, struct cordon_error *err)
{
	int joins[LAUNCH_JOIN_MAX], skeleton;
	auto_free int *trees = calloc(launch->root->count + 1, sizeof(*trees));
	auto_free struct slot_packer *packer = malloc(sizeof(*packer));
	auto_free char *bytes = malloc(SLOT_PLAN_MAX);
	struct positions positions;
	if (!trees || !packer || !bytes)
		return fail_oom(err);
	collect(launch, &positions, joins, trees, &skeleton);
	slot_pack_begin(packer, bytes, SLOT_PLAN_MAX);
	uint32_t size = pack_launch(packer, launch, shared, joins, trees, skeleton);
	if (!size || SLOT_REQUEST_COMMONS + SLOT_COMMONS_MAX + positions.count >= SLOT_DESCRIPTORS_MAX)
		return fail(err, CORDON_E_INTERNAL, E2BIG, "plan", "the walls are too many to be kept");
	auto_close int fd = memfd_create("cordon-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "plan", "cannot keep the plan of the walls in memory");
	uint64_t namespaces = launch->namespaces & ~shared;
	if (launch->in_group)
		namespaces &= ~(uint64_t)CLONE_NEWCGROUP;
	*ret_plan = (struct slot_plan){ take_fd(&fd), size, namespaces | CLONE_NEWUSER };
	return 0;
}

/* ---- the commons ------------------------------------------------------------------------------------------------ */

int commons_make(const struct launch *launch, uint64_t shared, struct commons *ret_commons, struct cordon_error *err)
{
	int sockets[2];
	struct commons commons = { .shared = shared };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make a socket for a session's namespaces");
	auto_close int ours = sockets[0], theirs = sockets[1];
	struct launch maker = plain_launch(launch, INIT_COMMONS, theirs);
	maker.namespaces = CLONE_NEWUSER | shared;
	maker.uid_map = launch->uid_map;
	maker.gid_map = launch->gid_map;
	maker.hostname = shared & CLONE_NEWUTS ? launch->hostname : NULL;
	maker.loopback = shared & CLONE_NEWNET;
	if (launch_start(&maker, err) < 0)
		return -1;
	/* It has ended, and what it sent is there. */
	await_gone(maker.pidfd, true);
	close(maker.pidfd);
	while (commons.count < launch_commons_count(shared)) {
		int *fd = &commons.fds[commons.count];
		char byte = 0;
		if (receive_with(ours, &byte, sizeof(byte), MSG_DONTWAIT, fd) <= 0 || *fd < 0) {
			commons_close(&commons);
			return fail(err, CORDON_E_INTERNAL, 0, "clone", "what the commands of the session share could not be kept");
		}
		commons.count++;
	}
	*ret_commons = commons;
	return 0;
}

void commons_close(struct commons *commons)
{
	while (commons->count)
		close(commons->fds[--commons->count]);
}

/* ---- a slot ----------------------------------------------------------------------------------------------------- */

int slot_begin(const struct keeper *keeper, const struct commons *commons, const struct slot_plan *plan,
               const struct launch *launch, struct slot *ret_slot, struct cordon_error *err)
{
	int own[2], control[2], joins[LAUNCH_JOIN_MAX], skeleton;
	struct positions positions;
	struct slot_request request = { plan->namespaces, commons->shared, plan->size, 0 };
	struct iovec part = { &request, sizeof(request) };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(SLOT_DESCRIPTORS_MAX * sizeof(int))];
	} rights;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make a slot's socket");
	auto_close int ours = own[0], theirs = own[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "socketpair", "cannot make the control socket");
	auto_close int control_ours = control[0], control_theirs = control[1];
	collect(launch, &positions, joins, NULL, &skeleton);
	int fds[SLOT_DESCRIPTORS_MAX] = { plan->fd, control_theirs, theirs };
	size_t count = SLOT_REQUEST_COMMONS;
	for (int i = 0; i < commons->count; i++)
		fds[count++] = commons->fds[i];
	memcpy(fds + count, positions.fds, (size_t)positions.count * sizeof(int));
	count += (size_t)positions.count;
	rights.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET,
	                                  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&rights.header), fds, count * sizeof(int));
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights,
	                         .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	if (sendmsg(keeper->socket_fd, &header, MSG_NOSIGNAL) < 0)
		return fail(err, CORDON_E_INTERNAL, errno, "keeper", "the keeper of the sessions is gone");
	*ret_slot = (struct slot){ .socket_fd = take_fd(&ours), .control_fd = take_fd(&control_ours), .pidfd = -1,
	                           .root_fd = -1 };
	return 0;
}

/* One reply, and the descriptor that may come with it. -1 where none came. */
static int receive(const struct slot *slot, struct slot_reply *reply, int *ret_fd)
{
	ssize_t length = receive_with(slot->socket_fd, reply, sizeof(*reply), MSG_DONTWAIT, ret_fd);
	if (length < (ssize_t)offsetof(struct slot_reply, error))
		return length < 0 ? -1 : 0;
	if (reply->kind == SLOT_FAILED && length != sizeof(*reply))
		reply->error = (struct cordon_error){ .class = CORDON_E_INTERNAL };
	return 1;
}

static int told_failure(const struct slot_reply *reply, struct cordon_error *err)
{
	const struct cordon_error *told = &reply->error;
	fail(err, told->class, told->os_errno, told->subject, "%s", told->reason);
	fail_boundary(err, told->boundary);
	return fail_remedy(err, "%s", told->remediation);
}

/* The keeper may come to tell of it later than the slot itself. */
int slot_await_ready(struct slot *slot, const struct keeper *keeper, struct cordon_error *err)
{
	while (!slot->ready || slot->pidfd < 0) {
		struct slot_reply reply = { 0 };
		int fd = -1;
		/* The slot may be there, and whoever was to tell who it is be gone with its keeper. */
		struct pollfd news[] = { { .fd = slot->socket_fd, .events = POLLIN }, { .fd = keeper->socket_fd } };
		int count = poll(news, ARRAY_SIZE(news), READY_MS);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0 || receive(slot, &reply, &fd) <= 0)
			return fail(err, CORDON_E_INTERNAL, 0, "slot", "no place for the command could be made ready");
		if (reply.kind == SLOT_FAILED)
			return told_failure(&reply, err);
		/* Each of the others carries one: the kernel had no place for it. */
		if (fd < 0)
			return fail(err, CORDON_E_INTERNAL, EMFILE, "slot", "no place for the command could be made ready");
		*(reply.kind == SLOT_STARTED ? &slot->pidfd : &slot->root_fd) = fd;
		slot->ready = slot->root_fd >= 0;
	}
	return 0;
}

static uint32_t pack_orders(struct slot_packer *packer, const struct launch *launch)
{
	const struct slot_orders orders = { .program_device = launch->program_device, .program_inode = launch->program_inode,
	                                    .program_judged = launch->program_judged, .umask = launch->umask };
	uint32_t at = slot_pack_bytes(packer, &orders, sizeof(orders));
	slot_pack_text(packer, FIELD(at, struct slot_orders, cwd), launch->cwd);
	slot_pack_texts(packer, FIELD(at, struct slot_orders, candidates), launch->candidates);
	slot_pack_texts(packer, FIELD(at, struct slot_orders, argv), launch->argv);
	slot_pack_texts(packer, FIELD(at, struct slot_orders, environment), launch->environment);
	return slot_pack_end(packer);
}

int slot_order(struct slot *slot, const struct launch *launch, struct cordon_error *err)
{
	/* Not on the stack, which of a caller's thread may be small. */
	auto_free struct slot_packer *packer = malloc(sizeof(*packer));
	auto_free char *bytes = malloc(SLOT_ORDERS_MAX);
	if (!packer || !bytes)
		return fail_oom(err);
	slot_pack_begin(packer, bytes, SLOT_ORDERS_MAX);
	uint32_t size = pack_orders(packer, launch);
	if (!size)
		return fail(err, CORDON_E_INVALID_REQUEST, E2BIG, launch->argv[0], "the arguments and environment are too long");
	struct iovec part = { bytes, size };
	union {
		struct cmsghdr header;
		unsigned char space[CMSG_SPACE(3 * sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(3 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	memcpy(CMSG_DATA(&control.header), launch->stdio, 3 * sizeof(int));
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
	                         .msg_controllen = sizeof(control) };
	if (sendmsg(slot->socket_fd, &header, MSG_NOSIGNAL) < 0)
		return fail(err, CORDON_E_SESSION_BUSY, errno, "slot", "the place that was made for the command is gone");
	return 0;
}

int slot_await_program(const struct slot *slot, const struct patience *patience, struct cordon_error *err)
{
	struct slot_reply reply = { 0 };
	struct pollfd news = { .fd = slot->socket_fd, .events = POLLIN };
	int fd = -1, told;
	while ((told = receive(slot, &reply, &fd)) < 0 && errno == EAGAIN)
		if (poll(&news, 1, await_moment_ms(patience)) == 0 && await_is_over(patience))
			return 1;
	if (told == 0)
		return 0;
	if (told > 0 && reply.kind == SLOT_FAILED)
		return told_failure(&reply, err);
	return fail(err, CORDON_E_INTERNAL, told < 0 ? errno : EPROTO, "slot", "the command's process said something unexpected");
}

void slot_end(struct slot *slot)
{
	close_fd(&slot->socket_fd);
	close_fd(&slot->control_fd);
	close_fd(&slot->pidfd);
	close_fd(&slot->root_fd);
}
