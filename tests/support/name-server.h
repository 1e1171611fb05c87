/* A small name server on loopback, UDP and TCP, for tests: it answers as its rows say, well or badly. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum name_server_fault {
	ANSWERS,
	SILENT,                 /* no answer at all */
	SILENT_ON_AAAA,         /* only for one family */
	SERVFAIL_ON_AAAA,
	SERVFAIL,
	REFUSES,
	TRUNCATES,              /* over UDP: nothing but the flag, so that the asker comes again over TCP */
	GARBLES,                /* a record that says it is longer than the message */
	CIRCLES,                /* a compressed name that points at itself */
	LIES_FIRST,             /* an answer with another id, then the right one */
};

struct name_row {
	const char *name;
	/* Separated by spaces: an address; "name=address" belongs to that name; ">name" is an alias and what follows
	 * belongs to it. After "|" stands what is answered the second time and later. "#N" is N addresses 93.1.x.y. ""
	 * is a name without any; a name without a row does not exist. */
	const char *answer;
	enum name_server_fault fault;
};

struct name_server;
struct name_server *name_server_start(const struct name_row *rows, size_t count);
void name_server_stop(struct name_server *server);
/* "127.0.0.1:PORT" */
const char *name_server_text(const struct name_server *server);
/* How many questions came for this name. */
unsigned name_server_asked(struct name_server *server, const char *name);
