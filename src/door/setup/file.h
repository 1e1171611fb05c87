/* The files that setup reads and writes. */
#pragma once
#include <stdio.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cordon-internal.h"

/* A file that lies `beneath` a project is reached from there without following a link, since a project is not of the
 * user's own making; the way to any other (beneath: NULL) may be one of links. */

/* *ret_text is NULL where there is no file. Refused are links, what is not the caller's own or can be changed by
 * others, and what is no text. */
int setup_read(struct arena *arena, const char *path, const char *beneath, const char **ret_text,
               struct cordon_error *err) must_check;
/* Written beside it and renamed into place; it keeps its mode. Directories on the way are made. NULL: the file is
 * removed. */
int setup_write(struct arena *arena, const char *path, const char *beneath, const char *text,
                struct cordon_error *err) must_check;
/* What changed, in the manner of diff -u. */
void setup_diff(FILE *out, const char *path, const char *before, const char *after);
/* The directories on the way that are not there, the innermost first. */
int setup_missing(struct arena *arena, const char *path, const char *beneath, struct strings *ret_directories,
                  struct cordon_error *err) must_check;
/* If it is empty, and there. */
void setup_remove_directory(const char *path, const char *beneath);
