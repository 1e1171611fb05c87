/* Where cordon-proxy begins on Windows: as itself; or as `probe DENIED ALLOWED`, with the token of a command, to see
 * which ports of 127.0.0.1 that can reach (driver/windows/probe.c). Status 0: not the one that is denied, and the other
 * unless that is 0; 1: the one that is denied, 2: not the one that is allowed, 3: it cannot be tried. */
#include "base/windows/sockets.h"

#include <stdlib.h>
#include <wchar.h>

#define PROBE_S 2

int main(int argc, char **argv);
int wmain(int argc, wchar_t **words);

static bool connects(u_short port)
{
	const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port),
		                             .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	struct timeval wait = { .tv_sec = PROBE_S };
	SOCKET client = socket(AF_INET, SOCK_STREAM, 0);
	fd_set set = { 1, { client } };
	bool connected = client != INVALID_SOCKET && ioctlsocket(client, (long)FIONBIO, &(u_long){ 1 }) == 0;
	if (connected && connect(client, (const struct sockaddr *)&address, sizeof(address)) != 0)
		connected = WSAGetLastError() == WSAEWOULDBLOCK && select(0, NULL, &set, NULL, &wait) == 1;
	if (client != INVALID_SOCKET)
		closesocket(client);
	return connected;
}

static int probe(const wchar_t *denied, const wchar_t *allowed)
{
	WSADATA data;
	if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
		return 3;
	if (connects((u_short)_wtoi(denied)))
		return 1;
	return _wtoi(allowed) == 0 || connects((u_short)_wtoi(allowed)) ? 0 : 2;
}

int wmain(int argc, wchar_t **words)
{
	char version[32] = "";
	char *argv[] = { "cordon-proxy", version, NULL };
	if (argc == 4 && wcscmp(words[1], L"probe") == 0)
		return probe(words[2], words[3]);
	/* What does not fit is no version. */
	if (argc != 2 || wcstombs(version, words[1], sizeof(version) - 1) == (size_t)-1)
		version[0] = '?';
	return main(2, argv);
}
