/* The shapes that are more than a prefix and a run of bytes: PEM blocks, AWS secrets, bot tokens, JSON web tokens. */
#include <string.h>

#include "secrets/kinds.h"

static bool is_digit(unsigned char byte)
{
	return byte >= '0' && byte <= '9';
}

static enum secret_answer undecided(const struct secret_text *text)
{
	return text->is_final ? SECRET_NO : SECRET_MORE;
}

/* What a PEM block's header may say besides PRIVATE KEY: capital letters and spaces, ended by five dashes. */
#define PEM_HEADER 64
/* How far apart two runs of base64 may be: a line's end, an indent, or the two header lines of an encrypted key. */
#define PEM_GAP 128
#define PEM_RUN 16

static bool is_pem_space(unsigned char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == '\\' || byte == '"' || byte == ',' ||
	       byte == '\'';
}

/* Behind the header's last dash. 0: no private key's header; text->length + 1: it is not complete. */
static size_t pem_header(const struct secret_text *text, size_t at)
{
	static const char wanted[] = "PRIVATE KEY";
	size_t end = at;
	while (end < text->length && end - at < PEM_HEADER &&
	       (text->bytes[end] == ' ' || secret_in_body(SECRET_UPPER, text->bytes[end])))
		end++;
	if (end - at == PEM_HEADER)
		return 0;
	if (end == text->length)
		return text->length + 1;
	if (!memmem(text->bytes + at, end - at, wanted, sizeof(wanted) - 1))
		return 0;
	for (size_t i = 0; i < 5; i++, end++) {
		if (end == text->length)
			return text->length + 1;
		if (text->bytes[end] != '-')
			return 0;
	}
	return end;
}

/* The line that closes the block, from its first dash; 0: this is none. */
static size_t pem_close(const struct secret_text *text, size_t at)
{
	size_t end = at + 8;
	if (text->length - at < 8 || memcmp(text->bytes + at, "-----END", 8) != 0)
		return 0;
	while (end < text->length && end - at < PEM_HEADER && text->bytes[end] != '-' && text->bytes[end] != '\n')
		end++;
	for (size_t i = 0; i < 5 && end < text->length && text->bytes[end] == '-'; i++)
		end++;
	return end;
}

/* Whether the prefix of the row is there, or may be; *ret_start is set where it is not SECRET_NO. */
static enum secret_answer find_prefix(const struct secret_row *row, const struct secret_text *text, size_t at,
                                      size_t *ret_start)
{
	size_t prefix = row->prefix_length;
	if (at < row->back)
		return SECRET_NO;
	size_t start = at - row->back, known = text->length - start;
	if (memcmp(text->bytes + start, row->prefix, known < prefix ? known : prefix) != 0)
		return SECRET_NO;
	*ret_start = start;
	return known < prefix ? undecided(text) : SECRET_FOUND;
}

/* A block that is cut short is a secret as far as it goes. It ends at the closing line, at another block, where no
 * base64 follows for PEM_GAP bytes, or at a byte that has no place in one. */
enum secret_answer shape_pem(const struct secret_row *row, const struct secret_text *text, size_t at, size_t *ret_start,
                             size_t *ret_end)
{
	size_t run = 0, good = 0;
	enum secret_answer begins = find_prefix(row, text, at, ret_start);
	if (begins != SECRET_FOUND)
		return begins;
	size_t header = pem_header(text, *ret_start + row->prefix_length);
	if (!header || header > text->length)
		return header ? undecided(text) : SECRET_NO;

	size_t end = header, limit = header + row->max, i;
	for (i = header; i < text->length && i < limit && i - end < PEM_GAP; i++) {
		unsigned char byte = text->bytes[i];
		if (byte == '-' && text->length - i >= 5 && !memcmp(text->bytes + i, "-----", 5)) {
			size_t close = pem_close(text, i);
			if (text->length - i < PEM_HEADER && !text->is_final && (!close || close == text->length))
				return SECRET_MORE;
			end = close ? close : end;
			break;
		}
		bool is_base64 = secret_in_body(SECRET_SLASHED, byte) || byte == '=';
		if (!is_base64 && !is_pem_space(byte) && byte != '-' && byte != ':')
			break;
		run = is_base64 ? run + 1 : 0;
		good += is_base64;
		if (run >= PEM_RUN)
			end = i + 1;
	}
	if (i == text->length && !text->is_final)
		return SECRET_MORE;
	*ret_end = end;
	return good >= row->min && end > header + row->min ? SECRET_FOUND : SECRET_NO;
}

static bool has_both_cases(const unsigned char *bytes, size_t length)
{
	bool upper = false, lower = false;
	for (size_t i = 0; i < length; i++) {
		upper |= bytes[i] >= 'A' && bytes[i] <= 'Z';
		lower |= bytes[i] >= 'g' && bytes[i] <= 'z';
	}
	return upper && lower;
}

/* What AWS writes in the place of a key in its documentation: AKIAIOSFODNN7EXAMPLE, and wJal...EXAMPLEKEY. */
static bool ends_with(const struct secret_text *text, size_t end, const char *ending)
{
	size_t length = strlen(ending);
	return end >= length && !memcmp(text->bytes + end - length, ending, length);
}

/* An AWS secret key: 40 bytes of base64 that stand alone. */
#define AWS_SECRET 40
static bool is_aws_secret(const struct secret_text *text, size_t at, size_t run)
{
	return run == AWS_SECRET && secret_varies(text->bytes + at, run) && has_both_cases(text->bytes + at, run) &&
	       !ends_with(text, at + run, "EXAMPLEKEY");
}

/* The secret mostly follows its id: in a credentials file, in JSON, in exported variables. Runs from `at` are judged as
 * far as AWS_NEAR. Returns behind the secret; 0: there is none; text->length + 1: it may still come. */
#define AWS_NEAR 160
static size_t aws_secret(const struct secret_text *text, size_t at)
{
	struct secret_span *none = &text->memory->aws;
	size_t limit = at + AWS_NEAR, i = at, from = at;
	while (i < text->length && i < limit) {
		size_t run = secret_run(text, i, SECRET_SLASHED, SIZE_MAX), end = i + run;
		bool is_cut = end == text->length && run <= AWS_SECRET;
		if (is_cut && !text->is_final)
			break;
		if (is_aws_secret(text, i, run) && (is_cut || text->bytes[end] != '='))
			return end;
		i = end + !run;
		/* An earlier look went on from here. */
		if (i >= none->from && i < none->to) {
			from = none->from < from ? none->from : from;
			i = none->to;
		}
	}
	*none = (struct secret_span){ from, i };
	return i < limit && !text->is_final ? text->length + 1 : 0;
}

enum secret_answer shape_aws(const struct secret_row *row, const struct secret_text *text, size_t at, size_t *ret_start,
                             size_t *ret_end)
{
	enum secret_answer answer = shape_run(row, text, at, ret_start, ret_end);
	if (answer != SECRET_FOUND)
		return answer;
	if (ends_with(text, *ret_end, "EXAMPLE"))
		return SECRET_NO;
	size_t end = aws_secret(text, *ret_end);
	if (end > text->length)
		return SECRET_MORE;
	*ret_end = end ? end : *ret_end;
	return SECRET_FOUND;
}

/* NAME, then quotes, spaces, an equals sign or a colon, then the secret; the name is not part of it. */
#define NAMED_GAP 12
enum secret_answer shape_named(const struct secret_row *row, const struct secret_text *text, size_t at,
                               size_t *ret_start, size_t *ret_end)
{
	size_t prefix = row->prefix_length;
	enum secret_answer begins = find_prefix(row, text, at, ret_start);
	if (begins != SECRET_FOUND)
		return begins;
	size_t start = *ret_start, i = start + prefix;
	while (i < text->length && i - start - prefix < NAMED_GAP && strchr(" \t\"'=:>\\", text->bytes[i]) &&
	       text->bytes[i])
		i++;
	size_t run = secret_run(text, i, row->body, row->max + 1);
	if (i + run == text->length && run <= row->max && !text->is_final)
		return SECRET_MORE;
	if (!is_aws_secret(text, i, run))
		return SECRET_NO;
	*ret_start = i;
	*ret_end = i + run;
	return SECRET_FOUND;
}

static int base64_value(unsigned char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return byte - 'A';
	if (byte >= 'a' && byte <= 'z')
		return byte - 'a' + 26;
	if (byte >= '0' && byte <= '9')
		return byte - '0' + 52;
	return byte == '-' || byte == '+' ? 62 : 63;
}

/* From `at` to `end`, URL-safe base64, unpadded; returns how many bytes they are. */
static size_t base64_decode(const struct secret_text *text, size_t at, size_t end, unsigned char *ret_bytes,
                            size_t size)
{
	unsigned bits = 0, have = 0;
	size_t count = 0;
	text->memory->steps += end - at;
	for (size_t i = at; i < end && count < size; i++) {
		bits = bits << 6 | (unsigned)base64_value(text->bytes[i]);
		have += 6;
		if (have >= 8) {
			have -= 8;
			ret_bytes[count++] = (unsigned char)(bits >> have);
		}
	}
	return count;
}

/* A run that may still grow; sets `*ret_end` behind it. */
static enum secret_answer run_between(const struct secret_text *text, size_t at, size_t min, size_t max,
                                      size_t *ret_end)
{
	size_t run = secret_run(text, at, SECRET_TOKEN, max + 1);
	*ret_end = at + run;
	if (run > max)
		return SECRET_NO;
	if (at + run == text->length && !text->is_final)
		return SECRET_MORE;
	return run < min ? SECRET_NO : SECRET_FOUND;
}

/* Three runs with a dot between; the first is the bot's number, as digits, in base64. */
enum secret_answer shape_discord(const struct secret_row *row, const struct secret_text *text, size_t at,
                                 size_t *ret_start, size_t *ret_end)
{
	static const struct { size_t min, max; } parts[3] = { { 23, 28 }, { 5, 8 }, { 25, 45 } };
	size_t from = at, end = at;
	(void)row;
	*ret_start = at;
	if (!secret_begins(text, at))
		return SECRET_NO;
	for (size_t i = 0; i < 3; i++) {
		enum secret_answer answer = run_between(text, from, parts[i].min, parts[i].max, &end);
		if (answer != SECRET_FOUND)
			return answer;
		if (!i) {
			unsigned char digits[32];
			size_t count = base64_decode(text, from, end, digits, sizeof(digits));
			for (size_t k = 0; k < count; k++)
				if (!is_digit(digits[k]))
					return SECRET_NO;
		}
		if (i < 2 && (end == text->length || text->bytes[end] != '.'))
			return SECRET_NO;
		from = end + 1;
	}
	*ret_end = end;
	return SECRET_FOUND;
}

/* The bot's number, a colon, and 35 bytes that begin with A. The anchor is the number's last digit. In an address the
 * number follows the word "bot". */
#define BOT_DIGITS 12
enum secret_answer shape_telegram(const struct secret_row *row, const struct secret_text *text, size_t at,
                                  size_t *ret_start, size_t *ret_end)
{
	size_t digits = 1, run = secret_run(text, at + 2, row->body, row->max + 1);
	while (digits <= BOT_DIGITS && digits <= at && is_digit(text->bytes[at - digits]))
		digits++;
	if (digits < 6 || digits > BOT_DIGITS)
		return SECRET_NO;
	*ret_start = at + 1 - digits;
	*ret_end = at + 2 + run;
	if (run <= row->max && *ret_end == text->length && !text->is_final)
		return SECRET_MORE;
	return run == row->max && secret_varies(text->bytes + at + 2, run) ? SECRET_FOUND : SECRET_NO;
}

static bool is_base36(unsigned char byte)
{
	return is_digit(byte) || (byte >= 'a' && byte <= 'z');
}

/* Routable tokens have two fields behind the run, of digits and small letters: `.01.170a5i9pl`, or both as one. */
#define GITLAB_FIELD 12
enum secret_answer shape_gitlab(const struct secret_row *row, const struct secret_text *text, size_t at,
                                size_t *ret_start, size_t *ret_end)
{
	enum secret_answer answer = shape_run(row, text, at, ret_start, ret_end);
	size_t from = *ret_end;
	while (answer == SECRET_FOUND && from < text->length && text->bytes[from] == '.') {
		size_t end = from + 1;
		while (end < text->length && end - from <= GITLAB_FIELD && is_base36(text->bytes[end]))
			end++;
		if (end == text->length && !text->is_final)
			return SECRET_MORE;
		size_t length = end - from - 1;
		if (length >= 7 && length <= 9)
			*ret_end = end;
		/* The first field, of two bytes, is one only with the other. */
		if (length != 2 || from != *ret_end)
			break;
		from = end;
	}
	return answer;
}

/* Three letters are few: it must not be a part of base64 either. */
enum secret_answer shape_brave(const struct secret_row *row, const struct secret_text *text, size_t at,
                               size_t *ret_start, size_t *ret_end)
{
	if (at && (text->bytes[at - 1] == '+' || text->bytes[at - 1] == '/' || text->bytes[at - 1] == '-'))
		return SECRET_NO;
	enum secret_answer answer = shape_run(row, text, at, ret_start, ret_end);
	if (answer != SECRET_FOUND)
		return answer;
	unsigned char next = *ret_end < text->length ? text->bytes[*ret_end] : 0;
	return has_both_cases(text->bytes + at + 3, *ret_end - at - 3) && next != '+' && next != '/' && next != '='
	               ? SECRET_FOUND : SECRET_NO;
}

/* Claims and signature, from the dot behind the header. */
static enum secret_answer jwt_rest(const struct secret_row *row, const struct secret_text *text, size_t dot,
                                   size_t *ret_end)
{
	size_t end = dot;
	for (size_t i = 0; i < 2; i++) {
		if (end == text->length || text->bytes[end] != '.')
			return SECRET_NO;
		enum secret_answer answer = run_between(text, end + 1, row->min, i ? 1024 : row->max, &end);
		if (answer != SECRET_FOUND)
			return answer;
	}
	*ret_end = end;
	return SECRET_FOUND;
}

/* Header, claims and signature in base64, with dots between; the header, which names an algorithm, is looked into. A
 * header may begin at every `eyJ` of one long run: what follows its end is judged once for all of them, and what is in
 * it once for those that decode alike. */
enum secret_answer shape_jwt(const struct secret_row *row, const struct secret_text *text, size_t at, size_t *ret_start,
                             size_t *ret_end)
{
	struct secret_memory *memory = text->memory;
	unsigned char header[768];
	size_t end;
	*ret_start = at;
	if (!secret_begins(text, at))
		return SECRET_NO;
	enum secret_answer answer = run_between(text, at, row->min, 1024, &end);
	if (answer != SECRET_FOUND)
		return answer;
	if (memory->jwt_header[at % 4] == end || (memory->jwt_end == end && memory->jwt_answer == SECRET_NO))
		return SECRET_NO;
	if (!memmem(header, base64_decode(text, at, end, header, sizeof(header)), "\"alg\"", 5)) {
		memory->jwt_header[at % 4] = end;
		return SECRET_NO;
	}
	answer = memory->jwt_end == end ? memory->jwt_answer : jwt_rest(row, text, end, ret_end);
	if (answer != SECRET_FOUND) {
		memory->jwt_end = end;
		memory->jwt_answer = answer;
	}
	return answer;
}
