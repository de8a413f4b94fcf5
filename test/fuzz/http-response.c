/* Response heads: as http-request.c. The first byte chooses the method that is answered. */
#include "wire/http.h"

#include "fuzz.h"
#include "wire/http-write.h"

static int parse_in_pieces(struct aw_str bytes, struct aw_str method, struct aw_http_response *ret,
			   enum aw_http_flaw *ret_flaw)
{
	struct aw_http_scan scan = { 0 };
	size_t step = fuzz_step(bytes.len);
	int r = -EAGAIN;

	for (size_t n = 0; r == -EAGAIN && n < bytes.len; n += step)
		r = aw_http_response_parse(&scan, (struct aw_str){ bytes.ptr, n }, method, ret,
					   ret_flaw);
	if (r == -EAGAIN)
		r = aw_http_response_parse(&scan, bytes, method, ret, ret_flaw);
	return r;
}

static void hold_response(struct aw_str bytes, const struct aw_http_response *response)
{
	struct aw_str head = { bytes.ptr, response->len };

	assert(response->len <= bytes.len && response->len <= AW_HTTP_HEAD_MAX);
	assert(response->status >= 100 && response->status <= 599);
	assert(fuzz_is_inside(response->reason, head) && fuzz_is_inside(response->fields, head));
	assert(response->body != AW_HTTP_BODY_LENGTH || response->content_length > 0);
	assert(!response->is_kept ||
	       (response->body != AW_HTTP_BODY_CLOSE && response->body != AW_HTTP_BODY_TUNNEL));
	assert(!response->is_interim || response->body == AW_HTTP_BODY_NONE);
	assert(response->minor == 1 || response->body != AW_HTTP_BODY_CHUNKED);
}

static void hold_rewritten(const struct aw_http_response *response, struct aw_str method,
			   bool is_kept)
{
	struct aw_buf out = AW_BUF_INIT(2 * AW_HTTP_HEAD_MAX);
	struct aw_http_scan scan = { 0 };
	struct aw_http_response again;
	enum aw_http_flaw flaw;
	int r;

	assert(aw_http_response_write(response, is_kept, &out) == 0);
	r = aw_http_response_parse(&scan, aw_buf_str(&out), method, &again, &flaw);
	if (r < 0) {
		assert(flaw == AW_HTTP_FLAW_HEAD_SIZE || flaw == AW_HTTP_FLAW_FIELD_COUNT);
	} else {
		assert((size_t)r == out.len && again.status == response->status);
		assert(again.minor == response->minor && again.body == response->body);
		assert(again.content_length == response->content_length);
		assert(aw_str_is_equal(again.reason, response->reason));
		assert(is_kept || !again.is_kept || again.is_interim);
	}
	aw_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = { "GET", "HEAD", "CONNECT" };
	struct aw_http_scan scan = { 0 };
	struct aw_http_response response = { 0 }, other = { 0 };
	enum aw_http_flaw flaw = AW_HTTP_FLAW_NONE, other_flaw = AW_HTTP_FLAW_NONE;
	struct aw_str bytes, method;
	int r;

	if (size == 0)
		return 0;
	method = aw_str_from(methods[data[0] % 3]);
	bytes = fuzz_str(data + 1, size - 1);
	r = aw_http_response_parse(&scan, bytes, method, &response, &flaw);
	assert(r > 0 || r == -EAGAIN || (r == -EBADMSG && flaw != AW_HTTP_FLAW_NONE));
	assert(parse_in_pieces(bytes, method, &other, &other_flaw) == r && flaw == other_flaw);
	assert(other.len == response.len && other.body == response.body);
	if (r < 0)
		return 0;
	hold_response(bytes, &response);
	hold_rewritten(&response, method, false);
	hold_rewritten(&response, method, true);
	return 0;
}
