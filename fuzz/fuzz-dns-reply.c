/* Any bytes as the reply of a name server: what is found is there, and within bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const uint8_t *data, size_t size, unsigned type, size_t length)
{
	enum { MAX = 8 };
	struct address found[MAX] = { 0 };
	long count = dns_reply_addresses(data, size, "a.test", type, found, MAX);
	if (count < -1 || (count > 0 && (size_t)count * (length + 12) > size))
		abort();
	for (long i = 0; i < count && i < MAX; i++)
		if (found[i].length != length || !memmem(data, size, found[i].bytes, length))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_name name;
	size_t at = 0;
	look(data, size, DNS_TYPE_A, 4);
	look(data, size, DNS_TYPE_AAAA, 16);
	if (dns_name_read(data, size, &at, &name) == 0 && (at > size || name.length > DNS_NAME_SIZE || !name.length))
		abort();
	return 0;
}
