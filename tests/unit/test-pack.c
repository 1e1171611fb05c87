/* Packing: what is packed is what is unpacked, wherever it lies; what does not fit is told; what is no pack is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "driver/linux/order.h"

#include <cmocka.h>

#define CAPACITY 65536

static const char *const words[] = { "env", "-i", "", "a b\nc", NULL };

static uint32_t pack(struct packer *packer, void *bytes, uint32_t capacity, const char *cwd, const char *const *argv)
{
	const struct order order = { .program_device = 7, .program_inode = 11, .program_judged = true };
	pack_begin(packer, bytes, capacity);
	uint32_t at = pack_bytes(packer, &order, sizeof(order));
	pack_text(packer, at + (uint32_t)offsetof(struct order, cwd), cwd);
	pack_texts(packer, at + (uint32_t)offsetof(struct order, argv), argv);
	return pack_end(packer);
}

struct buffers {
	struct packer packer;
	char packed[CAPACITY] __attribute__((aligned(16))), moved[CAPACITY] __attribute__((aligned(16)));
};

static int make_buffers(void **state)
{
	*state = calloc(1, sizeof(struct buffers));
	return *state ? 0 : -1;
}

static int free_buffers(void **state)
{
	free(*state);
	return 0;
}

static void comes_out_elsewhere_as_it_went_in(void **state)
{
	struct buffers *buffers = *state;
	uint32_t size = pack(&buffers->packer, buffers->packed, CAPACITY, "/work", words);
	assert_true(size > 0);
	memcpy(buffers->moved, buffers->packed, size);
	memset(buffers->packed, 0xff, CAPACITY);
	const struct order *order = pack_open(buffers->moved, size);
	assert_non_null(order);
	assert_string_equal(order->cwd, "/work");
	for (size_t i = 0; words[i]; i++)
		assert_string_equal(order->argv[i], words[i]);
	assert_null(order->argv[4]);
	assert_null(order->environment);
	assert_true(order->program_judged && order->program_device == 7 && order->program_inode == 11);
}

static void what_does_not_fit_is_told(void **state)
{
	struct buffers *buffers = *state;
	uint32_t size = pack(&buffers->packer, buffers->packed, CAPACITY, "/work", words);
	for (uint32_t capacity = 0; capacity < size; capacity++)
		assert_int_equal(pack(&buffers->packer, buffers->packed, capacity, "/work", words), 0);
	assert_int_equal(pack(&buffers->packer, buffers->packed, size, "/work", words), size);
}

static void too_many_pointers_are_told(void **state)
{
	struct buffers *buffers = *state;
	size_t many = ARRAY_SIZE(buffers->packer.fixups) + 1;
	uint32_t capacity = 1 << 20;
	auto_free const char **texts = calloc(many + 1, sizeof(*texts));
	auto_free char *bytes = malloc(capacity);
	assert_true(texts && bytes);
	for (size_t i = 0; i < many; i++)
		texts[i] = "";
	assert_int_equal(pack(&buffers->packer, bytes, capacity, "/", texts), 0);
}

/* Every bit of the head and of where pointers are to be made. */
static void what_is_no_pack_is_refused_or_stays_inside(void **state)
{
	struct buffers *buffers = *state;
	uint32_t size = pack(&buffers->packer, buffers->packed, CAPACITY, "/work", words);
	const struct pack *head = (const void *)buffers->packed;
	for (uint32_t cut = 0; cut < size; cut++) {
		memcpy(buffers->moved, buffers->packed, size);
		assert_null(pack_open(buffers->moved, cut));
	}
	for (uint32_t bit = 0; bit < size * 8; bit++) {
		if (bit / 8 >= offsetof(struct pack, unused) && bit / 8 < head->fixup_at)
			continue;
		memcpy(buffers->moved, buffers->packed, size);
		buffers->moved[bit / 8] = (char)(buffers->moved[bit / 8] ^ (1 << bit % 8));
		const struct order *order = pack_open(buffers->moved, size);
		assert_true(!order || (const char *)order == buffers->moved + sizeof(struct pack));
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_buffers, free_buffers)
	const struct CMUnitTest tests[] = {
		CASE(comes_out_elsewhere_as_it_went_in), CASE(what_does_not_fit_is_told), CASE(too_many_pointers_are_told),
		CASE(what_is_no_pack_is_refused_or_stays_inside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
