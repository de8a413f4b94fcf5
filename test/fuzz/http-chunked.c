/*
 * Chunked bodies: the end does not depend on the cuts, and a second, plain decoder that has the whole
 * body in hand finds the same end and the same content length.
 */
#include "wire/http-chunked.h"

#include <stdlib.h>

#include "fuzz.h"

/* Line without its CR LF, or false. */
static bool take_line(struct aw_str *rest, struct aw_str *ret_line)
{
	const char *end = rest->len > 0 ? memmem(rest->ptr, rest->len, "\r\n", 2) : NULL;

	if (end == NULL)
		return false;
	*ret_line = (struct aw_str){ rest->ptr, (size_t)(end - rest->ptr) };
	rest->len -= ret_line->len + 2;
	rest->ptr = end + 2;
	return true;
}

/* What is left behind a body that is known to be good; counts its content. */
static struct aw_str decode_plainly(struct aw_str rest, uint64_t *ret_content)
{
	struct aw_str line;
	char digits[17];

	*ret_content = 0;
	for (;;) {
		size_t n = 0;
		unsigned long long size;

		if (!take_line(&rest, &line))
			abort();
		while (n < line.len && n < 16 &&
		       strchr("0123456789abcdefABCDEF", line.ptr[n]) != NULL)
			n++;
		memcpy(digits, line.ptr, n);
		digits[n] = '\0';
		size = strtoull(digits, NULL, 16);
		if (size == 0)
			break;
		assert(n > 0 && size + 2 <= rest.len && memcmp(rest.ptr + size, "\r\n", 2) == 0);
		rest.ptr += size + 2;
		rest.len -= size + 2;
		*ret_content += size;
	}
	do {
		if (!take_line(&rest, &line))
			abort();
	} while (line.len > 0);
	return rest;
}

static ssize_t feed_in_pieces(struct aw_http_chunked *chunked, struct aw_str bytes,
			      enum aw_http_flaw *ret_flaw)
{
	size_t step = fuzz_step(bytes.len), taken = 0;

	while (taken < bytes.len && !aw_http_chunked_is_done(chunked)) {
		size_t n = bytes.len - taken < step ? bytes.len - taken : step;
		ssize_t r = aw_http_chunked_feed(chunked, (struct aw_str){ bytes.ptr + taken, n },
						 ret_flaw);

		if (r < 0)
			return r;
		taken += (size_t)r;
	}
	return (ssize_t)taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str bytes = fuzz_str(data, size), rest;
	struct aw_http_chunked whole = { 0 }, pieces = { 0 };
	enum aw_http_flaw flaw = AW_HTTP_FLAW_NONE, other = AW_HTTP_FLAW_NONE;
	ssize_t r = aw_http_chunked_feed(&whole, bytes, &flaw);
	uint64_t content;

	assert(feed_in_pieces(&pieces, bytes, &other) == r && flaw == other);
	assert(aw_http_chunked_is_done(&whole) == aw_http_chunked_is_done(&pieces));
	if (r < 0) {
		assert(r == -EBADMSG && !aw_http_chunked_is_done(&whole));
		assert(aw_http_chunked_feed(&whole, AW_STR("0\r\n\r\n"), &other) == -EBADMSG);
		return 0;
	}
	assert((size_t)r <= size && whole.content <= INT64_MAX);
	assert(whole.content == pieces.content && whole.left == pieces.left);
	if (!aw_http_chunked_is_done(&whole)) {
		assert((size_t)r == size);
		return 0;
	}
	assert(aw_http_chunked_feed(&whole, bytes, &flaw) == 0);
	rest = decode_plainly(bytes, &content);
	assert(rest.len == size - (size_t)r && content == whole.content);
	return 0;
}
