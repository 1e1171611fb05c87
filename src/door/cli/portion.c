/* Portions: see portion.h. The head is 40 % of what is kept; a few bytes less are handed on early, since the library
 * does not split a character there. */
#include "door/cli/portion.h"

#define CHARACTER_MAX 4

void portion_open(struct portion *portion, bool is_terminal, uint64_t kept)
{
	*portion = (struct portion){ .is_terminal = is_terminal };
	portion_keep(portion, kept);
}

void portion_keep(struct portion *portion, uint64_t kept)
{
	uint64_t head = kept / 5 * 2, early = head > CHARACTER_MAX ? head - CHARACTER_MAX : 0;
	portion->live_limit = portion->is_terminal || kept == UINT64_MAX ? UINT64_MAX : early;
}

size_t portion_live(struct portion *portion, size_t length)
{
	uint64_t room = portion->live_limit - portion->accepted;
	size_t now = length > room ? (size_t)room : length;
	portion->accepted += now;
	return now;
}

size_t portion_rest(const struct portion *portion, size_t length)
{
	return !portion_is_whole(portion) && length > portion->accepted ? length - (size_t)portion->accepted : 0;
}
