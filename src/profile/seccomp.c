/* The system-call filter: see seccomp.h; what is allowed and why is in syscalls.def.
 *
 * A filter has four parts, in this order:
 *   head   another architecture's entry point is refused, then the call's number is loaded;
 *   tree   the numbers cut into ranges of equal answer, searched by a balanced binary tree: one comparison per range
 *          but the last, the lower half follows its node, the upper half is jumped to;
 *   steps  what the leaves lead to: checks of arguments, then one return per answer, shared by all;
 *   ioctls the requests that ioctl may make (ioctls.c). They come last, behind an unconditional jump: a conditional one
 *          reaches 255 instructions, and across these it would have to reach further.
 * x32 needs nothing of its own: its numbers (0x40000000 and up) are beyond the last range.
 *
 * Only instructions that the kernel can evaluate ahead are used (5.11: it keeps a bitmap of calls that are allowed
 * whatever their arguments), so the tree is walked only for calls that are refused or whose arguments matter.
 *
 * Of the arguments checked here the kernel drops the upper half (all but unshare's). A filter that compares 64 bits is
 * passed by setting a bit up there (CVE-2019-10063), so the lower half alone is looked at; both architectures are
 * little-endian. */
#include "profile/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/ioctls.h"

#if defined(__x86_64__) && !defined(__ILP32__)
const uint32_t seccomp_native_arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__) && defined(__AARCH64EL__)
const uint32_t seccomp_native_arch = AUDIT_ARCH_AARCH64;
#else
const uint32_t seccomp_native_arch = 0;
#endif

enum arch { ARCH_X86_64, ARCH_AARCH64, ARCH_MAX };
static const uint32_t audit_arches[ARCH_MAX] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 };
static const char *const arch_names[ARCH_MAX] = { "x86_64", "aarch64" };

const char *const seccomp_answer_names[SECCOMP_ANSWER_MAX] = { "allowed", "by_arguments", "EPERM", "ENOSYS" };

/* ---- The table -------------------------------------------------------------------------------------------------- */

/* Where a leaf of the tree or a step leads to. */
enum label {
	NEXT,                   /* the step that follows */
	TO_CHECK_CLONE,
	TO_CHECK_UNSHARE,
	TO_CHECK_SOCKET, TO_NETLINK, TO_IP, TO_IP_PROTOCOL,
	TO_CHECK_SOCKETPAIR,
	TO_CHECK_IOCTL,
	TO_CHECK_PERSONALITY,
	TO_CHECK_FCNTL,
	TO_CHECK_LIMITS, TO_CHECK_OLD_LIMIT, TO_CHECK_SET_LIMIT,
	TO_CHECK_PRIORITY, TO_CHECK_IO_PRIORITY, TO_CHECK_SCHEDULE, TO_WHO,
	TO_CHECK_OPENAT, TO_CHECK_OPEN, TO_CHECK_MODE_2, TO_CHECK_MODE_1,
	TO_ALLOW,
	TO_DONE,                /* it is not done, but the caller is told that it was */
	TO_EPERM,
	TO_ENOSYS,
	TO_EAFNOSUPPORT,
	TO_EPROTONOSUPPORT,
	TO_EOPNOTSUPP,
	TO_IOCTLS,              /* where the steps end */
	LABEL_MAX
};

static const struct {
	const char *name, *reason;
	enum label answer, optional;
	enum seccomp_option option;
} sets[SECCOMP_SET_MAX] = {
#define SECCOMP_SET(id, name, answer, option, optional, reason) \
	{ name, reason, TO_##answer, TO_##optional, SECCOMP_##option },
#include "profile/syscalls.def"
};

static const struct {
	const char *name, *meaning;
} options_table[SECCOMP_OPTION_MAX] = {
#define SECCOMP_OPTION(id, name, meaning) { name, meaning },
#include "profile/syscalls.def"
};

/* Names are kept in place: pointers to them would be relocated at every start of the program. */
static const struct call {
	char name[24];
	int16_t numbers[ARCH_MAX];
} calls[] = {
#define SECCOMP_CALL(name, x86_64, aarch64, set) { #name, { x86_64, aarch64 } },
#define SECCOMP_CALL_X86(name, x86_64, set) { #name, { x86_64, -1 } },
#include "profile/syscalls.def"
};

/* By number; what is not listed is 0, SECCOMP_SET_UNKNOWN. A number given twice is an error of the compiler's. */
#define NUMBER_MAX 512
static const uint8_t sets_by_number[ARCH_MAX][NUMBER_MAX] = {
	[ARCH_X86_64] = {
#define SECCOMP_CALL(name, x86_64, aarch64, set) [x86_64] = SECCOMP_SET_##set,
#define SECCOMP_CALL_X86(name, x86_64, set) [x86_64] = SECCOMP_SET_##set,
#include "profile/syscalls.def"
	},
	[ARCH_AARCH64] = {
#define SECCOMP_CALL(name, x86_64, aarch64, set) [aarch64] = SECCOMP_SET_##set,
#include "profile/syscalls.def"
	},
};
_Static_assert(SECCOMP_SET_UNKNOWN == 0, "a number without a row must fall into the unknown set");
_Static_assert(SECCOMP_SET_MAX <= UINT8_MAX, "sets are kept in bytes");

static enum label set_leads_to(enum seccomp_set set, unsigned options)
{
	return options & sets[set].option ? sets[set].optional : sets[set].answer;
}

/* ---- The steps -------------------------------------------------------------------------------------------------- */

/* Every namespace. CLONE_NEWTIME lies among the bits of clone's exit signal, where no signal reaches. */
#define CLONE_NEW_ANY (0x00000080 /* CLONE_NEWTIME */ | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
                       CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define UNSHARE_HARMLESS (CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
#define PERSONALITY_HARMLESS (PER_LINUX32 | UNAME26 | ADDR_NO_RANDOMIZE)
#define PERSONALITY_QUERY 0xffffffff
#define SOCKET_TYPE_MASK 0xf    /* the kernel's SOCK_TYPE_MASK; above are SOCK_CLOEXEC and SOCK_NONBLOCK */

#define OPEN_CREATES                                                                                                   \
	(O_CREAT | 020000000 /* the kernel's __O_TMPFILE: the C library's O_TMPFILE has O_DIRECTORY in it */)
#define MODE_SET_ID (S_ISUID | S_ISGID)
#define INIT_PID 1
#define FCNTL_SETDELEG 1040     /* F_SETDELEG, of Linux 6.19 */

#define CODE_LOAD (BPF_LD | BPF_W | BPF_ABS)
#define CODE_EQUAL (BPF_JMP | BPF_JEQ | BPF_K)
#define CODE_BITS (BPF_JMP | BPF_JSET | BPF_K)
#define CODE_FROM (BPF_JMP | BPF_JGE | BPF_K)
#define CODE_JUMP (BPF_JMP | BPF_JA)

#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define ARGUMENT_UPPER(n) (ARGUMENT(n) + 4)

struct step {
	uint8_t label;          /* where this step is, if something leads to it */
	uint16_t code;
	uint32_t k;
	uint8_t yes, no;        /* labels; for jumps */
	unsigned refused_by;    /* with one of these options, `yes` is EPERM */
	unsigned with, without; /* left out unless all, or if any, of these options are in force */
};

#define LOAD(at, offset, ...) { .label = at, .code = CODE_LOAD, .k = offset, __VA_ARGS__ }
#define AND(mask, ...) { .code = BPF_ALU | BPF_AND | BPF_K, .k = mask, __VA_ARGS__ }
#define IF_EQUAL(value, to, otherwise, ...) { .code = CODE_EQUAL, .k = value, .yes = to, .no = otherwise, __VA_ARGS__ }
#define IF_BITS(mask, to, otherwise, ...) { .code = CODE_BITS, .k = mask, .yes = to, .no = otherwise, __VA_ARGS__ }
#define JUMP(to) { .code = CODE_JUMP, .yes = to }
#define UNLESS_NO_NETWORK .without = SECCOMP_NO_NETWORK
#define IF_NO_UNIX .with = SECCOMP_NO_UNIX
#define ANSWER(at, action) { .label = at, .code = BPF_RET | BPF_K, .k = action }

/* Labels lead forward only. */
static const struct step steps[] = {
	LOAD(TO_CHECK_CLONE, ARGUMENT(0)),
	IF_BITS(CLONE_NEW_ANY, TO_EPERM, TO_ALLOW, .without = SECCOMP_NO_SPAWN),
	IF_BITS(CLONE_NEW_ANY, TO_EPERM, NEXT, .with = SECCOMP_NO_SPAWN),
	IF_BITS(CLONE_THREAD, TO_ALLOW, TO_EPERM, .with = SECCOMP_NO_SPAWN),

	/* Flags are unsigned long here: what a later kernel may put into the upper half is refused as well. */
	LOAD(TO_CHECK_UNSHARE, ARGUMENT_UPPER(0)),
	IF_EQUAL(0, NEXT, TO_EPERM),
	LOAD(NEXT, ARGUMENT(0)),
	IF_BITS((uint32_t)~UNSHARE_HARMLESS, TO_EPERM, TO_ALLOW),

	LOAD(TO_CHECK_SOCKET, ARGUMENT(0)),
	IF_EQUAL(AF_UNIX, TO_ALLOW, NEXT, .refused_by = SECCOMP_NO_UNIX),
	IF_EQUAL(AF_INET, TO_IP, NEXT, .refused_by = SECCOMP_NO_NETWORK),
	IF_EQUAL(AF_INET6, TO_IP, NEXT, .refused_by = SECCOMP_NO_NETWORK),
	IF_EQUAL(AF_NETLINK, TO_NETLINK, TO_EAFNOSUPPORT, .refused_by = SECCOMP_NO_NETWORK),
	LOAD(TO_NETLINK, ARGUMENT(2), UNLESS_NO_NETWORK),
	IF_EQUAL(NETLINK_ROUTE, TO_ALLOW, TO_EPROTONOSUPPORT, UNLESS_NO_NETWORK),
	/* By type as well: AF_INET with SOCK_PACKET is AF_PACKET to the kernel. */
	LOAD(TO_IP, ARGUMENT(1), UNLESS_NO_NETWORK),
	AND(SOCKET_TYPE_MASK, UNLESS_NO_NETWORK),
	IF_EQUAL(SOCK_STREAM, TO_IP_PROTOCOL, NEXT, UNLESS_NO_NETWORK),
	IF_EQUAL(SOCK_DGRAM, NEXT, TO_EPERM, UNLESS_NO_NETWORK),
	LOAD(TO_IP_PROTOCOL, ARGUMENT(2), UNLESS_NO_NETWORK),
	IF_EQUAL(0, TO_ALLOW, NEXT, UNLESS_NO_NETWORK),
	IF_EQUAL(IPPROTO_TCP, TO_ALLOW, NEXT, UNLESS_NO_NETWORK),
	IF_EQUAL(IPPROTO_UDP, TO_ALLOW, NEXT, UNLESS_NO_NETWORK),
	IF_EQUAL(IPPROTO_ICMP, TO_ALLOW, NEXT, UNLESS_NO_NETWORK),
	IF_EQUAL(IPPROTO_ICMPV6, TO_ALLOW, NEXT, UNLESS_NO_NETWORK),
	IF_EQUAL(IPPROTO_MPTCP, TO_ALLOW, TO_EPROTONOSUPPORT, UNLESS_NO_NETWORK),

	LOAD(TO_CHECK_SOCKETPAIR, ARGUMENT(0)),
	IF_EQUAL(AF_UNIX, TO_ALLOW, TO_EOPNOTSUPP, .without = SECCOMP_NO_UNIX),
	IF_EQUAL(AF_UNIX, NEXT, TO_EOPNOTSUPP, IF_NO_UNIX),
	/* One half of a datagram pair (SOCK_RAW is one too) can be connected anew, to any name; these two cannot. */
	LOAD(NEXT, ARGUMENT(1), IF_NO_UNIX),
	AND(SOCKET_TYPE_MASK, IF_NO_UNIX),
	IF_EQUAL(SOCK_STREAM, TO_ALLOW, NEXT, IF_NO_UNIX),
	IF_EQUAL(SOCK_SEQPACKET, TO_ALLOW, TO_EPERM, IF_NO_UNIX),

	LOAD(TO_CHECK_IOCTL, ARGUMENT(1)),
	JUMP(TO_IOCTLS),

	LOAD(TO_CHECK_PERSONALITY, ARGUMENT(0)),
	IF_EQUAL(PERSONALITY_QUERY, TO_ALLOW, NEXT),
	IF_BITS((uint32_t)~PERSONALITY_HARMLESS, TO_EPERM, TO_ALLOW),

	LOAD(TO_CHECK_FCNTL, ARGUMENT(1)),
	IF_EQUAL(F_SETLEASE, TO_EPERM, NEXT),
	IF_EQUAL(FCNTL_SETDELEG, TO_EPERM, TO_ALLOW),

	LOAD(TO_CHECK_LIMITS, ARGUMENT(0), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(0, NEXT, TO_EPERM, .with = SECCOMP_OWN_LIMITS),
	LOAD(NEXT, ARGUMENT(1), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(RLIMIT_CORE, NEXT, TO_ALLOW, .with = SECCOMP_OWN_LIMITS),
	/* A pointer: asking alone leaves it 0. */
	LOAD(NEXT, ARGUMENT(2), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(0, NEXT, TO_CHECK_OLD_LIMIT, .with = SECCOMP_OWN_LIMITS),
	LOAD(NEXT, ARGUMENT_UPPER(2), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(0, TO_ALLOW, NEXT, .with = SECCOMP_OWN_LIMITS),
	/* With the old value requested as well, the result would be uninitialised memory. */
	LOAD(TO_CHECK_OLD_LIMIT, ARGUMENT(3), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(0, NEXT, TO_EPERM, .with = SECCOMP_OWN_LIMITS),
	LOAD(NEXT, ARGUMENT_UPPER(3), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(0, TO_DONE, TO_EPERM, .with = SECCOMP_OWN_LIMITS),
	LOAD(TO_CHECK_SET_LIMIT, ARGUMENT(0)),
	IF_EQUAL(RLIMIT_CORE, TO_DONE, TO_ALLOW),

	LOAD(TO_CHECK_PRIORITY, ARGUMENT(0), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(PRIO_PROCESS, TO_WHO, TO_EPERM, .with = SECCOMP_OWN_LIMITS),
	LOAD(TO_CHECK_IO_PRIORITY, ARGUMENT(0), .with = SECCOMP_AMONG_OTHERS),
	IF_EQUAL(IOPRIO_WHO_PROCESS, TO_WHO, TO_EPERM, .with = SECCOMP_AMONG_OTHERS),
	LOAD(TO_CHECK_SCHEDULE, ARGUMENT(0), .with = SECCOMP_OWN_LIMITS),
	IF_EQUAL(INIT_PID, TO_EPERM, TO_ALLOW, .with = SECCOMP_OWN_LIMITS, .without = SECCOMP_AMONG_OTHERS),
	IF_EQUAL(0, TO_ALLOW, TO_EPERM, .with = SECCOMP_OWN_LIMITS | SECCOMP_AMONG_OTHERS),
	LOAD(TO_WHO, ARGUMENT(1)),
	IF_EQUAL(INIT_PID, TO_EPERM, TO_ALLOW, .without = SECCOMP_AMONG_OTHERS),
	IF_EQUAL(0, TO_ALLOW, TO_EPERM, .with = SECCOMP_AMONG_OTHERS),

	/* Flags first: what is opened without making it leaves anything at all in the place of the mode. */
	LOAD(TO_CHECK_OPENAT, ARGUMENT(2)),
	IF_BITS(OPEN_CREATES, NEXT, TO_ALLOW),
	LOAD(NEXT, ARGUMENT(3)),
	IF_BITS(MODE_SET_ID, TO_EPERM, TO_ALLOW),
	LOAD(TO_CHECK_OPEN, ARGUMENT(1)),
	IF_BITS(OPEN_CREATES, NEXT, TO_ALLOW),
	LOAD(TO_CHECK_MODE_2, ARGUMENT(2)),
	IF_BITS(MODE_SET_ID, TO_EPERM, TO_ALLOW),
	LOAD(TO_CHECK_MODE_1, ARGUMENT(1)),
	IF_BITS(MODE_SET_ID, TO_EPERM, TO_ALLOW),

	ANSWER(TO_ALLOW, SECCOMP_RET_ALLOW),
	ANSWER(TO_DONE, SECCOMP_RET_ERRNO | 0),
	ANSWER(TO_EPERM, SECCOMP_RET_ERRNO | EPERM),
	ANSWER(TO_ENOSYS, SECCOMP_RET_ERRNO | ENOSYS),
	ANSWER(TO_EAFNOSUPPORT, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
	ANSWER(TO_EPROTONOSUPPORT, SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
	ANSWER(TO_EOPNOTSUPP, SECCOMP_RET_ERRNO | EOPNOTSUPP),
};

static bool step_applies(const struct step *step, unsigned options)
{
	return (options & step->with) == step->with && !(options & step->without);
}

/* Where each label is when the first step is at `start`. Returns where the last step ends. */
static size_t steps_place(unsigned options, size_t start, size_t *positions)
{
	size_t at = start;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (!step_applies(&steps[i], options))
			continue;
		if (steps[i].label != NEXT)
			positions[steps[i].label] = at;
		at++;
	}
	positions[TO_IOCTLS] = at;
	return at;
}

/* The jump from the instruction at `from` to a label: a distance from the instruction after it. */
static uint8_t distance(const size_t *positions, enum label to, size_t from)
{
	return to == NEXT ? 0 : (uint8_t)(positions[to] - from - 1);
}

static void steps_emit(unsigned options, size_t start, const size_t *positions, struct sock_filter *out)
{
	size_t at = start;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		const struct step *step = &steps[i];
		if (!step_applies(step, options))
			continue;
		enum label yes = options & step->refused_by ? TO_EPERM : (enum label)step->yes;
		out[at] = step->code == CODE_JUMP
		                  ? (struct sock_filter){ CODE_JUMP, 0, 0, (uint32_t)(positions[yes] - at - 1) }
		                  : (struct sock_filter){ step->code, distance(positions, yes, at),
		                                          distance(positions, step->no, at), step->k };
		at++;
	}
}

/* ---- The tree --------------------------------------------------------------------------------------------------- */

struct range {
	uint32_t start;         /* up to the start of the next, or for ever */
	enum label leads_to;
};

static size_t ranges_gather(enum arch arch, unsigned options, struct range *ranges)
{
	enum label by_set[SECCOMP_SET_MAX];
	for (unsigned set = 0; set < SECCOMP_SET_MAX; set++)
		by_set[set] = set_leads_to(set, options);
	size_t count = 0;
	for (uint32_t number = 0; number <= NUMBER_MAX; number++) {
		unsigned set = number < NUMBER_MAX ? sets_by_number[arch][number] : SECCOMP_SET_UNKNOWN;
		if (count == 0 || ranges[count - 1].leads_to != by_set[set])
			ranges[count++] = (struct range){ number, by_set[set] };
	}
	return count;
}

static void tree_emit(const struct range *ranges, size_t count, size_t at, const size_t *positions,
                      struct sock_filter *out)
{
	if (count < 2)
		return;
	size_t lower = count / 2, upper = count - lower;
	size_t upper_at = at + lower;   /* this node, then one node fewer than there are lower ranges */
	out[at] = (struct sock_filter){
		CODE_FROM,
		upper > 1 ? (uint8_t)(upper_at - at - 1) : distance(positions, ranges[lower].leads_to, at),
		lower > 1 ? 0 : distance(positions, ranges[0].leads_to, at),
		ranges[lower].start,
	};
	tree_emit(ranges, lower, at + 1, positions, out);
	tree_emit(ranges + lower, upper, upper_at, positions, out);
}

/* ---- All together ----------------------------------------------------------------------------------------------- */

static enum arch arch_find(uint32_t audit_arch)
{
	enum arch arch = 0;
	while (arch < ARCH_MAX && audit_arches[arch] != audit_arch)
		arch++;
	return arch;
}

size_t seccomp_emit(uint32_t audit_arch, unsigned options, struct sock_filter *out, size_t capacity)
{
	enum { HEAD = 3, FARTHEST_JUMP = 255 };
	enum arch arch = arch_find(audit_arch);
	if (arch == ARCH_MAX)
		return 0;
	struct range ranges[NUMBER_MAX + 1];
	size_t count = ranges_gather(arch, options, ranges);
	size_t positions[LABEL_MAX];
	size_t start = HEAD + count - 1;
	size_t length = steps_place(options, start, positions);
	if (length > capacity || length > FARTHEST_JUMP)
		return 0;
	out[0] = (struct sock_filter){ CODE_LOAD, 0, 0, offsetof(struct seccomp_data, arch) };
	out[1] = (struct sock_filter){ CODE_EQUAL, 0, distance(positions, TO_ENOSYS, 1), audit_arch };
	out[2] = (struct sock_filter){ CODE_LOAD, 0, 0, offsetof(struct seccomp_data, nr) };
	tree_emit(ranges, count, HEAD, positions, out);
	steps_emit(options, start, positions, out);
	size_t ioctls = ioctls_emit(options, ARGUMENT(1), out + length, capacity - length);
	return ioctls ? length + ioctls : 0;
}

/* ---- For people ------------------------------------------------------------------------------------------------- */

enum seccomp_set seccomp_set_of(uint32_t audit_arch, uint32_t number)
{
	enum arch arch = arch_find(audit_arch);
	return arch == ARCH_MAX || number >= NUMBER_MAX ? SECCOMP_SET_UNKNOWN
	                                                : (enum seccomp_set)sets_by_number[arch][number];
}

const char *seccomp_set_name(enum seccomp_set set)
{
	return sets[set].name;
}

const char *seccomp_set_reason(enum seccomp_set set)
{
	return sets[set].reason;
}

enum seccomp_answer seccomp_set_answer(enum seccomp_set set, unsigned options)
{
	switch (set_leads_to(set, options)) {
	case TO_ALLOW: return SECCOMP_ALLOWED;
	case TO_EPERM: return SECCOMP_SAYS_EPERM;
	case TO_ENOSYS: return SECCOMP_SAYS_ENOSYS;
	default: return SECCOMP_BY_ARGUMENTS;
	}
}

const char *seccomp_option_name(enum seccomp_option_index option)
{
	return options_table[option].name;
}

const char *seccomp_option_meaning(enum seccomp_option_index option)
{
	return options_table[option].meaning;
}

const char *seccomp_call_name(uint32_t audit_arch, uint32_t number)
{
	enum arch arch = arch_find(audit_arch);
	for (size_t i = 0; arch < ARCH_MAX && i < ARRAY_SIZE(calls); i++)
		if (calls[i].numbers[arch] >= 0 && (uint32_t)calls[i].numbers[arch] == number)
			return calls[i].name;
	return NULL;
}

long seccomp_call_number(uint32_t audit_arch, const char *name)
{
	enum arch arch = arch_find(audit_arch);
	for (size_t i = 0; arch < ARCH_MAX && i < ARRAY_SIZE(calls); i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].numbers[arch];
	return -1;
}

static void list_set(struct json *json, enum arch arch, enum seccomp_set set, enum seccomp_answer answer)
{
	json_object_begin(json);
	json_key_string(json, "set", sets[set].name);
	json_key_string(json, "answer", seccomp_answer_names[answer]);
	json_key_string(json, "reason", sets[set].reason);
	json_key(json, "calls");
	json_array_begin(json);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int number = calls[i].numbers[arch];
		if (number >= 0 && sets_by_number[arch][number] == set)
			json_text(json, calls[i].name);
	}
	json_array_end(json);
	json_object_end(json);
}

void seccomp_listing(struct json *json, uint32_t audit_arch, unsigned options)
{
	enum arch arch = arch_find(audit_arch);
	if (arch == ARCH_MAX) {
		json_nil(json);
		return;
	}
	json_object_begin(json);
	json_key_string(json, "architecture", arch_names[arch]);
	json_key(json, "options");
	json_array_begin(json);
	for (unsigned i = 0; i < SECCOMP_OPTION_MAX; i++)
		if (options & 1u << i)
			json_text(json, options_table[i].name);
	json_array_end(json);
	json_key(json, "devices");
	json_array_begin(json);
	for (unsigned i = 0; i < SECCOMP_DEVICE_MAX; i++)
		if (options & SECCOMP_DEVICE_BIT(i))
			json_text(json, seccomp_device_name(i));
	json_array_end(json);
	json_key(json, "sets");
	json_array_begin(json);
	for (unsigned set = 0; set < SECCOMP_SET_MAX; set++) {
		enum seccomp_answer answer = seccomp_set_answer(set, options);
		if (answer != SECCOMP_ALLOWED)
			list_set(json, arch, set, answer);
	}
	json_array_end(json);
	json_object_end(json);
}
