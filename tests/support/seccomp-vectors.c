/* See seccomp-vectors.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <asm/termbits.h>
#include <linux/audit.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "profile/seccomp.h"
#include "seccomp-vectors.h"

const struct arch arches[2] = {
	{ AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64, "x86_64" },
	{ AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, "aarch64" },
};

const uint32_t ioctls_allowed[] = {
	TCGETS,
	TCSETS,
	TCSETSW,
	TCSETSF,
	TCGETA,
	TCSETA,
	TCSETAW,
	TCSETAF,
	TCSBRK,
	TCXONC,
	TCFLSH,
	TCSBRKP,
	TCGETS2,
	TCSETS2,
	TCSETSW2,
	TCSETSF2,
	TIOCEXCL,
	TIOCNXCL,
	TIOCGEXCL,
	TIOCSCTTY,
	TIOCNOTTY,
	TIOCGPGRP,
	TIOCSPGRP,
	TIOCGSID,
	TIOCOUTQ,
	TIOCGWINSZ,
	TIOCSWINSZ,
	TIOCMGET,
	TIOCMBIS,
	TIOCMBIC,
	TIOCMSET,
	TIOCSBRK,
	TIOCCBRK,
	TIOCGETD,
	TIOCPKT,
	TIOCGPKT,
	TIOCGPTN,
	TIOCSPTLCK,
	TIOCGPTLCK,
	TIOCGPTPEER,
	FIONREAD,
	FIONBIO,
	FIOASYNC,
	FIOCLEX,
	FIONCLEX,
	FIOQSIZE,
	FIGETBSZ,
	FICLONE,
	FICLONERANGE,
	FIDEDUPERANGE,
	FS_IOC_FIEMAP,
	FS_IOC_GETFLAGS,
	FS_IOC_GETVERSION,
	FS_IOC_FSGETXATTR,
	FIOGETOWN,
	SIOCGPGRP,
	SIOCATMARK,
	SIOCGSTAMP_OLD,
	SIOCGSTAMPNS_OLD,
	SIOCGSTAMP_NEW,
	SIOCGSTAMPNS_NEW,
	SIOCOUTQNSD,
	SIOCGIFNAME,
	SIOCGIFCONF,
	SIOCGIFFLAGS,
	SIOCGIFADDR,
	SIOCGIFDSTADDR,
	SIOCGIFBRDADDR,
	SIOCGIFNETMASK,
	SIOCGIFMETRIC,
	SIOCGIFMTU,
	SIOCGIFHWADDR,
	SIOCGIFINDEX,
	SIOCGIFTXQLEN,
	SIOCGIFMAP,
	SIOCETHTOOL,
	RNDGETENTCNT,
	SECCOMP_IOCTL_NOTIF_RECV,
	SECCOMP_IOCTL_NOTIF_SEND,
	SECCOMP_IOCTL_NOTIF_ID_VALID,
	SECCOMP_IOCTL_NOTIF_ADDFD,
};
const size_t ioctls_allowed_count = ARRAY_SIZE(ioctls_allowed);

bool ioctl_allowed(uint32_t request)
{
	for (size_t i = 0; i < ioctls_allowed_count; i++)
		if (ioctls_allowed[i] == request)
			return true;
	return false;
}

struct vectors vectors;

static const uint64_t uppers[] = { 0, 1ull << 32, ~LOW };

static void vector_add_four(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	for (size_t i = 0; i < ARRAY_SIZE(uppers); i++) {
		assert_true(vectors.count < ARRAY_SIZE(vectors.args));
		uint64_t *args = vectors.args[vectors.count++];
		args[0] = a | uppers[i], args[1] = b | uppers[(i + 1) % 3], args[2] = c | uppers[(i + 2) % 3];
		args[3] = d | uppers[i];
		args[4] = args[5] = LOW * i;
	}
}

static void vector_add(uint64_t a, uint64_t b, uint64_t c)
{
	vector_add_four(a, b, c, LOW * (vectors.count & 1));
}

int vectors_make(void **state)
{
	static const uint32_t families[] = { 0, 1, 2, 10, 16, 17, 21, 30, 38, 40, 44, 0xffffffff };
	static const uint32_t types[] = {
		0, 1, 2, 3, 4, 5, 6, 10, 15, 1 | SOCK_CLOEXEC, 2 | SOCK_CLOEXEC | SOCK_NONBLOCK
	};
	static const uint32_t protocols[] = { 0, 1, 6, 9, 17, 58, 132, 262 };
	static const uint32_t firsts[] = {
		0x10f00, 0x3d0f00, 0x4111, 0x1200011, 0x100, 0x200, 0x400, 0x40000, 0x100000, 0x600, SIGCHLD, THREAD,
		NEW_ANY, NEW_ANY | THREAD, 0x20000, 0x80, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000,
		0x40000000, 0x80000000, 0x10000000 | 0x3d0f00, 8, 0x40008, 0x60008, 0x400000, 0x200000, 0x7fffffff,
	};
	static const uint32_t seconds[] = { 0x5401,
		                            0x5411,
		                            0x5412,
		                            0x5413,
		                            0x541c,
		                            0x541d,
		                            0x5423,
		                            0x5424,
		                            IOCTL_FSSETXATTR,
		                            0x801c581f,
		                            0xffff5412,
		                            1024,
		                            1025,
		                            1040,
		                            IOCTL_SETFLAGS,
		                            0x80086601,
		                            IOCTL_ENABLE_VERITY,
		                            0xc0046686,
		                            IOCTL_SNAP_CREATE_V2,
		                            0x40049409 };
	static const uint32_t flags[] = { 0,         01,       02,        0100,      0101,
		                          03101,     040000,   0200000,   020000000, 020040002,
		                          020200002, 02000000, 010000000, ~CREATES,  0xffffffff };
	static const uint32_t modes[] = { 0,       0644,   0755,    01777,      02000,      04000,
		                          06000,   02755,  04755,   07777,      0100644,    0104755,
		                          0102755, 010000, 0x10000, 0xffff0000, 0xffffffff, (uint32_t)~SET_ID };
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(families); f++)
		for (size_t t = 0; t < ARRAY_SIZE(types); t++)
			for (size_t p = 0; p < ARRAY_SIZE(protocols); p++)
				vector_add(families[f], types[t], protocols[p]);
	vectors.sockets = vectors.count;
	for (size_t i = 0; i < ARRAY_SIZE(firsts); i++)
		vector_add(firsts[i], 0, 0);
	/* Limits of one's own: of what, and to what, by a pointer. */
	for (uint32_t which = 3; which < 6; which++)
		for (uint32_t pointer = 0; pointer < 2; pointer++)
			vector_add(0, which, pointer);
	/* A process, or what kind of number follows and the number. */
	for (uint32_t which = 0; which < 4; which++)
		for (uint32_t who = 0; who < 3; who++)
			vector_add(which, who, 0);
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++)
		vector_add(1, seconds[i], 0);
	/* Flags and mode of open, of openat, and modes alone: as the second argument. */
	for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
		for (size_t f = 0; f < ARRAY_SIZE(flags); f++) {
			vector_add(0x1000, flags[f], modes[m]);
			vector_add_four(LOW - 99, 0x1000, flags[f], modes[m]);
		}
		vector_add(0x1000, modes[m], 0);
	}
	return 0;
}

size_t vectors_start(uint32_t arch, uint32_t number)
{
	enum seccomp_set set = seccomp_set_of(arch, number);
	return set == SECCOMP_SET_SOCKET || set == SECCOMP_SET_SOCKETPAIR ? 0 : vectors.sockets;
}

size_t vectors_step(uint32_t arch, uint32_t number, unsigned options)
{
	enum seccomp_answer answer = seccomp_set_answer(seccomp_set_of(arch, number), options);
	return answer == SECCOMP_BY_ARGUMENTS ? 1 : (vectors.count - vectors.sockets) / 4;
}

struct seccomp_data data_for(uint32_t arch, uint32_t number, size_t vector)
{
	struct seccomp_data data = { .nr = (int)number, .arch = arch };
	memcpy(data.args, vectors.args[vector], sizeof(data.args));
	return data;
}

size_t emit(uint32_t arch, unsigned options, struct sock_filter *out)
{
	size_t length = seccomp_emit(arch, options, out, SECCOMP_FILTER_MAX);
	assert_true(length > 0 && length <= SECCOMP_FILTER_MAX);
	return length;
}
