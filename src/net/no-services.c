/* In the program only, which is linked statically. c-ares can tell the name of a port, by way of NSS: a static program
 * would load shared objects for that. Nothing here asks for it, and so that no NSS is linked in, the linker takes this
 * function in place of the one in libc (--wrap in meson.build). */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

int __wrap_getservbyport_r(int port, const char *protocol, struct servent *space, char *buffer, size_t size,
                           struct servent **ret_service);

int __wrap_getservbyport_r(int port, const char *protocol, struct servent *space, char *buffer, size_t size,
                           struct servent **ret_service)
{
	(void)port, (void)protocol, (void)space, (void)buffer, (void)size;
	*ret_service = NULL;
	return ENOENT;
}
