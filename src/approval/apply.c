/* What an answer changes in a session's record: see approvals.h. */
#include <string.h>

#include "approval/approvals.h"

/* Of a session in which much is denied and something approved in between, the oldest denials are forgotten. */
#define DENIALS_MAX 512

const struct session_denial *approval_denied(const struct session_record *record,
                                             const struct approval_question *question)
{
	for (size_t i = 0; i < record->denial_count; i++)
		if (!strcmp(record->denials[i].hash, question->hash))
			return &record->denials[i];
	return NULL;
}

const struct session_grant *approval_granted(const struct session_record *record,
                                             const struct approval_question *question)
{
	for (size_t i = 0; i < record->grant_count && !question->places.count; i++)
		if (!strcmp(record->grants[i].hash, question->hash))
			return &record->grants[i];
	return NULL;
}

static int apply_denial(struct arena *arena, struct session_record *record, const struct approval_question *question,
                        const struct approval_answer *answer)
{
	if (approval_denied(record, question))
		return 1;
	size_t kept = record->denial_count < DENIALS_MAX ? record->denial_count : DENIALS_MAX - 1;
	struct session_denial *denials = arena_alloc(arena, (kept + 1) * sizeof(*denials));
	if (!denials)
		return -1;
	if (kept)
		memcpy(denials, record->denials + (record->denial_count - kept), kept * sizeof(*denials));
	denials[kept] = (struct session_denial){ question->hash, answer->reason, answer->time };
	record->denials = denials;
	record->denial_count = kept + 1;
	if (record->denied_in_a_row < UINT32_MAX)
		record->denied_in_a_row++;
	if (question->denials_to_pause && record->denied_in_a_row >= question->denials_to_pause &&
	    record->state == SESSION_ACTIVE) {
		record->state = SESSION_PAUSED;
		record->why = arena_printf(arena, "%u denials in a row", record->denied_in_a_row);
		if (!record->why)
			return -1;
	}
	return 0;
}

static bool has_grant(const struct session_record *record, const char *card)
{
	for (size_t i = 0; i < record->grant_count; i++)
		if (!strcmp(record->grants[i].card, card))
			return true;
	return false;
}

static int apply_grant(struct arena *arena, struct session_record *record, const struct approval_question *question,
                       const struct approval_answer *answer)
{
	/* It may have ended since that was answered. */
	if (record->state == SESSION_ENDED || has_grant(record, question->id))
		return 1;
	struct session_grant *grants = arena_alloc(arena, (record->grant_count + 1) * sizeof(*grants));
	if (!grants)
		return -1;
	if (record->grant_count)
		memcpy(grants, record->grants, record->grant_count * sizeof(*grants));
	grants[record->grant_count] = (struct session_grant){ .card = question->id, .hash = question->hash,
	                                                      .time = answer->time, .set = question->excess,
	                                                      .places = question->places };
	record->grants = grants;
	record->grant_count++;
	record->denied_in_a_row = 0;
	return 0;
}

int approval_apply(struct arena *arena, struct session_record *record, const struct approval_question *question,
                   const struct approval_answer *answer)
{
	bool had_denials = record->denied_in_a_row != 0;
	switch (answer->outcome) {
	case APPROVAL_SESSION:
		return apply_grant(arena, record, question, answer);
	case APPROVAL_DENIED:
		return apply_denial(arena, record, question, answer);
	case APPROVAL_ONCE:
		record->denied_in_a_row = 0;
		return had_denials ? 0 : 1;
	default:
		return 1;
	}
}
