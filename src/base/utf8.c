/* UTF-8 boundaries: see utf8.h. Table 3-7 of the Unicode standard. */
#include "base/utf8.h"

static bool continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

static size_t announced(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if ((first & 0xf0) == 0xe0)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

static bool second_fits(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0: return second >= 0xa0;
	case 0xed: return second <= 0x9f;
	case 0xf0: return second >= 0x90;
	case 0xf4: return second <= 0x8f;
	default: return true;
	}
}

size_t utf8_sequence(const char *text, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t size = announced(bytes[0]);
	if (size == 0 || size > length)
		return 0;
	for (size_t i = 1; i < size; i++)
		if (!continuation(bytes[i]))
			return 0;
	return size == 1 || second_fits(bytes[0], bytes[1]) ? size : 0;
}

size_t utf8_cut_tail(const char *text, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)text;
	for (size_t back = 1; back <= 3 && back <= length; back++) {
		unsigned char byte = bytes[length - back];
		if (continuation(byte))
			continue;
		if (back > 1 && !second_fits(byte, bytes[length - back + 1]))
			return 0;
		return announced(byte) > back ? back : 0;
	}
	return 0;
}

size_t utf8_cut_head(const char *text, size_t length)
{
	size_t count = 0;
	while (count < 3 && count < length && continuation((unsigned char)text[count]))
		count++;
	return count;
}

bool utf8_valid(const char *bytes, size_t length)
{
	for (size_t size; length; bytes += size, length -= size)
		if (!(size = utf8_sequence(bytes, length)))
			return false;
	return true;
}
