/* Requests: see http.h. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "net/http-head.h"
#include "net/url.h"

_Static_assert(HTTP_TARGET_MAX <= URL_LENGTH_MAX, "what is short enough is read");

/* ---- the first line --------------------------------------------------------------------------------------------- */

static bool is_method(struct http_span text, const char *name)
{
	return text.length == strlen(name) && !memcmp(text.at, name, text.length);
}

static int read_method(struct http_span text, enum http_method *ret_method, const char **ret_why)
{
	*ret_why = "the method is no word";
	if (!http_is_token(text))
		return -400;
	*ret_method = is_method(text, "CONNECT") ? HTTP_CONNECT : is_method(text, "HEAD") ? HTTP_HEAD : HTTP_OTHER;
	/* What some take for CONNECT or HEAD has another body to them; TRACE sends back what was meant for the
	 * proxy. */
	*ret_why = "this method is not served";
	if (*ret_method == HTTP_OTHER && (http_is_word(text, "connect") || http_is_word(text, "head") ||
	                                  http_is_word(text, "trace") || http_is_word(text, "track")))
		return -405;
	return 0;
}

static int read_version(struct http_span text, unsigned *ret_minor, const char **ret_why)
{
	const char *at = text.at;
	*ret_why = "the line does not end in a version, as in HTTP/1.1";
	if (text.length != 8 || memcmp(at, "HTTP/", 5) || at[5] < '0' || at[5] > '9' || at[6] != '.' || at[7] < '0' ||
	    at[7] > '9')
		return -400;
	*ret_why = "only HTTP/1.0 and HTTP/1.1 are spoken";
	if (at[5] != '1' || at[7] > '1')
		return -505;
	*ret_minor = (unsigned)(at[7] - '0');
	return 0;
}

/* CONNECT names host and port, all others a whole URL. */
static int read_target(struct http_span target, struct http_request *request, const char **ret_why)
{
	const char *why, *end = target.at + target.length;
	*ret_why = "what is asked for is longer than 8192 characters";
	if (target.length > HTTP_TARGET_MAX)
		return -414;
	request->path = (struct http_span){ end, 0 };
	if (request->method == HTTP_CONNECT) {
		why = host_parse_port(target.at, target.length, &request->host);
		*ret_why = why;
		return why ? -400 : 0;
	}
	*ret_why = "this is a proxy: a whole URL with http:// belongs behind the method; what is https goes through "
	           "CONNECT";
	if (target.length < 7 || strncasecmp(target.at, "http://", 7))
		return -400;
	why = url_parse(target.at, target.length, &request->host);
	*ret_why = why;
	if (why)
		return -400;
	const char *path = target.at + 7;
	while (path < end && *path != '/' && *path != '?')
		path++;
	request->path = (struct http_span){ path, (size_t)(end - path) };
	return 0;
}

/* Three words, one space between them. */
static int read_first_line(struct http_span line, struct http_request *request, const char **ret_why)
{
	const char *end = line.at + line.length, *first = memchr(line.at, ' ', line.length);
	const char *last = memrchr(line.at, ' ', line.length);
	*ret_why = "the first line is not a method, what is asked for, and a version";
	if (!first || first == last)
		return -400;
	request->method_text = (struct http_span){ line.at, (size_t)(first - line.at) };
	struct http_span target = { first + 1, (size_t)(last - first - 1) };
	int rc = read_version((struct http_span){ last + 1, (size_t)(end - last - 1) }, &request->minor, ret_why);
	if (rc == 0)
		rc = read_method(request->method_text, &request->method, ret_why);
	return rc < 0 ? rc : read_target(target, request, ret_why);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

/* The Host field must say the same as the target. With CONNECT many leave the port out. */
static int check_host(const struct http_request *request, const struct http_head *head, const char **ret_why)
{
	struct host host = { 0 };
	*ret_why = "a request of HTTP/1.1 has a Host";
	if (!head->has_host)
		return request->minor ? -400 : 0;
	*ret_why = "its Host is another than the one that is asked for";
	const char *text = head->host.at, *bracket = memrchr(text, ']', head->host.length);
	const char *name_end = bracket ? bracket : text;
	bool has_port = memchr(name_end, ':', (size_t)(text + head->host.length - name_end));
	if ((has_port ? host_parse_port : host_parse)(text, head->host.length, &host))
		return -400;
	if (!has_port)
		host.port = request->method == HTTP_CONNECT ? request->host.port : 80;
	return host.form == request->host.form && host.port == request->host.port &&
	       !strcmp(host.name, request->host.name) ? 0 : -400;
}

static int check_body(struct http_request *request, const struct http_head *head, const char **ret_why)
{
	*ret_why = "HTTP/1.0 has no Transfer-Encoding";
	if (head->is_chunked && !request->minor)
		return -400;
	*ret_why = "CONNECT has no body";
	if (request->method == HTTP_CONNECT && (head->is_chunked || head->length))
		return -400;
	bool has_length = head->has_length && request->method != HTTP_CONNECT;
	request->body = head->is_chunked ? HTTP_BODY_CHUNKED : has_length ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	request->length = has_length ? head->length : 0;
	return 0;
}

long http_request_parse(const char *bytes, size_t length, struct http_request *ret_request, const char **ret_why)
{
	struct http_request request = { 0 };
	struct http_head head;
	struct http_span line;
	size_t at = 0;
	int rc = http_line_read(bytes, length, &at, &line, ret_why);
	if (rc <= 0)
		return rc;
	rc = read_first_line(line, &request, ret_why);
	if (rc < 0)
		return rc;
	long end = http_head_read(bytes, length, at, &head, ret_why);
	if (end <= 0)
		return end;
	rc = check_host(&request, &head, ret_why);
	if (rc == 0)
		rc = check_body(&request, &head, ret_why);
	if (rc < 0)
		return rc;
	request.fields = head.fields;
	if (head.authorization_count == 1)
		request.authorization = head.authorization;
	/* A proxy keeps no connection of HTTP/1.0: what lies between may not have understood "keep-alive". */
	request.keep_alive = request.minor && !head.closes;
	request.expects_continue = request.minor && head.expects_continue;
	*ret_request = request;
	return end;
}

size_t http_request_write(const struct http_request *request, bool keep_alive, char *buffer)
{
	const struct http_span *method = &request->method_text, *path = &request->path;
	char host[HOST_TEXT_SIZE];
	struct host named = request->host;
	bool is_for_all = !path->length && is_method(*method, "OPTIONS");
	if (named.port == 80)
		named.port = 0;
	host_text(&named, host);
	size_t used = http_put(buffer, method->at, method->length);
	used += (size_t)sprintf(buffer + used, " %s", is_for_all ? "*" : path->length && *path->at == '/' ? "" : "/");
	used += http_put(buffer + used, path->at, path->length);
	used += (size_t)sprintf(buffer + used, " HTTP/1.%u\r\nHost: %s\r\n", request->minor, host);
	used += http_fields_write(&request->fields, buffer + used);
	return used + http_framing_write(request->body == HTTP_BODY_LENGTH, request->length,
	                                 request->body == HTTP_BODY_CHUNKED, keep_alive, buffer + used);
}
