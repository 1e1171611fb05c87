/* Messages to the user. Text that comes from a command, a file name or the command line is untrusted; everything but
 * plain characters is escaped. */
#include "door/cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "base/visible.h"
#include "door/agent/agent.h"

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

static void print_field(FILE *out, const char *name, const char *text)
{
	if (!*text)
		return;
	fprintf(out, "  %s: ", name);
	report_untrusted(out, text);
	fputc('\n', out);
}

void report_error_to(FILE *out, const struct cordon_error *err, bool json)
{
	auto_free char *text = json ? cordon_error_json(err) : NULL;
	if (text) {
		fprintf(out, "%s\n", text);
		return;
	}
	fputs("cordon: ", out);
	report_untrusted(out, *err->reason ? err->reason : cordon_class_name(err->class));
	if (*err->subject) {
		fputs(" (", out);
		report_untrusted(out, err->subject);
		fputc(')', out);
	}
	fputc('\n', out);
	print_field(out, "step", err->step == CORDON_STEP_NONE ? "" : cordon_step_name(err->step));
	print_field(out, "fix", err->remediation);
}

void report_error(const struct cordon_error *err, bool json)
{
	report_error_to(json ? stdout : stderr, err, json);
	if (!json)
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

int report_unwritten(int error, bool json)
{
	struct cordon_error err;
	fail(&err, CORDON_E_INTERNAL, error, NULL, "the output could not be written");
	if (error == EBADF)
		fail_remedy(&err, "leave the stream open; redirect unwanted output to /dev/null");
	report_error(&err, json);
	return STATUS_REFUSED;
}

int report_result_status(const struct cordon_result *result)
{
	if (result->error)
		return report_error_status(result->error);
	if (result->timed_out)
		return STATUS_TIMED_OUT;
	return result->signal ? STATUS_SIGNAL + result->signal : result->exit_code;
}

static void remark_end(FILE *out, const struct cordon_result *result)
{
	if (result->timed_out)
		fprintf(out, "cordon: timed out after %" PRIu64 ".%" PRIu64 " s and was ended (--timeout)\n",
		        result->duration_ms / 1000, result->duration_ms % 1000 / 100);
	else if (result->oom_killed)
		fputs("cordon: ran out of memory and was ended (--memory)\n", out);
	else if (result->limit_hit && !strcmp(result->limit_hit, "disk")) {
		char used[TEXT_AMOUNT_SIZE], allowed[TEXT_AMOUNT_SIZE];
		text_format_size(result->limit_used, used);
		text_format_size(result->limit_allowed, allowed);
		fprintf(out, "cordon: ran out of disk space and was ended: %s used, %s allowed (--disk)\n", used, allowed);
	} else if (result->limit_hit) {
		fputs("cordon: ended by a limit: ", out);
		report_untrusted(out, result->limit_hit);
		fputc('\n', out);
	}
}

/* What was kept may be longer than all that came, where secrets were replaced by longer names. */
static void remark_cut(FILE *out, const char *stream, uint64_t total, size_t kept)
{
	if (total > kept)
		fprintf(out, "cordon: %s cut: %zu of %" PRIu64 " bytes kept (--max-output)\n", stream, kept, total);
	else
		fprintf(out, "cordon: %s cut: not all is kept (--max-output)\n", stream);
}

/* An option that a person may copy to a shell: there a path, which a command may have named, is to be one word. */
static void print_grant(FILE *out, const char *grant)
{
	const char *space = strchr(grant, ' ');
	if (strncmp(grant, "--", 2) != 0 || !space || space[1] != '/')
		return report_untrusted(out, grant);
	fprintf(out, "%.*s ", (int)(space - grant), grant);
	visible_quote(out, space + 1);
}

/* The note says what was done; it may have been nothing, so the word "refused" is only for where there is none. */
static void remark_denial(FILE *out, const struct cordon_denial *denial)
{
	bool noted = denial->note && *denial->note;
	fputs(noted ? "cordon: " : "cordon: refused: ", out);
	report_untrusted(out, denial->what);
	if (denial->wall && *denial->wall) {
		fputs(" (", out);
		report_untrusted(out, denial->wall);
		fputc(')', out);
	}
	if (noted) {
		fputs(": ", out);
		report_untrusted(out, denial->note);
	}
	if (denial->grant && *denial->grant) {
		fputs("; allowed by ", out);
		print_grant(out, denial->grant);
	}
	fputc('\n', out);
}

static void remark_walls(FILE *out, const struct cordon_result *result)
{
	unsigned missing = 0;
	for (int wall = 0; wall < CORDON_WALL_MAX; wall++) {
		/* Where no control group can be had, no command's is, and cordon doctor tells. */
		if (!result->isolation[wall] || strcmp(result->isolation[wall], "none") ||
		    wall == CORDON_WALL_LIMIT_CPU)
			continue;
		if (!missing++)
			fprintf(out, "cordon: the driver %s did not hold: ", result->driver ? result->driver : "used");
		fprintf(out, "%s%s", missing > 1 ? ", " : "", cordon_wall_name(wall));
	}
	if (missing)
		fputc('\n', out);
}

static void remark_network(FILE *out, const struct cordon_result *result)
{
	if (!result->network_hint)
		return;
	fputs("cordon: ", out);
	report_untrusted(out, result->network_hint);
	fputc('\n', out);
}

/* The hint about the network names the hosts. */
static bool is_hinted(const struct cordon_result *result, const struct cordon_denial *denial)
{
	return result->network_hint && denial->wall && !strcmp(denial->wall, cordon_wall_name(CORDON_WALL_NETWORK));
}

static bool is_of(const struct cordon_denial *denial, enum cordon_wall wall)
{
	return denial->wall && !strcmp(denial->wall, cordon_wall_name(wall));
}

/* A protected name that appeared, was looked at and left alone, as those of a new repository are: no more than a line
 * of the result. */
static bool is_ordinary(const struct cordon_denial *denial)
{
	static const char kept[] = "; kept";
	size_t length = denial->note ? strlen(denial->note) : 0;
	return is_of(denial, CORDON_WALL_PROTECTED) && length >= sizeof(kept) - 1 &&
	       !strcmp(denial->note + length - (sizeof(kept) - 1), kept);
}

bool report_is_for_agent(const char *session)
{
	return session && !strncmp(session, AGENT_PREFIX, sizeof(AGENT_PREFIX) - 1);
}

void report_remarks(FILE *out, const struct cordon_result *result, const struct report_place *place)
{
	bool all = place->is_terminal || report_result_status(result) != 0;
	if (!all && place->is_shared)
		return;
	remark_end(out, result);
	if (place->stdout_as_kept && result->stdout_truncated)
		remark_cut(out, "standard output", result->stdout_bytes, result->stdout_length);
	if (place->stderr_as_kept && result->stderr_truncated)
		remark_cut(out, "standard error", result->stderr_bytes, result->stderr_length);
	if (all)
		remark_network(out, result);
	for (size_t i = 0; i < result->denial_count; i++) {
		const struct cordon_denial *denial = &result->denials[i];
		if (place->is_for_agent && is_of(denial, CORDON_WALL_MASKED))
			continue;
		if ((all || is_of(denial, CORDON_WALL_PROTECTED)) && !is_hinted(result, denial) && !is_ordinary(denial))
			remark_denial(out, denial);
	}
	remark_walls(out, result);
}

void report_note(FILE *out, const struct cordon_result *result)
{
	if (result->note) {
		fputs("cordon: ", out);
		report_untrusted(out, result->note);
		fputc('\n', out);
	}
	if (result->error)
		report_error_to(out, result->error, false);
}
