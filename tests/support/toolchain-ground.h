/* A home with toolchains in it. In texts H is the home, T the directory it is in. */
#pragma once
#include <limits.h>
#include <stdbool.h>

#include "base/text.h"
#include "host/toolchain.h"

#define MAX_WORDS 32

struct ground {
	struct arena arena;
	char top[PATH_MAX], home[PATH_MAX];
	const char *environment[MAX_WORDS + 1];
	struct toolchains found;
	struct cordon_error err;
	const char *about;              /* for what fails */
	const struct strings *writable;
};

int ground_setup(void **state);
int ground_teardown(void **state);

/* H/… and T/… written out, at the start of each word and after = : > and , */
char *ground_fill(struct ground *ground, const char *text);

struct strings ground_words(struct ground *ground, const char *text);

/* With its directories; "a->b" is a link, a name that ends in / a directory. */
void ground_file(const char *path, const char *content);

void ground_files(struct ground *ground, const char *files);
void ground_environment(struct ground *ground, const char *text);

/* The toolchains of a home: those named, or all where `chosen` is NULL. */
void ground_find(struct ground *ground, const char *home, const char *chosen);

/* `got` is what `expected` lists. Of paths, whatever this machine itself has (/nix, /opt/conda) is left aside. */
void ground_same(struct ground *ground, const struct strings *got, const char *expected, bool paths);

void ground_found(struct ground *ground, const char *show, const char *mask, const char *set);

/* Empty once more. */
void ground_again(struct ground *ground);
