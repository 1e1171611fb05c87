/* Of winsock only these two, which need no start of it. */
#pragma once
#define AF_INET 2
#define AF_INET6 23
__declspec(dllimport) int __attribute__((stdcall)) inet_pton(int family, const char *text, void *ret_address);
__declspec(dllimport) const char *__attribute__((stdcall))
inet_ntop(int family, const void *address, char *ret_text, size_t size);
