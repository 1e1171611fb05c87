/* See gateway.h. */
#include "policy/gateway.h"

#include <string.h>

const char *gateway_parse_upstream(const char *url, struct gateway_upstream *ret_upstream)
{
	static const char scheme[] = "https://";
	struct gateway_upstream upstream = { .path = "" };
	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
		return "it must begin with https://";
	const char *at = url + sizeof(scheme) - 1, *path = at + strcspn(at, "/");
	size_t host = (size_t)(path - at), length = strlen(path);
	const char *bracket = memrchr(at, ']', host), *name = bracket ? bracket : at;
	bool has_port = memchr(name, ':', (size_t)(path - name));
	const char *why = (has_port ? host_parse_port : host_parse)(at, host, &upstream.host);
	if (why)
		return why;
	if (!has_port)
		upstream.host.port = 443;
	while (length && path[length - 1] == '/')
		length--;
	if (length >= sizeof(upstream.path))
		return "its path is too long";
	/* What would have to be read twice to be understood is not compared with what is asked for. */
	if (strcspn(path, "?#%\\ ") < strlen(path) || strstr(path, "//") || strstr(path, "/."))
		return "its path must be plain, without ?, #, % and dots at the beginning of a name";
	memcpy(upstream.path, path, length);
	*ret_upstream = upstream;
	return NULL;
}

bool gateway_is_header(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
	size_t length = strlen(name);
	return length && length <= GATEWAY_HEADER_MAX && strspn(name, letters) == length;
}
