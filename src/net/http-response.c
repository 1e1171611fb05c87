/* Responses: see http.h. */
#include <stdio.h>
#include <string.h>

#include "net/http-head.h"

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* "HTTP/1.1 200 OK"; some leave out the reason, and some the space before it, too. */
static bool read_status_line(struct http_span line, struct http_response *response)
{
	const char *at = line.at;
	if (line.length < 12 || memcmp(at, "HTTP/1.", 7) || (at[7] != '0' && at[7] != '1') || at[8] != ' ' ||
	    at[9] < '1' || at[9] > '5' || !is_digit(at[10]) || !is_digit(at[11]) || (line.length > 12 && at[12] != ' '))
		return false;
	size_t reason = line.length > 12 ? 13 : 12;
	response->minor = (unsigned)(at[7] - '0');
	response->status = (unsigned)((at[9] - '0') * 100 + (at[10] - '0') * 10 + at[11] - '0');
	response->is_interim = response->status < 200;
	response->reason = (struct http_span){ at + reason, line.length - reason };
	return true;
}

/* Where the body ends (RFC 9112, 6.3). */
static const char *check_body(struct http_response *response, const struct http_head *head,
                              const struct http_request *request)
{
	bool never = response->is_interim || response->status == 204;
	bool has_none = never || response->status == 304 || request->method == HTTP_HEAD;
	if (response->status == 101)
		return "the server changes to another protocol, which was not asked for";
	if (never && (head->is_chunked || head->length))
		return "the server announces a body where there can be none";
	if (head->is_chunked && !response->minor)
		return "HTTP/1.0 has no Transfer-Encoding";
	if (head->is_chunked && !request->minor && !has_none)
		return "the server answers HTTP/1.0 with Transfer-Encoding";
	response->has_length = head->has_length && !never;
	response->length = head->length;
	response->body = has_none ? HTTP_BODY_NONE : head->is_chunked ? HTTP_BODY_CHUNKED :
	                 head->has_length ? HTTP_BODY_LENGTH : HTTP_BODY_UNTIL_CLOSE;
	response->keep_alive = response->minor && !head->closes && response->body != HTTP_BODY_UNTIL_CLOSE;
	return NULL;
}

long http_response_parse(const char *bytes, size_t length, const struct http_request *request,
                         struct http_response *ret_response, const char **ret_why)
{
	struct http_response response = { 0 };
	struct http_head head;
	struct http_span line;
	size_t at = 0;
	int rc = http_line_read(bytes, length, &at, &line, ret_why);
	if (rc <= 0)
		return rc ? -502 : 0;
	*ret_why = "the server's first line is not a version and a status";
	if (!read_status_line(line, &response))
		return -502;
	long end = http_head_read(bytes, length, at, &head, ret_why);
	if (end <= 0)
		return end ? -502 : 0;
	*ret_why = check_body(&response, &head, request);
	if (*ret_why)
		return -502;
	response.fields = head.fields;
	*ret_response = response;
	return end;
}

size_t http_response_write(const struct http_response *response, bool keep_alive, char *buffer)
{
	size_t used = (size_t)sprintf(buffer, "HTTP/1.1 %u ", response->status);
	used += http_put(buffer + used, response->reason.at, response->reason.length);
	used += http_put(buffer + used, "\r\n", 2);
	used += http_fields_write(&response->fields, buffer + used);
	/* Interim ones say nothing about the connection. */
	return used + http_framing_write(response->has_length, response->length, response->body == HTTP_BODY_CHUNKED,
	                                 keep_alive || response->is_interim, buffer + used);
}

/* ---- the proxy's own -------------------------------------------------------------------------------------------- */

static const struct {
	unsigned status;
	const char *reason;
} reasons[] = {
	{ 400, "Bad Request" }, { 403, "Forbidden" }, { 405, "Method Not Allowed" },
	{ 407, "Proxy Authentication Required" }, { 408, "Request Timeout" },
	{ 414, "URI Too Long" }, { 417, "Expectation Failed" }, { 431, "Request Header Fields Too Large" },
	{ 501, "Not Implemented" }, { 502, "Bad Gateway" }, { 503, "Service Unavailable" }, { 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

size_t http_refusal_write(unsigned status, const char *why, bool is_head, char buffer[HTTP_REFUSAL_SIZE])
{
	char text[512];
	static const char challenge[] = "Proxy-Authenticate: Basic realm=\"cordon\"\r\n";
	const char *reason = "Refused";
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].status == status)
			reason = reasons[i].reason;
	int length = snprintf(text, sizeof(text) - 1, "cordon: %s", why);
	if (length > (int)sizeof(text) - 2)
		length = (int)sizeof(text) - 2;
	for (int i = 0; i < length; i++)
		if (!http_is_text_byte(text[i]))
			text[i] = ' ';
	text[length++] = '\n';
	int used = snprintf(buffer, HTTP_REFUSAL_SIZE,
	                    "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
	                    "%sConnection: close\r\n\r\n%.*s",
	                    status, reason, length, status == 407 ? challenge : "", is_head ? 0 : length, text);
	return (size_t)used;
}
