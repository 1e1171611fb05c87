/* A parser that keeps the places of things, and the changes made by them: see jsonc.h. */
#include "door/setup/jsonc.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum type { OBJECT, ARRAY, SCALAR };

struct node {
	enum type type;
	size_t from, to;                /* of the value */
	size_t key_from;                /* of a member: where its key begins; else `from` */
	const char *key;
	struct node *first, *last, *next;
};

struct parser {
	struct arena *arena;
	const char *text;
	size_t at, length;
	unsigned depth;
};

/* ---- parsing
 * --------------------------------------------------------------------------------------------------------- */

/* False: a comment has no end. */
static bool skip_blanks(struct parser *parser)
{
	const char *text = parser->text;
	for (;;) {
		parser->at += strspn(text + parser->at, " \t\r\n");
		if (text[parser->at] != '/')
			return true;
		if (text[parser->at + 1] == '/') {
			parser->at += strcspn(text + parser->at, "\n");
		} else if (text[parser->at + 1] == '*') {
			const char *end = strstr(text + parser->at + 2, "*/");
			if (!end)
				return false;
			parser->at = (size_t)(end + 2 - text);
		} else {
			return false;
		}
	}
}

static json_t *scalar(const char *text, size_t from, size_t to)
{
	return json_loadb(text + from, to - from, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

/* To the end of the string that begins here. False: it has none. */
static bool skip_string(struct parser *parser)
{
	for (parser->at++; parser->text[parser->at] != '"'; parser->at++) {
		if (parser->text[parser->at] == '\\')
			parser->at++;
		if (!parser->text[parser->at] || parser->text[parser->at] == '\n')
			return false;
	}
	parser->at++;
	return true;
}

static struct node *parse_value(struct parser *parser);

static bool parse_key(struct parser *parser, const struct node *parent, struct node *member, size_t *ret_from)
{
	*ret_from = parser->at;
	if (parser->text[parser->at] != '"' || !skip_string(parser))
		return false;
	json_t *key = scalar(parser->text, *ret_from, parser->at);
	const char *name = json_string_value(key);
	member->key = name && strlen(name) == json_string_length(key) ? arena_strdup(parser->arena, name) : NULL;
	json_decref(key);
	for (const struct node *other = parent->first; member->key && other; other = other->next)
		if (!strcmp(other->key, member->key))
			return false;
	return member->key && skip_blanks(parser) && parser->text[parser->at++] == ':' && skip_blanks(parser);
}

static bool parse_child(struct parser *parser, struct node *parent)
{
	struct node named = { 0 };
	size_t key_from = 0;
	if (parent->type == OBJECT && !parse_key(parser, parent, &named, &key_from))
		return false;
	struct node *child = parse_value(parser);
	if (!child)
		return false;
	child->key = named.key;
	child->key_from = parent->type == OBJECT ? key_from : child->from;
	*(parent->last ? &parent->last->next : &parent->first) = child;
	parent->last = child;
	return true;
}

static bool parse_children(struct parser *parser, struct node *node, char close)
{
	parser->at++;
	for (bool comma = true;;) {
		if (!skip_blanks(parser))
			return false;
		char c = parser->text[parser->at];
		if (c == close) {
			parser->at++;
			return true;
		}
		if (!comma && c == ',') {
			comma = true;
			parser->at++;
			continue;
		}
		if (!comma || !parse_child(parser, node))
			return false;
		comma = false;
	}
}

static bool parse_scalar(struct parser *parser, size_t from)
{
	if (parser->text[from] == '"') {
		if (!skip_string(parser))
			return false;
	} else {
		parser->at += strspn(parser->text + from,
		                     "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	}
	json_t *value = scalar(parser->text, from, parser->at);
	json_decref(value);
	return value != NULL;
}

static struct node *parse_value(struct parser *parser)
{
	struct node *node = parser->depth < JSONC_DEPTH_MAX ? arena_alloc(parser->arena, sizeof(*node)) : NULL;
	if (!node)
		return NULL;
	char c = parser->text[parser->at];
	node->from = node->key_from = parser->at;
	node->type = c == '{' ? OBJECT : c == '[' ? ARRAY : SCALAR;
	parser->depth++;
	bool parsed = node->type == SCALAR ? parse_scalar(parser, node->from)
	                                   : parse_children(parser, node, c == '{' ? '}' : ']');
	parser->depth--;
	node->to = parser->at;
	return parsed ? node : NULL;
}

/* NULL: it is not one object. */
static struct node *parse(struct arena *arena, const char *text)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct parser parser = {
		.arena = arena, .text = text, .length = strlen(text), .at = !strncmp(text, mark, 3) ? 3 : 0
	};
	if (parser.length > JSONC_SIZE_MAX || !skip_blanks(&parser) || text[parser.at] != '{')
		return NULL;
	struct node *root = parse_value(&parser);
	return root && skip_blanks(&parser) && parser.at == parser.length ? root : NULL;
}

/* ---- values
 * ---------------------------------------------------------------------------------------------------------- */

static json_t *value_of(const char *text, const struct node *node)
{
	if (node->type == SCALAR)
		return scalar(text, node->from, node->to);
	json_t *value = node->type == OBJECT ? json_object() : json_array();
	for (const struct node *child = node->first; value && child; child = child->next) {
		json_t *inner = value_of(text, child);
		if ((node->type == OBJECT ? json_object_set_new(value, child->key, inner)
		                          : json_array_append_new(value, inner)) < 0) {
			json_decref(value);
			return NULL;
		}
	}
	return value;
}

static bool is_same(const char *text, const struct node *node, json_t *value)
{
	json_t *is = value_of(text, node);
	bool same = json_equal(is, value);
	json_decref(is);
	return same;
}

/* In an array the key is a number, from 0. */
static struct node *child_of(const struct node *node, const char *key)
{
	bool is_number = *key && !key[strspn(key, "0123456789")];
	struct node *child = node->type == OBJECT || (node->type == ARRAY && is_number) ? node->first : NULL;
	unsigned long index = node->type == ARRAY ? strtoul(key, NULL, 10) : 0;
	while (child && (node->type == ARRAY ? index-- > 0 : strcmp(child->key, key) != 0))
		child = child->next;
	return child;
}

json_t *jsonc_get(const char *text, const char *const *path)
{
	struct arena arena = { 0 };
	const struct node *node = text ? parse(&arena, text) : NULL;
	for (; node && *path; path++)
		node = child_of(node, *path);
	json_t *value = node ? value_of(text, node) : NULL;
	arena_free(&arena);
	return value;
}

/* ---- changes
 * --------------------------------------------------------------------------------------------------------- */

struct change {
	struct arena *arena;
	const char *text, *unit, *eol;
};

static int invalid(struct cordon_error *err)
{
	fail(err, CORDON_E_CONFIG_INVALID, 0, NULL, "this file is not valid JSON, with or without comments");
	return fail_remedy(err, "correct it first");
}

/* The blanks that the line of this place begins with. */
static const char *indent_at(const struct change *change, size_t at)
{
	size_t begin = at;
	while (begin && change->text[begin - 1] != '\n')
		begin--;
	return arena_strndup(change->arena, change->text + begin, strspn(change->text + begin, " \t"));
}

static bool on_own_line(const char *text, size_t from, size_t to)
{
	return memchr(text + from, '\n', to - from) != NULL;
}

/* How deep one level is: by the root's first member. */
static const char *find_unit(struct change *change, const struct node *root)
{
	if (!root->first || !on_own_line(change->text, root->from, root->first->key_from))
		return "  ";
	const char *indent = indent_at(change, root->first->key_from);
	return indent && *indent ? indent : "  ";
}

/* The value as text, its lines after the first beginning with `indent`. */
static const char *dump(const struct change *change, json_t *value, const char *indent, bool compact)
{
	auto_free char *plain = json_dumps(value, JSON_ENCODE_ANY | (compact ? 0 : JSON_INDENT(1)));
	const char *text = "";
	if (!plain)
		return NULL;
	for (char *line = plain, *end; line && text; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		size_t levels = line == plain ? 0 : strspn(line, " ");
		if (line != plain)
			text = arena_printf(change->arena, "%s%s%s", text, change->eol, indent);
		for (size_t i = 0; text && i < levels; i++)
			text = arena_printf(change->arena, "%s%s", text, change->unit);
		text = text ? arena_printf(change->arena, "%s%s", text, line + levels) : NULL;
	}
	return text;
}

static int splice(const struct change *change, size_t from, size_t to, const char *middle, const char **ret_text,
                  struct cordon_error *err)
{
	char *text =
		middle ? arena_printf(change->arena, "%.*s%s%s", (int)from, change->text, middle, change->text + to)
		       : NULL;
	if (!text)
		return fail_oom(err);
	*ret_text = text;
	return 0;
}

static const char *with_key(const struct change *change, const char *key, const char *value)
{
	json_t *name = key ? json_string(key) : NULL;
	auto_free char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
	json_decref(name);
	return !key ? value : quoted && value ? arena_printf(change->arena, "%s: %s", quoted, value) : NULL;
}

/* The end of what stands between the last child and the closing bracket: comments stay before what is added. */
static size_t end_of_inside(const struct change *change, const struct node *node)
{
	size_t end = node->to - 1;
	while (end > node->from + 1 && strchr(" \t\r\n", change->text[end - 1]))
		end--;
	return end;
}

static bool has_last_comma(const struct change *change, const struct node *node)
{
	struct parser parser = { .text = change->text, .at = node->last->to, .length = node->to };
	return skip_blanks(&parser) && change->text[parser.at] == ',';
}

/* A child at the end; `key` is NULL in an array. */
static int insert(const struct change *change, const struct node *node, const char *key, json_t *value,
                  const char **ret_text, struct cordon_error *err)
{
	bool compact = node->first && !on_own_line(change->text, node->from, node->first->key_from);
	const char *outer = indent_at(change, node->from);
	const char *indent = node->first && !compact ? indent_at(change, node->first->key_from) :
	                     outer ? arena_printf(change->arena, "%s%s", outer, change->unit) : NULL;
	const char *child = indent ? with_key(change, key, dump(change, value, indent, compact)) : NULL;
	if (!child)
		return fail_oom(err);
	if (compact)
		return splice(change, node->last->to, node->last->to, arena_printf(change->arena, ", %s", child),
		              ret_text, err);
	size_t end = end_of_inside(change, node);
	if (!node->first)
		return splice(change, end, node->to - 1,
		              arena_printf(change->arena, "%s%s%s%s%s", change->eol, indent, child, change->eol, outer),
		              ret_text, err);
	bool comma = has_last_comma(change, node);
	const char *added = arena_printf(change->arena, "%s%.*s%s%s%s%s", comma ? "" : ",", (int)(end - node->last->to),
	                                 change->text + node->last->to, change->eol, indent, child, comma ? "," : "");
	return splice(change, node->last->to, end, added, ret_text, err);
}

static int begin(struct change *change, struct arena *arena, const char *text, struct node **ret_root,
                 struct cordon_error *err)
{
	*change = (struct change){ .arena = arena, .text = text && text[strspn(text, " \t\r\n")] ? text : "{}\n" };
	struct node *root = parse(arena, change->text);
	if (!root)
		return invalid(err);
	change->eol = strstr(change->text, "\r\n") ? "\r\n" : "\n";
	change->unit = find_unit(change, root);
	*ret_root = root;
	return 0;
}

/* The value within objects for the rest of the path. Takes `value`. */
static json_t *wrap(const char *const *path, json_t *value)
{
	size_t count = 0;
	while (path[count])
		count++;
	while (count-- > 0)
		value = json_pack("{s:o}", path[count], value);
	return value;
}

static int put(struct arena *arena, const char *text, const char *const *path, json_t *value, bool element,
               const char **ret_text, struct cordon_error *err)
{
	struct change change;
	struct node *node, *child;
	if (begin(&change, arena, text, &node, err) < 0)
		return -1;
	for (; *path && (child = child_of(node, *path)); path++)
		node = child;
	if (*path) {
		if (node->type != OBJECT)
			return fail(err, CORDON_E_CONFIG_INVALID, 0, NULL, "what the key %s belongs in is no object",
			            *path);
		json_t *wrapped = wrap(path + 1, element ? json_pack("[O]", value) : json_incref(value));
		int result = wrapped ? insert(&change, node, *path, wrapped, ret_text, err) : fail_oom(err);
		json_decref(wrapped);
		return result;
	}
	if (!element)
		return is_same(change.text, node, value)
		               ? splice(&change, 0, 0, "", ret_text, err)
		               : splice(&change, node->from, node->to,
		                        dump(&change, value, indent_at(&change, node->from), false), ret_text, err);
	if (node->type != ARRAY)
		return fail(err, CORDON_E_CONFIG_INVALID, 0, NULL, "the value of the key %s is no list", path[-1]);
	for (child = node->first; child; child = child->next)
		if (is_same(change.text, child, value))
			return splice(&change, 0, 0, "", ret_text, err);
	return insert(&change, node, NULL, value, ret_text, err);
}

int jsonc_set(struct arena *arena, const char *text, const char *const *path, json_t *value, const char **ret_text,
              struct cordon_error *err)
{
	return put(arena, text, path, value, false, ret_text, err);
}

int jsonc_append(struct arena *arena, const char *text, const char *const *path, json_t *value, const char **ret_text,
                 struct cordon_error *err)
{
	return put(arena, text, path, value, true, ret_text, err);
}

/* With the comma behind it, or if it is the last the one before, and the blanks before it. */
static int cut(const struct change *change, const struct node *parent, const struct node *gone, const char **ret_text,
               struct cordon_error *err)
{
	struct parser parser = { .text = change->text, .at = gone->to, .length = parent->to };
	const struct node *before = parent->first == gone ? NULL : parent->first;
	size_t from = gone->key_from, to = gone->to;
	const char *kept = "";
	while (before && before->next != gone)
		before = before->next;
	while (from > parent->from + 1 && strchr(" \t\r\n", change->text[from - 1]))
		from--;
	if (skip_blanks(&parser) && change->text[parser.at] == ',') {
		to = parser.at + 1;
	} else if (before) {
		size_t comma = before->to + strcspn(change->text + before->to, ",");
		struct parser between = { .text = change->text, .at = before->to, .length = parent->to };
		if (skip_blanks(&between))
			comma = between.at;
		kept = arena_strndup(change->arena, change->text + comma + 1, comma + 1 < from ? from - comma - 1 : 0);
		from = comma;
	}
	return splice(change, from, to, kept, ret_text, err);
}

int jsonc_remove(struct arena *arena, const char *text, const char *const *path, json_t *element, const char **ret_text,
                 struct cordon_error *err)
{
	struct change change;
	struct node *node, *parent = NULL;
	if (begin(&change, arena, text, &node, err) < 0)
		return -1;
	for (; node && *path; path++) {
		parent = node;
		node = child_of(node, *path);
	}
	if (node && element) {
		parent = node;
		node = parent->type == ARRAY ? parent->first : NULL;
		while (node && !is_same(change.text, node, element))
			node = node->next;
	}
	return node && parent ? cut(&change, parent, node, ret_text, err) : splice(&change, 0, 0, "", ret_text, err);
}
