/* What a text of the sandbox profile language decides: of the rules that match, the last. This is our model of it, not
 * Apple's implementation: it knows the statements that cordon writes and refuses any other. */
#pragma once
#include <stdbool.h>

#include "profile/seatbelt.h"

enum seatbelt_answer { SEATBELT_DENIED, SEATBELT_ALLOWED, SEATBELT_UNREADABLE };

/* `subject`: a path, "same-sandbox", "localhost:3128" or "udp localhost:3128", the name of a service or a setting; or
 * "". */
enum seatbelt_answer seatbelt_decide(const struct seatbelt *seatbelt, const char *operation, const char *subject);
