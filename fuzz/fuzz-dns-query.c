/* Any bytes as a question: whatever it is, the answer is one that another parser reads, and within its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/dns-answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { COUNT = 100 };
	static uint8_t answer[DNS_TCP_MAX];
	static struct address addresses[COUNT], found[COUNT];
	struct dns_query query;
	long framed = dns_tcp_message(data, size);
	must(framed < 0 || (size_t)framed + 2 <= size);
	int verdict = dns_query_read(data, size, &query);
	if (verdict < 0)
		return 0;
	must(size >= 12 && strlen(query.name) < DNS_NAME_SIZE);
	must(query.udp_size >= DNS_UDP_MIN && query.udp_size <= DNS_UDP_MAX);
	for (int i = 0; i < COUNT; i++)
		addresses[i] = (struct address){ { 198, 18, 0, (uint8_t)i }, i % 2 ? 4 : 16 };
	for (int is_udp = 0; is_udp < 2; is_udp++) {
		size_t length = dns_answer_write(&query, (enum dns_rcode)verdict, addresses, COUNT, 30, is_udp, answer);
		must(length >= 12 && length <= (is_udp ? query.udp_size : DNS_TCP_MAX) && !memcmp(answer, data, 2));
		bool is_address = query.type == DNS_TYPE_A || query.type == DNS_TYPE_AAAA;
		if (verdict != DNS_NOERROR || !*query.name || !is_address)
			continue;
		long count = dns_reply_addresses(answer, length, query.name, query.type, found, COUNT);
		must(is_udp ? count > 0 && count <= COUNT / 2 : count == COUNT / 2);
	}
	return 0;
}
