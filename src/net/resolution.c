/* The addresses of a name: see resolution.h. */
#include "net/resolution.h"

#include <stdio.h>
#include <string.h>

void resolution_add(struct resolution *resolution, const struct address *address)
{
	size_t at = resolution->count;
	for (size_t i = 0; i < resolution->count; i++) {
		const struct address *other = &resolution->addresses[i].address;
		if (other->length == address->length && !memcmp(other->bytes, address->bytes, address->length))
			return;
		/* Whichever family's answer came first. */
		if (at == resolution->count && other->length > address->length)
			at = i;
	}
	if (resolution->count == RESOLVE_ADDRESSES_MAX) {
		resolution->more = true;
		return;
	}
	memmove(&resolution->addresses[at + 1], &resolution->addresses[at],
	        (resolution->count - at) * sizeof(resolution->addresses[0]));
	resolution->addresses[at].address = *address;
	resolution->count++;
}

void resolution_judge(struct resolution *resolution, enum resolve_status status, const struct address_range *exemptions,
                      size_t exemption_count)
{
	resolution->status = resolution->more ? RESOLVE_TOO_MANY : resolution->count ? RESOLVE_FOUND : status;
	resolution->allowed = resolution->status == RESOLVE_FOUND;
	for (size_t i = 0; i < resolution->count; i++) {
		const struct address *address = &resolution->addresses[i].address;
		resolution->addresses[i].verdict = address_judge(address, exemptions, exemption_count);
		resolution->allowed &= resolution->addresses[i].verdict.allowed;
	}
}

bool resolution_is_at_site(const struct resolution *resolution)
{
	bool is_at_site = resolution->status == RESOLVE_FOUND && !resolution->allowed;
	for (size_t i = 0; i < resolution->count; i++) {
		const struct address_verdict *verdict = &resolution->addresses[i].verdict;
		is_at_site &= verdict->allowed || address_is_at_site(verdict);
	}
	return is_at_site;
}

void resolution_why(const struct host *host, const struct resolution *resolution, char ret_text[RESOLVE_WHY_SIZE])
{
	static const char *const texts[RESOLVE_STATUS_MAX] = {
		[RESOLVE_FOUND] = "",
		[RESOLVE_NOT_FOUND] = "there is no such name, or it has no address",
		[RESOLVE_TOO_MANY] = "it has more addresses than are looked at",
		[RESOLVE_FAILED] = "no name server gave a proper answer",
		[RESOLVE_TIMED_OUT] = "no name server answered in time",
	};
	ret_text[0] = '\0';
	if (resolution->allowed)
		return;
	if (resolution->status == RESOLVE_NAME_REFUSED) {
		snprintf(ret_text, RESOLVE_WHY_SIZE, "metadata: %s", address_name_refused(host->name));
		return;
	}
	snprintf(ret_text, RESOLVE_WHY_SIZE, "%s", texts[resolution->status]);
	for (size_t i = 0; i < resolution->count && resolution->status == RESOLVE_FOUND && !*ret_text; i++) {
		char address[ADDRESS_TEXT_SIZE], why[ADDRESS_WHY_SIZE];
		if (resolution->addresses[i].verdict.allowed)
			continue;
		address_text(&resolution->addresses[i].address, address);
		address_why(&resolution->addresses[i].verdict, why);
		snprintf(ret_text, RESOLVE_WHY_SIZE, "%s is %s", address, why);
	}
}
