/* TOML's tables and arrays while they grow. Which table may be opened or added to, and by what, is decided by how it
 * came to be. Members are found by one index for the whole document, hashed with a secret of its own, so that no file
 * can make looking slow. For toml.c alone. */
#pragma once
#include <sodium/crypto_shorthash.h>

#include "base/toml-scan.h"

enum toml_origin {
	BY_VALUE,       /* key = …: a scalar, an array or an inline table; whole, nothing is ever added */
	BY_MENTION,     /* [this.other]: may still get a header of its own */
	BY_HEADER,      /* [this], or an element of [[these]] */
	/* this.other = …: added to by further dotted keys, never opened by a header. Those keys are all under one
	 * header: for another's to lead here as well, the one nearer would have had to be entered by the one further
	 * up. */
	BY_DOTS,
	BY_ELEMENTS,    /* the array of [[these]] */
};

struct toml_node {
	struct toml_value value;        /* first: a value of the tree is its node */
	const struct toml_node *parent;
	uint64_t hash;
	unsigned depth;
	enum toml_origin origin;
};

/* Where something begins, and its name if it has one. */
struct toml_key {
	const char *text;               /* NULL for the element of an array */
	size_t length;
	const char *where;
	unsigned line, column;
};

struct toml_tree {
	struct arena *arena;
	struct toml_node *root;
	size_t values;
	struct toml_node **index;       /* open addressing; at most half full */
	size_t index_size;
	unsigned char secret[crypto_shorthash_KEYBYTES];
};

/* 0, or -1 when memory is short. */
int toml_tree_init(struct toml_tree *tree, struct arena *arena) must_check;
struct toml_node *toml_tree_find(const struct toml_tree *tree, const struct toml_node *parent,
                                 const struct toml_key *key);
/* A new member or element, without a value yet. What is too many or too deep is refused at the key's place. */
int toml_tree_add(struct toml_tree *tree, struct toml_scan *scan, struct toml_node *parent, const struct toml_key *key,
                  enum toml_type type, enum toml_origin origin, struct toml_node **ret_node) must_check;
/* The element that [[these]] began last. */
struct toml_node *toml_tree_last(const struct toml_node *array);
