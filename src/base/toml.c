/* TOML 1.0: documents out of keys and values; see toml.h. One pass from left to right: what is wrong first is what is
 * reported. Words are scanned in toml-scan.c and toml-word.c, the tree is kept in toml-tree.c. */
#include "base/toml.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/toml-tree.h"
#include "base/utf8.h"

const char *const toml_type_names[] = {
	[TOML_STRING] = "a string", [TOML_INTEGER] = "an integer", [TOML_FLOAT] = "a float",
	[TOML_BOOLEAN] = "a boolean", [TOML_DATETIME] = "a date or time", [TOML_ARRAY] = "an array",
	[TOML_TABLE] = "a table",
};
_Static_assert(ARRAY_SIZE(toml_type_names) == TOML_TYPE_MAX, "every type has a name");

struct parser {
	struct toml_scan scan;
	struct toml_tree tree;
	struct toml_node *table;        /* whose members the lines are, since the last header */
	const char *placed;             /* `line` and `column` are this place's; only ever moved forward */
	unsigned line, column;
};

static int add(struct parser *parser, struct toml_node *parent, const struct toml_key *key, enum toml_type type,
               enum toml_origin origin, struct toml_node **ret_node)
{
	return toml_tree_add(&parser->tree, &parser->scan, parent, key, type, origin, ret_node);
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

/* This place, by line and column. Asked from left to right, so that all the asking together is one pass. */
static struct toml_key here(struct parser *parser)
{
	for (; parser->placed < parser->scan.at; parser->placed++) {
		bool newline = *parser->placed == '\n';
		parser->line += newline;
		parser->column = newline ? 1 : parser->column + (((unsigned char)*parser->placed & 0xc0) != 0x80);
	}
	return (struct toml_key){ .where = parser->scan.at, .line = parser->line, .column = parser->column };
}

static int scan_key(struct parser *parser, struct toml_key *ret_key)
{
	toml_skip_blanks(&parser->scan);
	*ret_key = here(parser);
	if (toml_scan_key(&parser->scan, &ret_key->text, &ret_key->length) < 0)
		return -1;
	toml_skip_blanks(&parser->scan);
	return 0;
}

/* Keys of any length and content, as much of them as a message shows. */
static const char *shown(const struct toml_key *key, char buffer[64])
{
	size_t length = strnlen(key->text, key->length < 48 ? key->length : 48);
	length -= utf8_cut_tail(key->text, length);
	snprintf(buffer, 64, "%.*s%s", (int)length, key->text, length < key->length ? "..." : "");
	return buffer;
}

static int refuse_again(struct parser *parser, const struct toml_key *key, const struct toml_node *there,
                        const char *what)
{
	char name[64];
	return toml_refuse(&parser->scan, key->where, "\"%s\" %s; it is on line %u", shown(key, name), what,
	                   there->value.line);
}

/* Into the table `key` of `parent`, on the way to what a header names. */
static int enter_by_header(struct parser *parser, struct toml_node *parent, const struct toml_key *key,
                           struct toml_node **ret_table)
{
	struct toml_node *node = toml_tree_find(&parser->tree, parent, key);
	if (!node)
		return add(parser, parent, key, TOML_TABLE, BY_MENTION, ret_table);
	if (node->origin == BY_VALUE)
		return refuse_again(parser, key, node, node->value.type == TOML_TABLE ?
		                    "is an inline table, to which nothing is added" : "has a value and is not a table");
	*ret_table = node->origin == BY_ELEMENTS ? toml_tree_last(node) : node;
	return 0;
}

/* The same for a dotted key. */
static int enter_by_dots(struct parser *parser, struct toml_node *parent, const struct toml_key *key,
                         struct toml_node **ret_table)
{
	struct toml_node *node = toml_tree_find(&parser->tree, parent, key);
	if (!node)
		return add(parser, parent, key, TOML_TABLE, BY_DOTS, ret_table);
	if (node->origin == BY_VALUE)
		return refuse_again(parser, key, node, node->value.type == TOML_TABLE ?
		                    "is an inline table, to which nothing is added" : "has a value and is not a table");
	if (node->origin == BY_HEADER || node->origin == BY_ELEMENTS)
		return refuse_again(parser, key, node, "has a header of its own; put its keys there");
	node->origin = BY_DOTS;
	*ret_table = node;
	return 0;
}

typedef int (*enter_fn)(struct parser *parser, struct toml_node *parent, const struct toml_key *key,
                        struct toml_node **ret_table);

/* Through a dotted key up to its last part, which is not looked for. */
static int scan_dotted(struct parser *parser, struct toml_node *table, enter_fn enter, struct toml_node **ret_parent,
                       struct toml_key *ret_key)
{
	if (scan_key(parser, ret_key) < 0)
		return -1;
	while (toml_skip(&parser->scan, '.'))
		if (enter(parser, table, ret_key, &table) < 0 || scan_key(parser, ret_key) < 0)
			return -1;
	*ret_parent = table;
	return 0;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static int parse_value(struct parser *parser, struct toml_node *node);

static int skip_comment(struct toml_scan *scan)
{
	char found[32];
	if (!toml_skip(scan, '#'))
		return 0;
	for (; scan->at < scan->end && *scan->at != '\n'; scan->at++) {
		unsigned char byte = (unsigned char)*scan->at;
		if (byte == '\r' && scan->end - scan->at > 1 && scan->at[1] == '\n')
			break;
		if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
			return toml_refuse(scan, scan->at, "%s is not allowed in a comment", toml_found(scan, found));
	}
	return 0;
}

static int parse_pair(struct parser *parser, struct toml_node *table)
{
	struct toml_node *parent, *node;
	struct toml_key key;
	char name[64], found[32];
	if (scan_dotted(parser, table, enter_by_dots, &parent, &key) < 0)
		return -1;
	node = toml_tree_find(&parser->tree, parent, &key);
	if (node)
		return refuse_again(parser, &key, node, "is there already");
	if (!toml_skip(&parser->scan, '='))
		return toml_refuse(&parser->scan, parser->scan.at, "after the key \"%s\" an '=' was expected, not %s",
		                   shown(&key, name), toml_found(&parser->scan, found));
	toml_skip_blanks(&parser->scan);
	return add(parser, parent, &key, TOML_STRING, BY_VALUE, &node) < 0 ? -1 : parse_value(parser, node);
}

/* Blanks, newlines and comments between elements. */
static int skip_between(struct toml_scan *scan)
{
	const char *before;
	do {
		before = scan->at;
		toml_skip_blanks(scan);
		if (skip_comment(scan) < 0)
			return -1;
		toml_skip_newline(scan);
	} while (scan->at != before);
	return 0;
}

static int parse_array(struct parser *parser, struct toml_node *array)
{
	struct toml_scan *scan = &parser->scan;
	const char *open = scan->at++;
	char found[32];
	array->value.type = TOML_ARRAY;
	for (;;) {
		struct toml_node *element;
		if (skip_between(scan) < 0)
			return -1;
		if (toml_skip(scan, ']'))
			return 0;
		if (scan->at == scan->end)
			return toml_refuse(scan, open, "this array is not closed");
		struct toml_key place = here(parser);
		if (add(parser, array, &place, TOML_STRING, BY_VALUE, &element) < 0 ||
		    parse_value(parser, element) < 0 || skip_between(scan) < 0)
			return -1;
		if (toml_skip(scan, ',') || (scan->at < scan->end && *scan->at == ']'))
			continue;
		if (scan->at == scan->end)
			return toml_refuse(scan, open, "this array is not closed");
		return toml_refuse(scan, scan->at, "in an array ',' or ']' was expected, not %s",
		                   toml_found(scan, found));
	}
}

static int parse_inline_table(struct parser *parser, struct toml_node *table)
{
	struct toml_scan *scan = &parser->scan;
	char found[32];
	scan->at++;
	table->value.type = TOML_TABLE;
	toml_skip_blanks(scan);
	if (toml_skip(scan, '}'))
		return 0;
	do {
		if (parse_pair(parser, table) < 0)
			return -1;
		toml_skip_blanks(scan);
	} while (toml_skip(scan, ','));
	if (toml_skip(scan, '}'))
		return 0;
	return toml_refuse(scan, scan->at, "expected ',' or '}' in an inline table, which is on one line, not %s",
	                   toml_found(scan, found));
}

static int parse_value(struct parser *parser, struct toml_node *node)
{
	char first = parser->scan.at < parser->scan.end ? *parser->scan.at : '\0';
	if (first == '[')
		return parse_array(parser, node);
	if (first == '{')
		return parse_inline_table(parser, node);
	return toml_scan_scalar(&parser->scan, &node->value);
}

/* ---- The document ------------------------------------------------------------------------------------------------ */

/* [parent.key] */
static int open_table(struct parser *parser, struct toml_node *parent, const struct toml_key *key)
{
	struct toml_node *node = toml_tree_find(&parser->tree, parent, key);
	if (!node)
		return add(parser, parent, key, TOML_TABLE, BY_HEADER, &parser->table);
	if (node->origin != BY_MENTION)
		return refuse_again(parser, key, node, "is there already");
	node->origin = BY_HEADER;
	node->value.line = key->line;
	node->value.column = key->column;
	parser->table = node;
	return 0;
}

/* [[parent.key]] */
static int open_element(struct parser *parser, struct toml_node *parent, const struct toml_key *key,
                        const struct toml_key *bracket)
{
	struct toml_node *array = toml_tree_find(&parser->tree, parent, key);
	if (!array && add(parser, parent, key, TOML_ARRAY, BY_ELEMENTS, &array) < 0)
		return -1;
	if (array->origin != BY_ELEMENTS)
		return refuse_again(parser, key, array,
		                    array->value.type == TOML_ARRAY ? "is an array with all its elements" :
		                                                      "is there already and not an array of tables");
	return add(parser, array, bracket, TOML_TABLE, BY_HEADER, &parser->table);
}

static int parse_header(struct parser *parser)
{
	struct toml_scan *scan = &parser->scan;
	struct toml_node *parent;
	struct toml_key key, bracket = here(parser);
	char found[32];
	scan->at++;
	bool element = toml_skip(scan, '[');
	if (scan_dotted(parser, parser->tree.root, enter_by_header, &parent, &key) < 0)
		return -1;
	if ((element ? open_element(parser, parent, &key, &bracket) : open_table(parser, parent, &key)) < 0)
		return -1;
	if (!toml_skip(scan, ']') || (element && !toml_skip(scan, ']')))
		return toml_refuse(scan, scan->at, "at the end of a header '%s' was expected, not %s",
		                   element ? "]]" : "]", toml_found(scan, found));
	return 0;
}

/* One line, or several where a value has more. */
static int parse_line(struct parser *parser)
{
	struct toml_scan *scan = &parser->scan;
	char found[32];
	toml_skip_blanks(scan);
	char first = scan->at < scan->end ? *scan->at : '\n';
	if (first == '[' && parse_header(parser) < 0)
		return -1;
	if (first != '[' && first != '#' && first != '\n' && first != '\r' && parse_pair(parser, parser->table) < 0)
		return -1;
	toml_skip_blanks(scan);
	if (skip_comment(scan) < 0)
		return -1;
	if (scan->at == scan->end || toml_skip_newline(scan))
		return 0;
	return toml_refuse(scan, scan->at, "the end of the line was expected, not %s", toml_found(scan, found));
}

static size_t valid_length(const char *text, size_t length)
{
	size_t at = 0, size;
	while (at < length && (size = utf8_sequence(text + at, length - at)))
		at += size;
	return at;
}

int toml_parse(struct arena *arena, const char *file, const char *text, size_t length,
               const struct toml_value **ret_root, struct cordon_error *err)
{
	size_t valid = valid_length(text, length);
	struct parser parser = {
		.scan = { .file = file,
		          .text = text,
		          .at = text,
		          .end = text + valid,
		          .cut = valid < length,
		          .err = err },
		.placed = text,
		.line = 1,
		.column = 1,
	};
	struct toml_scan *scan = &parser.scan;
	if (length > TOML_SIZE_MAX)
		return toml_refuse(scan, text, "the file is larger than %zu bytes", TOML_SIZE_MAX);
	if (valid >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		return toml_refuse(scan, text, "the file begins with a byte order mark, which TOML has not");
	scan->pool = arena_alloc(arena, length + 1);
	if (!scan->pool || toml_tree_init(&parser.tree, arena) < 0)
		return fail_oom(err);
	parser.table = parser.tree.root;
	while (scan->at < scan->end)
		if (parse_line(&parser) < 0)
			return -1;
	if (scan->cut)
		return toml_refuse(scan, scan->end, "%s", "");
	*ret_root = &parser.tree.root->value;
	return 0;
}

const struct toml_value *toml_member(const struct toml_value *table, const char *key)
{
	size_t length = strlen(key);
	for (size_t i = 0; i < table->count; i++)
		if (table->items[i]->key_length == length && !memcmp(table->items[i]->key, key, length))
			return table->items[i];
	return NULL;
}
