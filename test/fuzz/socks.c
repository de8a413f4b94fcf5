/* SOCKS5 greetings and requests: cuts do not matter, nothing beyond the message is taken. */
#include "wire/socks.h"

#include "fuzz.h"

static void hold_greeting(struct aw_str bytes)
{
	bool is_open = false, other = false;
	ssize_t r = aw_socks_greeting_parse(bytes, &is_open), s = -EAGAIN;

	for (size_t n = 0; n <= bytes.len && s == -EAGAIN; n++)
		s = aw_socks_greeting_parse((struct aw_str){ bytes.ptr, n }, &other);
	assert(r == s && is_open == other);
	assert(r < 0 || ((size_t)r <= bytes.len && r >= 3 && r <= AW_SOCKS_GREETING_MAX));
}

static void hold_request(struct aw_str bytes)
{
	struct aw_hostport peer = { 0 }, other = { 0 };
	enum aw_socks_reply reply = AW_SOCKS_OK, other_reply = AW_SOCKS_OK;
	ssize_t r = aw_socks_request_parse(bytes, &peer, &reply), s = -EAGAIN;

	for (size_t n = 0; n <= bytes.len && s == -EAGAIN; n++)
		s = aw_socks_request_parse((struct aw_str){ bytes.ptr, n }, &other, &other_reply);
	assert(r == s && reply == other_reply);
	if (r < 0) {
		assert((r == -EBADMSG) == (reply != AW_SOCKS_OK));
		return;
	}
	assert(r <= AW_SOCKS_REQUEST_MAX && (size_t)r <= bytes.len && peer.port != 0);
	assert(peer.host.kind == other.host.kind && peer.port == other.port);
	assert(fuzz_is_inside(peer.host.text, bytes));
	if (bytes.ptr[3] == 3)
		assert(aw_host_name_check(peer.host.text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hold_greeting(fuzz_str(data, size));
	hold_request(fuzz_str(data, size));
	return 0;
}
