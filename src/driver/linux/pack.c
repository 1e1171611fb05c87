/* Packing: see struct pack in order.h. */
#include <string.h>

#include "base/cleanup.h"
#include "driver/linux/order.h"

#define ALIGNMENT 8

void pack_begin(struct packer *packer, void *bytes, uint32_t capacity)
{
	packer->bytes = bytes;
	packer->capacity = capacity;
	packer->length = sizeof(struct pack);
	packer->fixup_count = 0;
	packer->full = capacity < sizeof(struct pack);
}

uint32_t pack_bytes(struct packer *packer, const void *data, size_t size)
{
	uint32_t at = (packer->length + ALIGNMENT - 1) & ~(uint32_t)(ALIGNMENT - 1);
	if (packer->full || at > packer->capacity || size > packer->capacity - at) {
		packer->full = true;
		return 0;
	}
	memset(packer->bytes + packer->length, 0, at - packer->length);
	if (size)
		memcpy(packer->bytes + at, data, size);
	packer->length = at + (uint32_t)size;
	return at;
}

void pack_point(struct packer *packer, uint32_t field, uint32_t to)
{
	uintptr_t offset = to;
	if (packer->fixup_count == ARRAY_SIZE(packer->fixups))
		packer->full = true;
	if (packer->full)
		return;
	memcpy(packer->bytes + field, &offset, sizeof(offset));
	packer->fixups[packer->fixup_count++] = field;
}

void pack_text(struct packer *packer, uint32_t field, const char *text)
{
	if (text)
		pack_point(packer, field, pack_bytes(packer, text, strlen(text) + 1));
}

void pack_texts(struct packer *packer, uint32_t field, const char *const *texts)
{
	size_t count = 0;
	while (texts && texts[count])
		count++;
	if (!texts)
		return;
	uint32_t array = pack_bytes(packer, texts, (count + 1) * sizeof(*texts));
	pack_point(packer, field, array);
	for (size_t i = 0; i < count && !packer->full; i++)
		pack_text(packer, array + (uint32_t)(i * sizeof(*texts)), texts[i]);
}

uint32_t pack_end(struct packer *packer)
{
	uint32_t fixups = pack_bytes(packer, packer->fixups, packer->fixup_count * sizeof(*packer->fixups));
	const struct pack head = { packer->length, fixups, packer->fixup_count, 0 };
	if (packer->full)
		return 0;
	memcpy(packer->bytes, &head, sizeof(head));
	return packer->length;
}
