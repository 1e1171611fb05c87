/* What the stand-in for fwpuclnt.dll tells its test, and is told by it; it is exported as "fake_wfp". */
#pragma once
#include <stdbool.h>
#include <windows.h>
#include <fwpmu.h>

#define FAKE_FILTERS 32

struct fake_wfp {
	char calls[4096];               /* the names of the calls, each with a space */
	const char *failing;            /* this call fails, by this number */
	DWORD error;
	/* What reads back wrong: nothing; the sublayer's weight; of the filter `lying_filter` its action, layer,
	 * weight, number of conditions, a condition's value, its descriptor; it is disabled; it is not there. */
	enum fake_lie {
		LIE_NONE,
		LIE_SUBLAYER,
		LIE_ACTION,
		LIE_LAYER,
		LIE_WEIGHT,
		LIE_COUNT,
		LIE_VALUE,
		LIE_DESCRIPTOR,
		LIE_DISABLED,
		LIE_GONE,
		LIE_MAX
	} lie;
	unsigned lying_filter;
	UINT32 session_flags, sublayer_session_flags;
	bool open, committed;
	FWPM_SUBLAYER0 sublayer;
	unsigned count;
	FWPM_FILTER0 filters[FAKE_FILTERS];
	FWPM_FILTER_CONDITION0 conditions[FAKE_FILTERS][4];
	FWP_BYTE_BLOB blobs[FAKE_FILTERS];
	BYTE descriptors[FAKE_FILTERS][512];
	unsigned handed_out;            /* and not given back */
};
