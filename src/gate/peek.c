#include "gate/peek.h"

#include <errno.h>

#include "gate/decide.h"
#include "wire/http.h"
#include "wire/tls.h"

#define TLS_HANDSHAKE 0x16 /* RFC 8446 5.1: content type of the first record */
#define HTTPS_PORT 443
#define HTTP_PORT 80

static enum aw_peek refuse(enum aw_ipc_outcome outcome, const char *seen,
			   struct aw_peek_refusal *ret)
{
	ret->outcome = outcome;
	(void)aw_str_escape(aw_str_from(seen), ret->seen, sizeof(ret->seen));
	return AW_PEEK_REFUSE;
}

/*
 * With Encrypted Client Hello the name in sight is a cover, but it is the one that the granted host
 * itself publishes; it is held to the grant like any other.
 */
static enum aw_peek look_at_tls(struct aw_str bytes, const char *granted_name,
				struct aw_peek_refusal *ret)
{
	struct aw_tls_hello hello;
	enum aw_tls_flaw flaw;
	ssize_t n = aw_tls_hello_parse(bytes, &hello, &flaw);

	if (n == -EAGAIN)
		return AW_PEEK_MORE;
	if (n < 0)
		return refuse(AW_IPC_REFUSED_PROTOCOL, aw_tls_flaw_text(flaw), ret);
	if (!hello.has_server_name)
		return refuse(AW_IPC_REFUSED_SNI, "", ret);
	if (!aw_decide_is_same_name(aw_str_from(hello.server_name), granted_name))
		return refuse(AW_IPC_REFUSED_SNI, hello.server_name, ret);
	return AW_PEEK_PASS;
}

static bool is_method_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* "METHOD " and a byte that a request target can begin with. */
static enum aw_peek look_for_http(struct aw_str bytes)
{
	size_t i = 0;

	while (i < bytes.len && i <= AW_HTTP_METHOD_MAX && is_method_byte(bytes.ptr[i]))
		i++;
	if (i > AW_HTTP_METHOD_MAX || (i == 0 && bytes.len > 0))
		return AW_PEEK_PASS;
	if (i < bytes.len && bytes.ptr[i] != ' ')
		return AW_PEEK_PASS;
	if (i + 1 >= bytes.len)
		return AW_PEEK_MORE;
	switch (bytes.ptr[i + 1]) {
	case '/':
	case '*':
	case 'h':
	case 'H':
		return AW_PEEK_HTTP;
	default:
		return AW_PEEK_PASS;
	}
}

enum aw_peek aw_peek_look(struct aw_str bytes, uint16_t port, const char *granted_name,
			  struct aw_peek_refusal *ret)
{
	if ((uint8_t)bytes.ptr[0] == TLS_HANDSHAKE)
		return look_at_tls(bytes, granted_name, ret);
	if (port == HTTPS_PORT)
		return refuse(AW_IPC_REFUSED_PROTOCOL, "not TLS on port 443", ret);
	if (port == HTTP_PORT)
		return AW_PEEK_HTTP;
	return look_for_http(bytes);
}
