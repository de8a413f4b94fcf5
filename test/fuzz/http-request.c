/*
 * Request heads: the answer does not depend on the cuts; an accepted head is clean; what is written
 * for the origin server reads as the same request, for the same peer, with the same body.
 */
#include "wire/http.h"

#include "fuzz.h"
#include "wire/http-write.h"

static int parse_in_pieces(struct aw_str bytes, struct aw_http_request *ret,
			   enum aw_http_flaw *ret_flaw)
{
	struct aw_http_scan scan = { 0 };
	size_t step = fuzz_step(bytes.len);
	int r = -EAGAIN;

	for (size_t n = 0; r == -EAGAIN && n < bytes.len; n += step)
		r = aw_http_request_parse(&scan, (struct aw_str){ bytes.ptr, n }, ret, ret_flaw);
	if (r == -EAGAIN)
		r = aw_http_request_parse(&scan, bytes, ret, ret_flaw);
	return r;
}

static bool is_clean(struct aw_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.ptr[i] < 0x20 && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
			return false;
	return true;
}

static void hold_fields(struct aw_str fields)
{
	unsigned count = 0, hosts = 0, lengths = 0, codings = 0;
	struct aw_str name, value;

	while (aw_http_field_next(&fields, &name, &value)) {
		assert(name.len > 0 && is_clean(name) && is_clean(value));
		assert(memchr(name.ptr, ' ', name.len) == NULL);
		hosts += aw_http_token_is(name, "host");
		lengths += aw_http_token_is(name, "content-length");
		codings += aw_http_token_is(name, "transfer-encoding");
		count++;
	}
	assert(count <= AW_HTTP_FIELDS_MAX && hosts <= 1 && lengths + codings <= 1);
}

static void hold_request(struct aw_str bytes, const struct aw_http_request *request)
{
	struct aw_str head = { bytes.ptr, request->len };

	assert(request->len <= bytes.len && request->len <= AW_HTTP_HEAD_MAX);
	assert(memcmp(head.ptr + head.len - 4, "\r\n\r\n", 4) == 0);
	assert(request->method.len > 0 && request->method.len <= AW_HTTP_METHOD_MAX);
	assert(fuzz_is_inside(request->method, head) && fuzz_is_inside(request->target, head));
	assert(fuzz_is_inside(request->path, request->target));
	assert(fuzz_is_inside(request->fields, head) && fuzz_is_inside(request->host, head));
	assert(request->target.len > 0 &&
	       memchr(request->target.ptr, ' ', request->target.len) == NULL);
	assert((request->authority.host.kind == 0) == (request->authority.port == 0));
	assert(request->authority.port != 0 || request->minor == 0);
	assert((request->body == AW_HTTP_BODY_LENGTH) == (request->content_length > 0));
	assert(request->form != AW_HTTP_FORM_AUTHORITY || request->body == AW_HTTP_BODY_NONE);
	hold_fields(request->fields);
}

static void hold_same(const struct aw_http_request *a, const struct aw_http_request *b)
{
	assert(aw_str_is_equal(a->method, b->method) && a->minor == b->minor);
	assert(a->body == b->body && a->content_length == b->content_length);
	assert(a->authority.host.kind == b->authority.host.kind);
	assert(aw_str_is_equal(a->authority.host.text, b->authority.host.text));
	assert(a->authority.port == b->authority.port);
	assert(a->is_websocket == b->is_websocket);
	assert(a->is_continue_wanted == b->is_continue_wanted);
	if (b->form == AW_HTTP_FORM_ORIGIN && a->path.len > 0 && a->path.ptr[0] == '/')
		assert(aw_str_is_equal(a->path, b->path));
}

static void hold_rewritten(const struct aw_http_request *request, bool is_kept)
{
	struct aw_buf out = AW_BUF_INIT(2 * AW_HTTP_HEAD_MAX),
		      twice = AW_BUF_INIT(2 * AW_HTTP_HEAD_MAX);
	struct aw_http_scan scan = { 0 };
	struct aw_http_request again;
	enum aw_http_flaw flaw;
	int r;

	assert(aw_http_request_write(request, is_kept, &out) == 0);
	r = aw_http_request_parse(&scan, aw_buf_str(&out), &again, &flaw);
	/* Host and Connection are longer than what they replace: a head near a limit may pass it. */
	if (r < 0) {
		assert(flaw == AW_HTTP_FLAW_HEAD_SIZE || flaw == AW_HTTP_FLAW_FIELD_COUNT);
	} else {
		assert((size_t)r == out.len);
		assert(again.form == AW_HTTP_FORM_ORIGIN || again.form == AW_HTTP_FORM_ASTERISK);
		assert(again.is_kept == (is_kept || request->is_websocket));
		hold_same(request, &again);
		assert(aw_http_request_write(&again, is_kept, &twice) == 0);
		assert(aw_str_is_equal(aw_buf_str(&out), aw_buf_str(&twice)));
	}
	aw_buf_fini(&out);
	aw_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str bytes = fuzz_str(data, size);
	struct aw_http_scan scan = { 0 };
	struct aw_http_request request = { 0 }, other = { 0 };
	enum aw_http_flaw flaw = AW_HTTP_FLAW_NONE, other_flaw = AW_HTTP_FLAW_NONE;
	int r = aw_http_request_parse(&scan, bytes, &request, &flaw);

	assert(r > 0 || r == -EAGAIN || (r == -EBADMSG && flaw != AW_HTTP_FLAW_NONE));
	assert(parse_in_pieces(bytes, &other, &other_flaw) == r && flaw == other_flaw);
	assert(other.len == request.len);
	if (r < 0)
		return 0;
	hold_request(bytes, &request);
	if (request.form != AW_HTTP_FORM_AUTHORITY && request.authority.port != 0) {
		hold_rewritten(&request, false);
		hold_rewritten(&request, true);
	}
	return 0;
}
