/* DNS for the sandbox: each name that a rule covers has an address inside, and no other name exists. Nothing is asked
 * of anyone, so that nothing gets out by asking. */
#pragma once
#include "proxy/connection.h"

/* What has come over UDP. */
void name_service_receive(struct proxy *proxy, int fd);
/* Over TCP: PHASE_NAMES. */
void name_service_begin(struct connection *connection);
void name_service_step(struct connection *connection);
void name_service_expire(struct connection *connection);
