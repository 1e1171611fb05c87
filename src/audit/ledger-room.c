/* Space for the rows of running commands. A command may fill the file system that holds the ledger; its result row,
 * and the rows of all other running commands, must be written nevertheless. So space for them is reserved with the
 * intent row, and a row that belongs to no running command never uses the reserve.
 *
 * How much all processes have reserved: the file `reserve` represents slots of ROOM_SLOT bytes, and a process that
 * reserves a slot holds a lock (F_OFD_SETLK) on the byte of that number. The kernel drops the locks of a process that
 * dies. The end of the highest locked slot is what is reserved. A process keeps a few slots between commands, so that
 * most commands need no lock.
 *
 * Where the space is: allocated behind the end of the day's file (FALLOC_FL_KEEP_SIZE), so that no other process can
 * use it; some more than is needed, so that most rows allocate nothing. If the file system cannot do that, `reserve`
 * itself is filled up to the reserved size, and shortened when a row of a running command does not fit. Another
 * process may then use that space first. */
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "audit/ledger-state.h"
#include "base/error.h"

#define ROOM_SLOT 16384u
#define ROOM_AHEAD (128u << 10)
#define ROOM_BLOCK 4096u
#define SLOTS_MAX 65536u
#define SLOTS_KEPT 4u

bool ledger_is_full(int os_errno)
{
	return os_errno == ENOSPC || os_errno == EDQUOT;
}

/* ---- Slots ------------------------------------------------------------------------------------------------------- */

static int lock_slots(const struct ledger *ledger, short type, uint32_t first, off_t count)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count };
	return fcntl(ledger->reserve.fd, F_OFD_SETLK, &lock);
}

static int open_reserve(struct ledger *ledger, struct cordon_error *err)
{
	struct stat st;
	if (ledger->reserve.fd >= 0)
		return 0;
	return ledger_open_named(ledger, LEDGER_RESERVE, O_CREAT, &ledger->reserve, &st, err);
}

/* The lowest free slot above those that this process has. */
static int take_slot(struct ledger *ledger, struct cordon_error *err)
{
	struct ledger_slots *slots = &ledger->slots;
	uint32_t slot = slots->count ? slots->numbers[slots->count - 1] + 1 : 0;
	uint32_t *grown = reallocarray(slots->numbers, slots->count + 1, sizeof(*grown));
	if (!grown)
		return fail_oom(err);
	slots->numbers = grown;
	while (lock_slots(ledger, F_WRLCK, slot, 1) < 0) {
		if ((errno != EAGAIN && errno != EACCES) || ++slot >= SLOTS_MAX)
			return ledger_refuse(&ledger->files, errno, LEDGER_RESERVE,
			                     "no room can be reserved in the ledger", err);
	}
	slots->numbers[slots->count++] = slot;
	return 0;
}

int ledger_take_room(struct ledger *ledger, size_t bytes, struct ledger_room *ret_room, struct cordon_error *err)
{
	size_t wanted = (bytes + ROOM_SLOT - 1) / ROOM_SLOT;
	if (open_reserve(ledger, err) < 0)
		return -1;
	while (ledger->slots.count < ledger->slots.used + wanted)
		if (take_slot(ledger, err) < 0)
			return -1;
	ledger->slots.used += wanted;
	*ret_room = (struct ledger_room){ .slots = wanted, .left = wanted * ROOM_SLOT };
	return 0;
}

void ledger_give_room(struct ledger *ledger, struct ledger_room *room)
{
	struct ledger_slots *slots = &ledger->slots;
	slots->used -= room->slots;
	*room = (struct ledger_room){ 0 };
	if (slots->used || slots->count <= SLOTS_KEPT)
		return;
	(void)!lock_slots(ledger, F_UNLCK, slots->numbers[SLOTS_KEPT], 0);
	slots->count = SLOTS_KEPT;
}

void ledger_forget_slots(struct ledger *ledger)
{
	close_fd(&ledger->reserve.fd);
	ledger->slots.count = 0;
}

uint64_t ledger_reserved(struct ledger *ledger)
{
	const struct ledger_slots *slots = &ledger->slots;
	/* What this process keeps for later commands is free for its own rows until then. */
	size_t own = slots->used < slots->count ? slots->used : slots->count;
	off_t end = own ? (off_t)slots->numbers[own - 1] + 1 : 0;
	/* If it cannot be created, no process has reserved anything. */
	if (open_reserve(ledger, NULL) < 0)
		return 0;
	/* A lock beyond SLOTS_MAX is no reservation: take_slot() makes none there. */
	while (end < SLOTS_MAX) {
		struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = end, .l_len = SLOTS_MAX - end
		};
		if (fcntl(ledger->reserve.fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK || !lock.l_len ||
		    lock.l_start + lock.l_len > SLOTS_MAX)
			break;
		end = lock.l_start + lock.l_len;
	}
	return (uint64_t)end * ROOM_SLOT;
}

/* ---- Space ------------------------------------------------------------------------------------------------------- */

/* 0, or -1 and errno. tmpfs raises SIGXFSZ beyond the limit of file sizes, whether or not the file grows. */
static int allocate(struct ledger *ledger, uint64_t end)
{
	int status;
	if (!ledger_files_fit(end)) {
		errno = EFBIG;
		return -1;
	}
	do
		status = fallocate(ledger->day.fd, FALLOC_FL_KEEP_SIZE, (off_t)ledger->tip.offset,
		                   (off_t)(end - ledger->tip.offset));
	while (status < 0 && errno == EINTR);
	if (status == 0)
		ledger->allocated = end;
	return status;
}

/* Fills `reserve` up to so many bytes that no file system can compress. 0, or -1 and errno. */
static int fill_reserve(struct ledger *ledger, uint64_t wanted)
{
	unsigned char bytes[ROOM_BLOCK];
	struct stat st;
	if (fstat(ledger->reserve.fd, &st) < 0)
		return -1;
	off_t size = st.st_size;
	if ((uint64_t)size >= wanted)
		return 0;
	if (!ledger_files_fit(wanted + sizeof(bytes))) {
		errno = EFBIG;
		return -1;
	}
	bool filled = getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes);
	for (errno = ENOSPC; filled && (uint64_t)size < wanted; size += (off_t)sizeof(bytes)) {
		memcpy(bytes, &size, sizeof(size));
		filled = pwrite(ledger->reserve.fd, bytes, sizeof(bytes), size) == (ssize_t)sizeof(bytes);
	}
	/* Some file systems tell only then. */
	if (filled && fdatasync(ledger->reserve.fd) == 0)
		return 0;
	int error = errno;
	(void)!ftruncate(ledger->reserve.fd, st.st_size);
	errno = error;
	return -1;
}

int ledger_secure(struct ledger *ledger, uint64_t end, uint64_t reserved)
{
	if (!reserved || end + reserved <= ledger->allocated)
		return 0;
	if (!ledger->in_reserve_file) {
		/* Another process has probably allocated as much: to find that out costs less than to allocate more. */
		struct stat st;
		bool ahead = fstat(ledger->day.fd, &st) < 0 || (uint64_t)st.st_blocks * 512 < end + reserved;
		if ((ahead && allocate(ledger, end + reserved + ROOM_AHEAD) == 0) ||
		    allocate(ledger, end + reserved) == 0)
			return 0;
		if (ledger_is_full(errno) || errno == EFBIG)
			return -1;
		ledger->in_reserve_file = true;
	}
	return fill_reserve(ledger, reserved);
}

bool ledger_release_space(struct ledger *ledger, size_t length)
{
	struct stat st;
	off_t released = (off_t)((length + ROOM_BLOCK - 1) / ROOM_BLOCK * ROOM_BLOCK + ROOM_BLOCK);
	if (!ledger->in_reserve_file || ledger->reserve.fd < 0 || fstat(ledger->reserve.fd, &st) < 0 || !st.st_size)
		return false;
	return ftruncate(ledger->reserve.fd, st.st_size > released ? st.st_size - released : 0) == 0;
}

void ledger_trim(struct ledger *ledger, const char *name)
{
	struct stat st;
	auto_close int fd = -1;
	if (ledger_files_open(&ledger->files, name, O_RDWR, &fd, &st, NULL) == 0 && st.st_blocks * 512 > st.st_size)
		(void)!ftruncate(fd, st.st_size);
}
