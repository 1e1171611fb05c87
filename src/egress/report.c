/* What the result says of a command's network. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "egress/egress.h"

#define HINT_HOSTS_MAX 4        /* that one line names */

/* ":PORT", unless the host has one: a name that was only looked up has none, but the command may have said which. */
static void write_port(const struct egress_report *report, const char *host, const char *otherwise, char ret_port[8])
{
	if (strchr(host, ':'))
		*ret_port = '\0';
	else if (report->named_host && !strcmp(report->named_host, host))
		snprintf(ret_port, 8, ":%d", report->named_port);
	else
		snprintf(ret_port, 8, ":%s", otherwise);
}

/* The smallest grant that would have helped: the host, unless it was among them and its address was not; then that. */
static int add_denied(const struct egress_report *report, const struct egress_denied *denied, bool offline)
{
	char note[512], grant[HOST_TEXT_SIZE + 64] = "", port[8];
	write_port(report, denied->host, offline ? "443" : "PORT", port);
	snprintf(note, sizeof(note), "%s%s%" PRIu64 " time%s", denied->why, *denied->why ? "; " : "", denied->count,
	         denied->count == 1 ? "" : "s");
	if (!offline && denied->is_at_site)
		snprintf(grant, sizeof(grant), "--net-private %s", denied->host);
	else if (!offline && *denied->address)
		snprintf(grant, sizeof(grant), "network.allow_private = [\"%s\"]", denied->address);
	else if (offline || !denied->covered)
		snprintf(grant, sizeof(grant), "--net %s%s", denied->host, port);
	return denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, denied->host, note, grant);
}

/* "no network access (tried: a.test, b.test). To allow it: --net a.test:443 --net b.test:443" */
static int make_offline_hint(const struct egress_command *command, struct egress_report *report)
{
	struct arena *arena = report->arena;
	const char *tried = "", *options = "";
	for (size_t i = 0; i < command->denied_count && i < HINT_HOSTS_MAX && tried && options; i++) {
		const char *host = command->denied[i].host, *colon = strrchr(host, ':');
		char port[8];
		write_port(report, host, "443", port);
		int length = (int)(colon ? (size_t)(colon - host) : strlen(host));
		tried = arena_printf(arena, "%s%s%.*s", tried, i ? ", " : "", length, host);
		options = arena_printf(arena, "%s --net %s%s", options, host, port);
	}
	if (!command->denied_count)
		return 0;
	report->offline_hint = !tried || !options ? NULL :
		arena_printf(arena, PROXY_NO_NETWORK " (tried: %s%s). To allow it:%s", tried,
		             command->denied_count > HINT_HOSTS_MAX ? ", ..." : "", options);
	return report->offline_hint ? 0 : -1;
}

int egress_report_fill(const struct egress_command *command, struct egress_report *report)
{
	const struct egress *egress = command->egress;
	char more[64];
	if (egress_is_offline(egress) && make_offline_hint(command, report) < 0)
		return -1;
	report->counts = command->counts;
	for (size_t i = 0; i < command->denied_count; i++)
		if (add_denied(report, &command->denied[i], egress_is_offline(egress)) < 0)
			return -1;
	snprintf(more, sizeof(more), "%" PRIu64 " more connections were denied", command->denied_more);
	if (command->denied_more &&
	    denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, "other hosts", more, "") < 0)
		return -1;
	if (*egress->why && !egress_is_offline(egress) &&
	    denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, "all hosts", egress->why, "") < 0)
		return -1;
	if (egress->unrecorded &&
	    denials_add(report->denials, report->arena, CORDON_WALL_NETWORK, "all hosts",
	                "the ledger could not be written: its connections were closed, and no more were made", "") < 0)
		return -1;
	return 0;
}
