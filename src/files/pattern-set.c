/* Sets in a pattern: see pattern-set.h. */
#include "files/pattern-set.h"

#include <string.h>

#include "base/utf8.h"

static void add_range(struct pattern_set *set, unsigned low, unsigned high)
{
	for (unsigned byte = low; byte <= high; byte++)
		set_add(set, (unsigned char)byte);
}

void set_fold(struct pattern_set *set)
{
	for (int letter = 'a'; letter <= 'z'; letter++) {
		unsigned char lower = (unsigned char)letter, upper = (unsigned char)(letter - 32);
		if (set_has(set, lower) || set_has(set, upper)) {
			set_add(set, lower);
			set_add(set, upper);
		}
	}
}

void set_negate_ascii(struct pattern_set *set)
{
	for (int i = 0; i < 2; i++)
		set->bits[i] = ~set->bits[i];
	set->bits[2] = set->bits[3] = 0;
}

void set_of_utf8(struct pattern_set *ret_set, unsigned length, unsigned at)
{
	static const unsigned char leads[5][2] = {
		{ 0 }, { 0x80, 0xc1 }, { 0xc2, 0xdf }, { 0xe0, 0xef }, { 0xf0, 0xf4 }
	};
	memset(ret_set, 0, sizeof(*ret_set));
	if (at)
		add_range(ret_set, 0x80, 0xbf);
	else
		add_range(ret_set, leads[length][0], leads[length][1]);
	if (length == 1)
		add_range(ret_set, 0xf5, 0xff);
}

int set_single(const struct pattern_set *set)
{
	int only = -1;
	for (int byte = 0; byte < 256; byte++) {
		if (!set_has(set, (unsigned char)byte))
			continue;
		if (only >= 0)
			return -1;
		only = byte;
	}
	return only;
}

bool set_of_class(char letter, struct pattern_set *ret_set, bool *ret_beyond)
{
	struct pattern_set set = { { 0 } };
	switch (letter | 0x20) {
	case 'd':
		add_range(&set, '0', '9');
		break;
	case 'w':
		add_range(&set, '0', '9');
		add_range(&set, 'A', 'Z');
		add_range(&set, 'a', 'z');
		set_add(&set, '_');
		break;
	case 's':
		add_range(&set, '\t', '\r');
		set_add(&set, ' ');
		break;
	default:
		return false;
	}
	*ret_beyond = letter < 'a';
	if (*ret_beyond)
		set_negate_ascii(&set);
	*ret_set = set;
	return true;
}

static bool of_name(const char *name, size_t length, struct pattern_set *set)
{
	static const struct {
		const char *name, *ranges;
	} rows[] = {
		{ "alpha", "AZaz" },    { "digit", "09" },      { "alnum", "09AZaz" }, { "upper", "AZ" },
		{ "lower", "az" },      { "space", "\t\r  " },  { "blank", "\t\t  " }, { "punct", "!/:@[`{~" },
		{ "xdigit", "09AFaf" }, { "word", "09AZaz__" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strlen(rows[i].name) != length || memcmp(rows[i].name, name, length) != 0)
			continue;
		for (const char *range = rows[i].ranges; *range; range += 2)
			add_range(set, (unsigned char)range[0], (unsigned char)range[1]);
		return true;
	}
	return false;
}

static size_t encode(unsigned code, char bytes[4])
{
	if (code < 0x80) {
		bytes[0] = (char)code;
		return 1;
	}
	size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = length; i-- > 1; code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3f));
	bytes[0] = (char)(leads[length] | code);
	return length;
}

static int hex(char digit)
{
	const char *digits = "0123456789abcdef",
		   *at = digit ? strchr(digits, digit >= 'A' && digit <= 'F' ? digit | 0x20 : digit) : NULL;
	return at ? (int)(at - digits) : -1;
}

/* After "x": two digits, or some in braces. */
static const char *read_code(const char **at, const char *end, char bytes[4], size_t *ret_length)
{
	unsigned code = 0;
	const bool braces = *at < end && **at == '{';
	unsigned digits = 0, most = braces ? 6 : 2;
	for (*at += braces; *at < end && digits < most && hex(**at) >= 0; digits++)
		code = code << 4 | (unsigned)hex(*(*at)++);
	if (!digits || (!braces && digits < 2) || (braces && (*at == end || *(*at)++ != '}')) || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return "after \\x come two digits, or the number of a character in braces";
	/* Two digits are a byte, whatever it is. */
	*ret_length = braces ? encode(code, bytes) : 1;
	if (!braces)
		bytes[0] = (char)code;
	return NULL;
}

const char *set_read_escape(const char **at, const char *end, char ret_bytes[4], size_t *ret_length)
{
	static const char letters[] = "tnrfv0ae", meant[] = "\t\n\r\f\v\0\a\033";
	if (*at == end)
		return "a \\ at the end";
	char letter = *(*at)++;
	const char *known = letter ? strchr(letters, letter) : NULL;
	if (letter == 'x')
		return read_code(at, end, ret_bytes, ret_length);
	if (!known &&
	    ((letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z')))
		return letter >= '1' && letter <= '9' ? "there are no back references" : "an escape that is not known";
	ret_bytes[0] = known ? meant[known - letters] : letter;
	*ret_length = 1;
	return NULL;
}

/* One character of a set, or a class: then *ret_length is 0. */
static const char *read_member(struct set_reading *reading, char bytes[4], size_t *ret_length)
{
	bool beyond;
	struct pattern_set set;
	*ret_length = 0;
	if (*reading->at == '[' && reading->end - reading->at > 2 && reading->at[1] == ':') {
		const char *close = memmem(reading->at, (size_t)(reading->end - reading->at), ":]", 2);
		if (!close || !of_name(reading->at + 2, (size_t)(close - reading->at) - 2, &reading->set))
			return "no class of this name is known";
		reading->at = close + 2;
		return NULL;
	}
	if (*reading->at == '\\') {
		reading->at++;
		if (reading->at < reading->end && set_of_class(*reading->at, &set, &beyond)) {
			reading->at++;
			for (int i = 0; i < 4; i++)
				reading->set.bits[i] |= set.bits[i];
			reading->beyond |= beyond;
			return NULL;
		}
		if (reading->at < reading->end && *reading->at == 'b') {
			reading->at++;
			bytes[0] = '\b';
			*ret_length = 1;
			return NULL;
		}
		return set_read_escape(&reading->at, reading->end, bytes, ret_length);
	}
	size_t length = utf8_sequence(reading->at, (size_t)(reading->end - reading->at));
	*ret_length = length ? length : 1;
	memcpy(bytes, reading->at, *ret_length);
	reading->at += *ret_length;
	return NULL;
}

static const char *add_member(struct set_reading *reading, const char bytes[4], size_t length)
{
	if (length == 1 && (unsigned char)bytes[0] < 0x80) {
		set_add(&reading->set, (unsigned char)bytes[0]);
		return NULL;
	}
	if (reading->character_count == SET_CHARACTERS_MAX)
		return "too many characters beyond ASCII in a set";
	memcpy(reading->characters[reading->character_count].bytes, bytes, length);
	reading->characters[reading->character_count++].length = length;
	return NULL;
}

const char *set_read(struct set_reading *reading)
{
	if (reading->at < reading->end && *reading->at == '^') {
		reading->negated = true;
		reading->at++;
	}
	for (bool first = true; reading->at < reading->end && (first || *reading->at != ']'); first = false) {
		char low[4] = { 0 }, high[4] = { 0 };
		size_t length, high_length;
		const char *why = read_member(reading, low, &length);
		if (why)
			return why;
		if (!length)
			continue;
		if (reading->end - reading->at < 2 || reading->at[0] != '-' || reading->at[1] == ']') {
			if ((why = add_member(reading, low, length)))
				return why;
			continue;
		}
		reading->at++;
		if ((why = read_member(reading, high, &high_length)))
			return why;
		if (length != 1 || high_length != 1 || (unsigned char)low[0] >= 0x80 || (unsigned char)high[0] >= 0x80)
			return "a range in a set has two characters of ASCII at its ends";
		if ((unsigned char)low[0] > (unsigned char)high[0])
			return "a range in a set runs backwards";
		add_range(&reading->set, (unsigned char)low[0], (unsigned char)high[0]);
	}
	if (reading->at == reading->end)
		return "a set that is not closed";
	reading->at++;
	return reading->negated && reading->beyond ? "a negated set cannot have \\D, \\W or \\S in it" : NULL;
}
