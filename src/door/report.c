/* Messages for people. Everything in them that came from a command, a file name or the command line is untrusted, and
 * what of it is not plain is written as an escape. */
#include "door/report.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/visible.h"

void report_untrusted(FILE *out, const char *text)
{
	for (size_t left = strlen(text); left;) {
		struct visible seen = visible_next(text, left);
		if (seen.is_plain)
			fwrite(text, 1, seen.length, out);
		else if (!seen.is_utf8 || seen.code < 0x80)
			fprintf(out, "\\x%02x", (unsigned)seen.code);
		else
			fprintf(out, "\\u{%x}", (unsigned)seen.code);
		text += seen.length;
		left -= seen.length;
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
	else if (result->limit_hit && !strcmp(result->limit_hit, "disk")) {
		char used[TEXT_AMOUNT_SIZE], allowed[TEXT_AMOUNT_SIZE];
		text_format_size(result->limit_used, used);
		text_format_size(result->limit_allowed, allowed);
		fprintf(stderr, "cordon: ended for want of disk space: %s used, %s allowed (--disk)\n", used, allowed);
	} else if (result->limit_hit) {
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
		/* Where no control group can be had, no command's is, and cordon doctor tells. */
		if (!result->isolation[wall] || strcmp(result->isolation[wall], "none") || wall == CORDON_WALL_LIMIT_CPU)
			continue;
		if (!missing++)
			fprintf(stderr, "cordon: the driver %s did not hold: ", result->driver ? result->driver : "used");
		fprintf(stderr, "%s%s", missing > 1 ? ", " : "", cordon_wall_name(wall));
	}
	if (missing)
		fputc('\n', stderr);
}

static void remark_network(const struct cordon_result *result)
{
	if (result->network_hint)
		fprintf(stderr, "cordon: %s: %s\n", cordon_class_name(CORDON_E_NETWORK_UNREACHABLE), result->network_hint);
}

void report_remarks(const struct cordon_result *result, bool stdout_as_kept, bool stderr_as_kept)
{
	remark_end(result);
	if (stdout_as_kept)
		remark_cut("standard output", result->stdout_bytes, result->stdout_length);
	if (stderr_as_kept)
		remark_cut("standard error", result->stderr_bytes, result->stderr_length);
	remark_network(result);
	for (size_t i = 0; i < result->denial_count; i++)
		remark_denial(&result->denials[i]);
	if (result->note) {
		fputs("cordon: ", stderr);
		report_untrusted(stderr, result->note);
		fputc('\n', stderr);
	}
	remark_walls(result);
	fflush(stderr);
}
