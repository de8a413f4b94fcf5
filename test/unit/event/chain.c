#include "event/chain.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* FIPS 180-4's own examples. */
static void is_sha_256(void **state)
{
	struct aw_chain chain;
	char hex[AW_CHAIN_HEX_LEN + 1];

	(void)state;
	aw_chain_hash(AW_STR("abc"), &chain);
	aw_chain_to_hex(&chain, hex);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	aw_chain_hash((struct aw_str){ NULL, 0 }, &chain);
	aw_chain_to_hex(&chain, hex);
	assert_string_equal(hex,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void hex_goes_both_ways(void **state)
{
	struct aw_chain there, back;
	char hex[AW_CHAIN_HEX_LEN + 1];

	(void)state;
	for (size_t i = 0; i < AW_CHAIN_SIZE; i++)
		there.hash[i] = (uint8_t)(i * 37 + 5);
	aw_chain_to_hex(&there, hex);
	assert_int_equal(aw_chain_from_hex(aw_str_from(hex), &back), 0);
	assert_true(aw_chain_is_equal(&there, &back));
	back.hash[31] ^= 1;
	assert_false(aw_chain_is_equal(&there, &back));
}

static void refuses_other_forms_of_hex(void **state)
{
	char hex[AW_CHAIN_HEX_LEN + 2];
	struct aw_chain chain;

	(void)state;
	memset(hex, '0', sizeof(hex));
	assert_int_equal(aw_chain_from_hex((struct aw_str){ hex, 63 }, &chain), -EBADMSG);
	assert_int_equal(aw_chain_from_hex((struct aw_str){ hex, 65 }, &chain), -EBADMSG);
	hex[10] = 'A';
	assert_int_equal(aw_chain_from_hex((struct aw_str){ hex, 64 }, &chain), -EBADMSG);
	hex[10] = 'g';
	assert_int_equal(aw_chain_from_hex((struct aw_str){ hex, 64 }, &chain), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_sha_256),
		cmocka_unit_test(hex_goes_both_ways),
		cmocka_unit_test(refuses_other_forms_of_hex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
