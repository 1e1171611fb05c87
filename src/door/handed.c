/* What the first code leaves: see handed.h. In programs without such code it stays zero. */
#include "door/handed.h"

#include "door/report.h"

struct entry_handed entry_handed;

bool handed_is_over(bool json, int *ret_status)
{
	if (entry_handed.what != ENTRY_WRITE_FAILED)
		return false;
	*ret_status = report_unwritten(entry_handed.error, json);
	return true;
}
