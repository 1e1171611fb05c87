/* What counts as a private key in a file: see contents.h. */
#include <string.h>
#include <strings.h>

#include "paths/index/contents.h"

/* Of a block that begins with -----BEGIN: is it known to be public? */
static bool is_public_block(const char *label, size_t left)
{
	static const char *const labels[] = {
		"CERTIFICATE-----",   "TRUSTED CERTIFICATE-----", "X509 CERTIFICATE-----",
		"X509 CRL-----",      "CERTIFICATE REQUEST-----", "NEW CERTIFICATE REQUEST-----",
		"PUBLIC KEY-----",    "RSA PUBLIC KEY-----",      "DSA PUBLIC KEY-----",
		"EC PARAMETERS-----", "DH PARAMETERS-----",       "X9.42 DH PARAMETERS-----",
		"PKCS7-----",         "SSH2 PUBLIC KEY ----",
	};
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		if (left >= strlen(labels[i]) && !memcmp(label, labels[i], strlen(labels[i])))
			return true;
	return false;
}

/* What is not known to be public counts as a key: formats that are not listed, keys without a PEM frame, plain DER. */
bool content_has_private_key(const char *content, size_t length)
{
	static const char *const words[] = { "PRIVATE KEY",   "PRIVATE-KEY", "SECRET KEY", "SECRET-KEY",
		                             "PRIVATE-LINES", "PRIVATEKEY",  "PRIVATE_KEY" };
	bool has_block = false;
	if (!length)
		return false;
	if (memchr(content, 0, length))
		return true;
	for (const char *at = content, *end = content + length; at < end; at++) {
		if (*at == '-' && (size_t)(end - at) >= 11 && !memcmp(at, "-----BEGIN ", 11)) {
			if (!is_public_block(at + 11, (size_t)(end - at) - 11))
				return true;
			has_block = true;
		}
		for (size_t i = 0; (*at == 'P' || *at == 'p' || *at == 'S' || *at == 's') && i < ARRAY_SIZE(words); i++)
			if ((size_t)(end - at) >= strlen(words[i]) && !strncasecmp(at, words[i], strlen(words[i])))
				return true;
	}
	return !has_block;
}
