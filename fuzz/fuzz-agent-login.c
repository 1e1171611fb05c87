/* Any bytes as what became of an agent's login: where it is taken for a renewed one, what may not differ is as it was.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "door/agent/login.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char before[] =
	"{\"tokens\":{\"access\":\"a\",\"id\":{\"x\":1}},\"p\":{\"access\":\"b\",\"type\":\"oauth\"},\"hook\":[\"c\"]}";

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *words[] = { "tokens", "*.access", NULL };
	const struct strings changes = { .items = words, .count = 2, .capacity = 3 };
	if (login_is_renewed(&changes, before, strlen(before), (const char *)data, size)) {
		json_t *old = json_loads(before, 0, NULL),
		       *new = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL), *each;
		const char *key;
		must(size <= LOGIN_SIZE_MAX && json_is_object(new));
		must(json_equal(json_object_get(old, "hook"), json_object_get(new, "hook")));
		json_object_foreach(new, key, each) {
			if (!strcmp(key, "tokens") || !strcmp(key, "hook"))
				continue;
			json_t *kept = json_deep_copy(each), *was = json_deep_copy(json_object_get(old, key));
			must(json_is_object(kept));
			json_object_del(kept, "access");
			json_object_del(was, "access");
			must(was ? json_equal(kept, was) : json_object_size(kept) == 0);
			json_decref(kept);
			json_decref(was);
		}
		json_decref(old);
		json_decref(new);
	}
	return 0;
}
