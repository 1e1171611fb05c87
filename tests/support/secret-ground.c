/* See secret-ground.h. The encoders are written apart from what is tested. */
#include "secret-ground.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "secrets/kinds.h"

static struct encoded url(const char *bytes, size_t length, int all)
{
	struct encoded out = { malloc(3 * length + 1), 0 };
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		if (!all && (isalnum(byte) || (byte && strchr("-_.~", byte))))
			out.bytes[out.length++] = (char)byte;
		else
			out.length += (size_t)sprintf(out.bytes + out.length, "%%%02X", byte);
	}
	out.bytes[out.length] = '\0';
	return out;
}

static struct encoded base64(const char *bytes, size_t length, const char *last, int padded)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	struct encoded out = { malloc(length / 3 * 4 + 8), 0 };
	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i < 3 ? length - i : 3;
		unsigned group = 0;
		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (k < left ? (unsigned char)bytes[i + k] : 0);
		for (size_t k = 0; k < 4; k++) {
			unsigned value = group >> (18 - 6 * k) & 63;
			if (k <= left)
				out.bytes[out.length++] = value < 62 ? letters[value] : last[value - 62];
			else if (padded)
				out.bytes[out.length++] = '=';
		}
	}
	out.bytes[out.length] = '\0';
	return out;
}

static struct encoded hex(const char *bytes, size_t length, const char *format)
{
	struct encoded out = { malloc(2 * length + 1), 0 };
	out.bytes[0] = '\0';
	for (size_t i = 0; i < length; i++) {
		char pair[3];
		snprintf(pair, sizeof(pair), *format == 'x' ? "%02x" : "%02X", (unsigned char)bytes[i]);
		memcpy(out.bytes + out.length, pair, 3);
		out.length += 2;
	}
	return out;
}

static struct encoded wrap(struct encoded line, size_t width, const char *end)
{
	size_t size = line.length + (line.length / width + 1) * strlen(end) + 1;
	struct encoded out = { malloc(size), 0 };
	for (size_t i = 0; i < line.length; i++) {
		if (i && i % width == 0) {
			memcpy(out.bytes + out.length, end, strlen(end));
			out.length += strlen(end);
		}
		out.bytes[out.length++] = line.bytes[i];
	}
	out.bytes[out.length] = '\0';
	free(line.bytes);
	return out;
}

struct encoded encode(enum encoding encoding, const char *bytes, size_t length)
{
	struct encoded raw;
	switch (encoding) {
	case ENCODE_URL_ALL:
		return url(bytes, length, 1);
	case ENCODE_URL:
		return url(bytes, length, 0);
	case ENCODE_BASE64:
		return base64(bytes, length, "+/", 1);
	case ENCODE_BASE64_URL:
		return base64(bytes, length, "-_", 0);
	case ENCODE_BASE64_WRAPPED:
		return wrap(base64(bytes, length, "+/", 1), 76, "\n");
	case ENCODE_BASE64_MIME:
		return wrap(base64(bytes, length, "+/", 1), 64, "\r\n");
	case ENCODE_HEX:
		return hex(bytes, length, "x");
	case ENCODE_HEX_UPPER:
		return hex(bytes, length, "X");
	case ENCODE_HEX_WRAPPED:
		return wrap(hex(bytes, length, "x"), 60, "\n");
	default:
		raw.bytes = malloc(length + 1);
		raw.length = length;
		memcpy(raw.bytes, bytes, length);
		raw.bytes[length] = '\0';
		return raw;
	}
}

const char *encoding_layer(enum encoding encoding)
{
	static const char *const layers[ENCODE_MAX] = { "raw",    "url",    "url", "base64", "base64",
		                                        "base64", "base64", "hex", "hex",    "hex" };
	return layers[encoding];
}

char *secret_example(size_t row)
{
	char *text;
	if (asprintf(&text, "%s%s", secret_rows[row].prefix, secret_rows[row].example) < 0)
		abort();
	return text;
}
