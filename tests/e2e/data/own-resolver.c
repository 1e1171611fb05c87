/* A static program with a resolver of its own, which knows nothing of nsswitch or proxies: asks the first server of
 * /etc/resolv.conf for an IPv4 address, connects there, says a line and prints what comes back. own-resolver NAME PORT
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct in_addr name_server(void)
{
	struct in_addr address = { 0 };
	char line[256], text[64];
	FILE *file = fopen("/etc/resolv.conf", "r");
	while (file && !address.s_addr && fgets(line, sizeof(line), file))
		if (sscanf(line, "nameserver %63s", text) == 1)
			inet_pton(AF_INET, text, &address);
	if (file)
		fclose(file);
	return address;
}

static int ask(const char *name, struct in_addr *ret_address)
{
	uint8_t message[512] = { 0x12, 0x34, 1, 0, 0, 1 };
	size_t length = 12;
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(53), .sin_addr = name_server() };
	for (const char *label = name; *label && length < 300;) {
		size_t size = strcspn(label, ".");
		message[length++] = (uint8_t)size;
		memcpy(message + length, label, size);
		length += size;
		label += size + (label[size] == '.');
	}
	memcpy(message + length, "\0\0\1\0\1", 5);
	length += 5;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, (void *)&server, sizeof(server)) < 0 || send(fd, message, length, 0) < 0)
		return -1;
	ssize_t got = recv(fd, message, sizeof(message), 0);
	close(fd);
	/* The answer is the question, then a pointer to its name, ten bytes, and the address. */
	if (got < (ssize_t)length + 16 || (message[3] & 15) || message[7] < 1)
		return -1;
	memcpy(ret_address, message + length + 12, 4);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in peer = { .sin_family = AF_INET };
	char text[64] = "";
	if (argc != 3 || ask(argv[1], &peer.sin_addr) < 0) {
		fprintf(stderr, "no such name\n");
		return 1;
	}
	peer.sin_port = htons((uint16_t)atoi(argv[2]));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (void *)&peer, sizeof(peer)) < 0 || write(fd, "hello\n", 6) != 6 ||
	    read(fd, text, sizeof(text) - 1) <= 0) {
		perror(argv[1]);
		return 1;
	}
	printf("%s", text);
	return 0;
}
