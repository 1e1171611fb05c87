/* Messages for people. Everything in them that came from a command, a file name or the command line is untrusted: a
 * terminal must not obey it, and it must not look like something else than it is. So control characters, the C1 range,
 * and characters that reorder or hide text are written as escapes. */
#include "door/report.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const struct {
	uint32_t first, last;
} deceiving[] = {
	{ 0x0000, 0x001f }, { 0x007f, 0x009f },         /* C0, DEL, C1 */
	{ 0x00ad, 0x00ad }, { 0x061c, 0x061c },         /* soft hyphen, Arabic letter mark */
	{ 0x200b, 0x200f }, { 0x2028, 0x202e },         /* zero width, marks; separators, embeddings, overrides */
	{ 0x2060, 0x2069 }, { 0xfeff, 0xfeff },         /* invisible operators, isolates; byte order mark */
	{ 0xe0000, 0xe007f },                           /* tags */
};

static uint32_t decode(const unsigned char *bytes, size_t length)
{
	uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++)
		code = code << 6 | (bytes[i] & 0x3fu);
	return code;
}

static bool deceives(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(deceiving); i++)
		if (code >= deceiving[i].first && code <= deceiving[i].last)
			return true;
	return false;
}

void report_untrusted(FILE *out, const char *text)
{
	for (size_t left = strlen(text); left;) {
		size_t length = utf8_sequence(text, left);
		uint32_t code = length ? decode((const unsigned char *)text, length) : 0;
		if (!length || (deceives(code) && code < 0x80))
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else if (deceives(code))
			fprintf(out, "\\u{%x}", (unsigned)code);
		else
			fwrite(text, 1, length, out);
		length += !length;
		text += length;
		left -= length;
	}
}

static void print_field(const char *name, const char *text)
{
	if (!*text)
		return;
	fprintf(stderr, "  %s: ", name);
	report_untrusted(stderr, text);
	fputc('\n', stderr);
}

void report_error(const struct cordon_error *err, bool json)
{
	auto_free char *text = json ? cordon_error_json(err) : NULL;
	if (text) {
		printf("%s\n", text);
		return;
	}
	fputs("cordon: ", stderr);
	report_untrusted(stderr, *err->reason ? err->reason : cordon_class_name(err->class));
	if (*err->subject) {
		fputs(" (", stderr);
		report_untrusted(stderr, err->subject);
		fputc(')', stderr);
	}
	fputc('\n', stderr);
	print_field("step", err->step == CORDON_STEP_NONE ? "" : cordon_step_name(err->step));
	print_field("fix", err->remediation);
	fflush(stderr);
}

int report_error_status(const struct cordon_error *err)
{
	switch (err->class) {
	case CORDON_E_PROGRAM_NOT_ALLOWED:
		return STATUS_NOT_EXECUTABLE;
	case CORDON_E_PROGRAM_NOT_FOUND:
		return STATUS_NOT_FOUND;
	default:
		return STATUS_REFUSED;
	}
}

static void remark_end(const struct cordon_result *result)
{
	if (result->timed_out)
		fprintf(stderr, "cordon: timed out after %" PRIu64 ".%" PRIu64 " s and was ended (--timeout)\n",
		        result->duration_ms / 1000, result->duration_ms % 1000 / 100);
	else if (result->oom_killed)
		fputs("cordon: ended for want of memory (--memory)\n", stderr);
	else if (result->limit_hit) {
		fputs("cordon: ended by a limit: ", stderr);
		report_untrusted(stderr, result->limit_hit);
		fputc('\n', stderr);
	}
}

static void remark_cut(const char *stream, uint64_t total, size_t kept)
{
	if (total > kept)
		fprintf(stderr, "cordon: %s cut: %zu of %" PRIu64 " bytes kept (--max-output)\n", stream, kept, total);
}

/* The note says what was done; it may have been nothing, so the word "refused" is only for where there is none. */
static void remark_denial(const struct cordon_denial *denial)
{
	bool noted = denial->note && *denial->note;
	fputs(noted ? "cordon: " : "cordon: refused: ", stderr);
	report_untrusted(stderr, denial->what);
	if (denial->wall && *denial->wall) {
		fputs(" (", stderr);
		report_untrusted(stderr, denial->wall);
		fputc(')', stderr);
	}
	if (noted) {
		fputs(": ", stderr);
		report_untrusted(stderr, denial->note);
	}
	if (denial->grant && *denial->grant) {
		fputs("; allowed by ", stderr);
		report_untrusted(stderr, denial->grant);
	}
	fputc('\n', stderr);
}

static void remark_walls(const struct cordon_result *result)
{
	unsigned missing = 0;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		if (!result->isolation[wall] || strcmp(result->isolation[wall], "none"))
			continue;
		if (!missing++)
			fprintf(stderr, "cordon: the driver %s did not hold: ", result->driver ? result->driver : "used");
		fprintf(stderr, "%s%s", missing > 1 ? ", " : "", cordon_wall_name(wall));
	}
	if (missing)
		fputc('\n', stderr);
}

void report_remarks(const struct cordon_result *result, bool stdout_as_kept, bool stderr_as_kept)
{
	remark_end(result);
	if (stdout_as_kept)
		remark_cut("standard output", result->stdout_bytes, result->stdout_length);
	if (stderr_as_kept)
		remark_cut("standard error", result->stderr_bytes, result->stderr_length);
	for (size_t i = 0; i < result->denial_count; i++)
		remark_denial(&result->denials[i]);
	remark_walls(result);
	fflush(stderr);
}
