/* Stands in for fwpuclnt.dll, whose calls fail under wine: keeps the filters of one engine, and gives them back; see
 * fake-wfp.h. */
#include "fake-wfp.h"

#include <stdio.h>
#include <string.h>

__declspec(dllexport) struct fake_wfp fake_wfp;
#define ENGINE ((HANDLE)(ULONG_PTR)0xf11)
#define EXPORT __declspec(dllexport)

static DWORD called(const char *name, HANDLE engine)
{
	snprintf(fake_wfp.calls + strlen(fake_wfp.calls), sizeof(fake_wfp.calls) - strlen(fake_wfp.calls), "%s ", name);
	if (fake_wfp.failing && !strcmp(fake_wfp.failing, name))
		return fake_wfp.error;
	return engine == ENGINE ? ERROR_SUCCESS : ERROR_INVALID_HANDLE;
}

EXPORT DWORD WINAPI FwpmEngineOpen0(const wchar_t *server, UINT32 service, SEC_WINNT_AUTH_IDENTITY_W *identity,
                                    const FWPM_SESSION0 *session, HANDLE *engine)
{
	DWORD error = called("open", ENGINE);
	if (server || identity || service != 10)
		return ERROR_INVALID_PARAMETER;
	if (error)
		return error;
	fake_wfp.session_flags = session->flags;
	fake_wfp.open = true;
	*engine = ENGINE;
	return 0;
}

EXPORT DWORD WINAPI FwpmEngineClose0(HANDLE engine)
{
	fake_wfp.open = fake_wfp.committed = false;
	fake_wfp.count = 0;
	return called("close", engine);
}

EXPORT DWORD WINAPI FwpmTransactionBegin0(HANDLE engine, UINT32 flags)
{
	return flags ? ERROR_INVALID_PARAMETER : called("begin", engine);
}

EXPORT DWORD WINAPI FwpmTransactionCommit0(HANDLE engine)
{
	DWORD error = called("commit", engine);
	fake_wfp.committed = !error;
	return error;
}

EXPORT DWORD WINAPI FwpmSubLayerAdd0(HANDLE engine, const FWPM_SUBLAYER0 *sublayer, PSECURITY_DESCRIPTOR descriptor)
{
	fake_wfp.sublayer = *sublayer;
	fake_wfp.sublayer_session_flags = fake_wfp.session_flags;
	return descriptor ? ERROR_INVALID_PARAMETER : called("add_sublayer", engine);
}

EXPORT DWORD WINAPI FwpmSubLayerGetByKey0(HANDLE engine, const GUID *key, FWPM_SUBLAYER0 **sublayer)
{
	static FWPM_SUBLAYER0 copy;
	DWORD error = called("get_sublayer", engine);
	if (error || !fake_wfp.committed || !IsEqualGUID(key, &fake_wfp.sublayer.subLayerKey))
		return error ? error : ERROR_NOT_FOUND;
	copy = fake_wfp.sublayer;
	copy.weight = (UINT16)(copy.weight - (fake_wfp.lie == LIE_SUBLAYER));
	*sublayer = &copy;
	fake_wfp.handed_out++;
	return 0;
}

EXPORT DWORD WINAPI FwpmFilterAdd0(HANDLE engine, const FWPM_FILTER0 *filter, PSECURITY_DESCRIPTOR descriptor,
                                   UINT64 *id)
{
	DWORD error = called("add_filter", engine);
	unsigned i = fake_wfp.count;
	if (error || descriptor || id || i == FAKE_FILTERS || !filter->numFilterConditions ||
	    filter->numFilterConditions > 4)
		return error ? error : ERROR_INVALID_PARAMETER;
	fake_wfp.filters[i] = *filter;
	memcpy(fake_wfp.conditions[i], filter->filterCondition,
	       filter->numFilterConditions * sizeof(FWPM_FILTER_CONDITION0));
	const FWP_BYTE_BLOB *blob = filter->filterCondition[0].conditionValue.sd;
	if (filter->filterCondition[0].conditionValue.type != FWP_SECURITY_DESCRIPTOR_TYPE ||
	    blob->size > sizeof(fake_wfp.descriptors[0]))
		return ERROR_INVALID_PARAMETER;
	memcpy(fake_wfp.descriptors[i], blob->data, blob->size);
	fake_wfp.blobs[i] = (FWP_BYTE_BLOB){ blob->size, fake_wfp.descriptors[i] };
	fake_wfp.conditions[i][0].conditionValue.sd = &fake_wfp.blobs[i];
	fake_wfp.filters[i].filterCondition = fake_wfp.conditions[i];
	fake_wfp.count++;
	return 0;
}

static void tell_wrong(FWPM_FILTER0 *filter, FWPM_FILTER_CONDITION0 *conditions, FWP_BYTE_BLOB *blob, BYTE *descriptor)
{
	memcpy(conditions, filter->filterCondition, filter->numFilterConditions * sizeof(*conditions));
	filter->filterCondition = conditions;
	switch (fake_wfp.lie) {
	case LIE_ACTION:
		filter->action.type = filter->action.type == FWP_ACTION_BLOCK ? FWP_ACTION_PERMIT : FWP_ACTION_BLOCK;
		break;
	case LIE_LAYER:
		filter->layerKey.Data1++;
		break;
	case LIE_WEIGHT:
		filter->weight.uint8++;
		break;
	case LIE_COUNT:
		filter->numFilterConditions--;
		break;
	case LIE_VALUE:
		conditions[filter->numFilterConditions - 1].conditionValue.type = FWP_EMPTY;
		break;
	case LIE_DESCRIPTOR:
		*blob = *conditions[0].conditionValue.sd;
		memcpy(descriptor, blob->data, blob->size);
		descriptor[blob->size - 1] ^= 1;
		blob->data = descriptor;
		conditions[0].conditionValue.sd = blob;
		break;
	case LIE_DISABLED:
		filter->flags |= 0x20;
		break;
	default:
		break;
	}
}

EXPORT DWORD WINAPI FwpmFilterGetByKey0(HANDLE engine, const GUID *key, FWPM_FILTER0 **filter)
{
	static FWPM_FILTER0 copy;
	static FWPM_FILTER_CONDITION0 conditions[4];
	static FWP_BYTE_BLOB blob;
	static BYTE descriptor[512];
	DWORD error = called("get_filter", engine);
	for (unsigned i = 0; !error && fake_wfp.committed && i < fake_wfp.count; i++) {
		if (!IsEqualGUID(key, &fake_wfp.filters[i].filterKey))
			continue;
		if (fake_wfp.lie == LIE_GONE && i == fake_wfp.lying_filter)
			break;
		copy = fake_wfp.filters[i];
		copy.flags |= 0x40;     /* as the system says of what it has put into an index */
		if (fake_wfp.lie && i == fake_wfp.lying_filter)
			tell_wrong(&copy, conditions, &blob, descriptor);
		*filter = &copy;
		fake_wfp.handed_out++;
		return 0;
	}
	return error ? error : ERROR_NOT_FOUND;
}

EXPORT void WINAPI FwpmFreeMemory0(void **memory)
{
	called("free", ENGINE);
	fake_wfp.handed_out--;
	*memory = NULL;
}
