/* What the first code leaves: see handed.h. In programs without such code it stays zero. */
#include "door/handed.h"

#include "base/error.h"
#include "door/report.h"

struct entry_handed entry_handed;

bool handed_is_over(bool json, int *ret_status)
{
	struct cordon_error err;
	if (entry_handed.what != ENTRY_WRITE_FAILED)
		return false;
	fail(&err, CORDON_E_INTERNAL, entry_handed.error, NULL, "the output could not be written");
	report_error(&err, json);
	*ret_status = STATUS_REFUSED;
	return true;
}
