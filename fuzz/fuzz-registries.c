/* Configuration of package managers: any text, read as each tool's; the first byte chooses the tool and the kind of
 * file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/registries.h"
#include "policy/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	if (!size)
		return 0;
	struct registry_scan scan = { .arena = &arena, .row = &registry_rows[(*data >> 1) % registry_row_count] };
	char *text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	for (int i = 0; i < 2; i++) {
		registry_scan_text(&scan, text, size - 1, *data & 1);
		registry_scan_next(&scan);
	}
	for (size_t i = 0; i < scan.hosts.count; i++) {
		struct host host;
		if (host_parse_port(scan.hosts.items[i], strlen(scan.hosts.items[i]), &host))
			abort();
	}
	free(text);
	arena_free(&arena);
	return 0;
}
