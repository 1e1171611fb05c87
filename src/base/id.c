/* Sortable random ids: see id.h. Ten random bytes and six of time are read as one 128-bit number, whose base-32 digits
 * are the id; big-endian, so that text order is time order. */
#include "base/id.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define RANDOM_SIZE 10

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* Only where a caller's own seccomp filter refuses getrandom(): an id must be unique, not unguessable, and a missing
 * id would be worse than a guessable one. */
static void mix(unsigned char bytes[RANDOM_SIZE], const struct timespec *now)
{
	static atomic_uint_fast32_t counter;
	uint64_t state = ((uint64_t)getpid() << 32) ^ ((uint64_t)now->tv_nsec << 12) ^ (uint64_t)now->tv_sec;
	uint16_t serial = (uint16_t)atomic_fetch_add(&counter, 1);
	state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
	state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
	memcpy(bytes, &state, sizeof(state));
	memcpy(bytes + sizeof(state), &serial, sizeof(serial));
}

void id_make(char ret_id[ID_SIZE])
{
	unsigned char random[RANDOM_SIZE];
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		mix(random, &now);

	unsigned __int128 number = ms & 0xffffffffffff;
	for (size_t i = 0; i < sizeof(random); i++)
		number = number << 8 | random[i];
	ret_id[ID_SIZE - 1] = '\0';
	for (int i = ID_SIZE - 2; i >= 0; i--, number >>= 5)
		ret_id[i] = digits[(unsigned)number & 31];
}

uint64_t id_time_ms(const char *id)
{
	unsigned __int128 number = 0;
	for (int i = 0; i < ID_SIZE - 1; i++) {
		const char *digit = id[i] ? strchr(digits, id[i]) : NULL;
		if (!digit)
			return 0;
		number = number << 5 | (unsigned)(digit - digits);
	}
	return id[ID_SIZE - 1] ? 0 : (uint64_t)(number >> (8 * RANDOM_SIZE));
}
