/* Portions: see portion.h. The head is 40 % of what is kept; a few bytes less are handed on early, since the library does not
 * split a character there. */
#include "door/portion.h"

#include "base/text.h"

#define CHARACTER_MAX 4
#define STDOUT_KEPT (1u << 20)
#define STDERR_KEPT (256u << 10)

void portion_open(struct portion *portion, bool is_terminal, uint64_t kept)
{
	uint64_t head = kept / 5 * 2, early = head > CHARACTER_MAX ? head - CHARACTER_MAX : 0;
	*portion = (struct portion){ .is_terminal = is_terminal, .live_limit = is_terminal ? UINT64_MAX : early };
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
	return !portion->is_terminal && length > portion->accepted ? length - (size_t)portion->accepted : 0;
}

uint64_t portion_kept(const struct options *options, enum cordon_stream stream)
{
	const char *text = options_value(options, "max-output");
	uint64_t kept;
	if (!text)
		return stream == CORDON_STDERR ? STDERR_KEPT : STDOUT_KEPT;
	return text_parse_size(text, &kept) ? kept : UINT64_MAX; /* "unlimited": the library took it, so it is one of the two */
}
