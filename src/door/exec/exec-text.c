/* Paths as file: URIs, and bytes as base64. What comes in is not trusted. */
#include <sodium/utils.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "door/exec/exec.h"

#define BASE64 sodium_base64_VARIANT_ORIGINAL

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *exec_path_of_uri(const char *uri)
{
	static const char local[] = "file://localhost/", plain[] = "file:///";
	if (!strncmp(uri, local, sizeof(local) - 1))
		uri += sizeof(local) - 2;
	else if (!strncmp(uri, plain, sizeof(plain) - 1))
		uri += sizeof(plain) - 2;
	else
		return NULL;
	char *path = malloc(strlen(uri) + 1), *end = path;
	while (path && *uri) {
		int high, low = -1;
		if (*uri == '?' || *uri == '#')
			break;
		if (*uri != '%') {
			*end++ = *uri++;
			continue;
		}
		high = hex(uri[1]);
		low = high < 0 ? -1 : hex(uri[2]);
		if (low < 0 || high * 16 + low == 0)
			break;
		*end++ = (char)(high * 16 + low);
		uri += 3;
	}
	if (!path || *uri) {
		free(path);
		return NULL;
	}
	*end = '\0';
	return path;
}

char *exec_uri_of_path(const char *path)
{
	static const char digits[] = "0123456789ABCDEF", plain[] = "-._~/!$&'()*+,;=:@";
	char *uri = malloc(strlen(path) * 3 + sizeof("file://")), *end = uri;
	if (!uri)
		return NULL;
	memcpy(end, "file://", 7);
	for (end += 7; *path; path++) {
		unsigned char c = (unsigned char)*path;
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(plain, c)) {
			*end++ = (char)c;
		} else {
			*end++ = '%';
			*end++ = digits[c >> 4];
			*end++ = digits[c & 15];
		}
	}
	*end = '\0';
	return uri;
}

void exec_key_base64(struct json *json, const char *key, const void *data, size_t length)
{
	size_t size = sodium_base64_encoded_len(length, BASE64);
	auto_free char *text = malloc(size);
	if (text)
		sodium_bin2base64(text, size, data, length, BASE64);
	else
		json->failed = true;
	json_key_string(json, key, text);
}

char *exec_from_base64(const char *text, size_t length, size_t *ret_length)
{
	char *data = malloc(length + 1);
	size_t used = 0;
	if (data &&
	    (!text || sodium_base642bin((unsigned char *)data, length, text, length, NULL, &used, NULL, BASE64) < 0)) {
		free(data);
		return NULL;
	}
	*ret_length = used;
	return data;
}
