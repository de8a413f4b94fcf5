#include "event/chain.h"

#include <errno.h>
#include <sodium/crypto_hash_sha256.h>
#include <string.h>

_Static_assert(AW_CHAIN_SIZE == crypto_hash_sha256_BYTES, "SHA-256 has 32 bytes");

void aw_chain_hash(struct aw_str line, struct aw_chain *ret)
{
	/* Plain C without run-time dispatch: no sodium_init is needed, and it cannot fail. */
	(void)crypto_hash_sha256(ret->hash, (const unsigned char *)line.ptr, line.len);
}

void aw_chain_to_hex(const struct aw_chain *chain, char out[AW_CHAIN_HEX_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < AW_CHAIN_SIZE; i++) {
		out[2 * i] = digits[chain->hash[i] >> 4];
		out[2 * i + 1] = digits[chain->hash[i] & 15];
	}
	out[AW_CHAIN_HEX_LEN] = '\0';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int aw_chain_from_hex(struct aw_str hex, struct aw_chain *ret)
{
	struct aw_chain chain;

	if (hex.len != AW_CHAIN_HEX_LEN)
		return -EBADMSG;
	for (size_t i = 0; i < AW_CHAIN_SIZE; i++) {
		int high = hex_digit(hex.ptr[2 * i]), low = hex_digit(hex.ptr[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		chain.hash[i] = (uint8_t)(high * 16 + low);
	}
	*ret = chain;
	return 0;
}

bool aw_chain_is_equal(const struct aw_chain *a, const struct aw_chain *b)
{
	return memcmp(a->hash, b->hash, AW_CHAIN_SIZE) == 0;
}
