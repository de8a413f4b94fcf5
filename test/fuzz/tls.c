/*
 * ClientHellos: the answer does not depend on the cuts between segments, nor on the cuts between
 * records; names are host names; the protocol list can be walked to its exact end.
 */
#include "wire/tls.h"

#include <stdlib.h>

#include "fuzz.h"

static ssize_t parse_in_pieces(struct aw_str bytes, struct aw_tls_hello *ret,
			       enum aw_tls_flaw *ret_flaw)
{
	size_t step = fuzz_step(bytes.len);
	ssize_t r = -EAGAIN;

	for (size_t n = 0; r == -EAGAIN && n < bytes.len; n += step)
		r = aw_tls_hello_parse((struct aw_str){ bytes.ptr, n }, ret, ret_flaw);
	if (r == -EAGAIN)
		r = aw_tls_hello_parse(bytes, ret, ret_flaw);
	return r;
}

static void hold_hello(const struct aw_tls_hello *hello)
{
	struct aw_str name = { hello->server_name, hello->server_name_len }, protocol;
	size_t offset = 0;
	struct aw_host host;

	assert(hello->len <= AW_TLS_HELLO_MAX);
	assert(strlen(hello->server_name) == hello->server_name_len);
	assert(hello->has_server_name == (hello->server_name_len > 0));
	if (hello->has_server_name)
		assert(aw_host_parse(name, &host) == 0 && host.kind == AW_HOST_NAME);
	while (aw_tls_alpn_next(hello, &offset, &protocol))
		assert(protocol.len > 0 && offset <= hello->alpn_len);
	assert(offset == hello->alpn_len);
}

/* The handshake message without its record headers. */
static size_t join(struct aw_str records, uint8_t *out)
{
	const uint8_t *p = (const uint8_t *)records.ptr;
	size_t len = 0;

	for (size_t at = 0; at < records.len;) {
		size_t n = (size_t)(p[at + 3] << 8 | p[at + 4]);

		memcpy(out + len, p + at + 5, n);
		len += n;
		at += 5 + n;
	}
	return len;
}

static size_t cut(const uint8_t *message, size_t len, size_t fragment, uint8_t *out)
{
	size_t used = 0;

	for (size_t at = 0; at < len; at += fragment) {
		size_t n = len - at < fragment ? len - at : fragment;
		const uint8_t head[] = { 0x16, 3, 3, (uint8_t)(n >> 8), (uint8_t)n };

		memcpy(out + used, head, sizeof(head));
		memcpy(out + used + sizeof(head), message + at, n);
		used += sizeof(head) + n;
	}
	return used;
}

static void hold_recut(struct aw_str records, const struct aw_tls_hello *hello)
{
	uint8_t *message = malloc(AW_TLS_HELLO_MAX), *again = malloc(AW_TLS_HELLO_MAX + 5 * 16);
	size_t len, fragment;
	struct aw_tls_hello other = { 0 };
	enum aw_tls_flaw flaw;

	if (message == NULL || again == NULL)
		abort();
	len = join(records, message);
	fragment = (len + AW_TLS_RECORDS_MAX - 1) / AW_TLS_RECORDS_MAX;
	len = cut(message, len, fragment, again);
	if (len <= AW_TLS_HELLO_MAX) {
		assert(aw_tls_hello_parse(fuzz_str(again, len), &other, &flaw) == (ssize_t)len);
		other.len = hello->len;
		assert(memcmp(&other, hello, sizeof(other)) == 0);
	}
	free(message);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str bytes = fuzz_str(data, size);
	struct aw_tls_hello hello = { 0 }, other = { 0 };
	enum aw_tls_flaw flaw = AW_TLS_FLAW_NONE, other_flaw = AW_TLS_FLAW_NONE;
	ssize_t r = aw_tls_hello_parse(bytes, &hello, &flaw);

	assert(parse_in_pieces(bytes, &other, &other_flaw) == r && flaw == other_flaw);
	if (r < 0) {
		assert(r == -EAGAIN || r == -EBADMSG || r == -EPROTONOSUPPORT);
		assert((r == -EPROTONOSUPPORT) == (flaw == AW_TLS_FLAW_NOT_TLS));
		return 0;
	}
	assert((size_t)r == hello.len && hello.len <= size);
	assert(memcmp(&hello, &other, sizeof(hello)) == 0);
	hold_hello(&hello);
	hold_recut((struct aw_str){ bytes.ptr, hello.len }, &hello);
	return 0;
}
