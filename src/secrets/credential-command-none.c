/* Where no command is started for a credential: see credential-command.h. */
#include "secrets/credential-command.h"

#include <errno.h>

enum credential_end credential_execute(const char *const *argv, char *const *environment, uint64_t timeout_ms,
                                       struct credential_output *output)
{
	(void)argv;
	(void)environment;
	(void)timeout_ms;
	output->status = ENOSYS;
	return CREDENTIAL_NOT_STARTED;
}
