/* A service's response on its way into the sandbox: read as HTTP, the key in it masked, written anew. Data in, data
 * out; every byte comes from the service, which may say the key back in a header or in its content. What is masked is
 * the content as a client reads it, so that chunks of any size do not hide the key; fields are read one by one. As many
 * stars as the key has bytes take its place, so that announced lengths stay true. Trailers and interim responses are
 * not passed on. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "net/http.h"

#define RESPONSE_PIECE 16384    /* content that is passed on at a time */

typedef void response_emit(void *context, const char *bytes, size_t length);

struct response;
/* All borrowed, for as long as the response is there; of the request its method and version count. NULL when memory is
 * short. */
struct response *response_new(const struct http_request *request, const char *key, size_t key_length, size_t head_max,
                              response_emit *emit, void *context);
void response_free(struct response *response);

/* The next bytes; those behind the end are discarded. -1 and why where they are no response: nothing of them was passed
 * on, and both connections end. */
int response_add(struct response *response, const char *bytes, size_t length, const char **ret_why) must_check;
/* The service has closed the connection. -1 and why where the response was not whole. */
int response_end(struct response *response, const char **ret_why) must_check;
bool response_is_done(const struct response *response);
/* 0 before its head was read. */
unsigned response_status(const struct response *response);
