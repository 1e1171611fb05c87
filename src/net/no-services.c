/* In the program only, which is linked statically. c-ares can tell the name of a port, and libevent resolve names, by
 * way of NSS: a static program would load shared objects for that. Nothing here asks for it, and so that no NSS is
 * linked in, the linker takes these functions in place of those in libc (--wrap in meson.build). */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

int __wrap_getservbyport_r(int port, const char *protocol, struct servent *space, char *buffer, size_t size,
                           struct servent **ret_service);
struct servent *__wrap_getservbyname(const char *name, const char *protocol);
struct protoent *__wrap_getprotobynumber(int number);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **ret_found);
void __wrap_freeaddrinfo(struct addrinfo *found);

int __wrap_getservbyport_r(int port, const char *protocol, struct servent *space, char *buffer, size_t size,
                           struct servent **ret_service)
{
	(void)port, (void)protocol, (void)space, (void)buffer, (void)size;
	*ret_service = NULL;
	return ENOENT;
}

struct servent *__wrap_getservbyname(const char *name, const char *protocol)
{
	(void)name, (void)protocol;
	return NULL;
}

struct protoent *__wrap_getprotobynumber(int number)
{
	(void)number;
	return NULL;
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **ret_found)
{
	(void)name, (void)service, (void)wanted, (void)ret_found;
	return EAI_FAIL;
}

void __wrap_freeaddrinfo(struct addrinfo *found)
{
	(void)found;
}
