/*
 * SOCKS5 (RFC 1928):
 *
 *	greeting  version 1 = 5, count 1, methods            method   5, method (0 none, ff refused)
 *	request   5, command 1, reserved 0, type 1, address, port 2
 *	reply     5, reply 1, reserved 0, type 1, address, port 2
 *	address   type 1: 4 bytes · type 3: length 1, name · type 4: 16 bytes
 */
#include "wire/socks.h"

#include <errno.h>
#include <string.h>

#define METHOD_NONE 0
#define METHOD_REFUSED 0xff
#define COMMAND_CONNECT 1
#define TYPE_IPV4 1
#define TYPE_NAME 3
#define TYPE_IPV6 4
#define REQUEST_HEAD_LEN 4
#define PORT_LEN 2

static int check_version(struct aw_str bytes)
{
	if (bytes.len == 0)
		return -EAGAIN;
	return bytes.ptr[0] == AW_SOCKS_VERSION ? 0 : -EPROTONOSUPPORT;
}

ssize_t aw_socks_greeting_parse(struct aw_str bytes, bool *ret_is_open)
{
	size_t count;
	int r = check_version(bytes);

	if (r < 0)
		return r;
	if (bytes.len < 2)
		return -EAGAIN;
	count = (unsigned char)bytes.ptr[1];
	if (count == 0)
		return -EBADMSG;
	if (bytes.len < 2 + count)
		return -EAGAIN;
	*ret_is_open = memchr(bytes.ptr + 2, METHOD_NONE, count) != NULL;
	return (ssize_t)(2 + count);
}

/* Fixed bytes of a request as far as they have come. */
static int check_request_head(const unsigned char *p, size_t len, enum aw_socks_reply *ret_reply)
{
	if (len > 1 && p[1] != COMMAND_CONNECT) {
		*ret_reply = AW_SOCKS_COMMAND;
		return -EBADMSG;
	}
	if (len > 2 && p[2] != 0) {
		*ret_reply = AW_SOCKS_FAILED;
		return -EBADMSG;
	}
	if (len > 3 && p[3] != TYPE_IPV4 && p[3] != TYPE_NAME && p[3] != TYPE_IPV6) {
		*ret_reply = AW_SOCKS_ADDRESS_TYPE;
		return -EBADMSG;
	}
	return 0;
}

/* Bytes of the address behind the head, its length byte included; 0 as long as that is not there. */
static size_t address_len(const unsigned char *p, size_t len)
{
	if (len < REQUEST_HEAD_LEN)
		return 0;
	if (p[3] == TYPE_IPV4)
		return 4;
	if (p[3] == TYPE_IPV6)
		return 16;
	return len > REQUEST_HEAD_LEN ? 1u + p[REQUEST_HEAD_LEN] : 0;
}

static int read_host(const unsigned char *p, size_t len, struct aw_host *ret)
{
	const unsigned char *address = p + REQUEST_HEAD_LEN;

	*ret = (struct aw_host){ .kind = p[3] == TYPE_IPV6 ? AW_HOST_IPV6 : AW_HOST_IPV4 };
	if (p[3] != TYPE_NAME) {
		ret->text = (struct aw_str){ "", 0 };
		memcpy(ret->address, address, len);
		return 0;
	}
	/* A bracketed literal is no name: type 4 is there for it. */
	if (len > 1 && address[1] == '[')
		return -EBADMSG;
	return aw_host_parse((struct aw_str){ (const char *)address + 1, len - 1 }, ret);
}

ssize_t aw_socks_request_parse(struct aw_str bytes, struct aw_hostport *ret,
			       enum aw_socks_reply *ret_reply)
{
	const unsigned char *p = (const unsigned char *)bytes.ptr;
	struct aw_hostport peer = { 0 };
	size_t len, whole;
	int r = check_version(bytes);

	if (r < 0)
		return r;
	r = check_request_head(p, bytes.len, ret_reply);
	if (r < 0)
		return r;
	len = address_len(p, bytes.len);
	whole = REQUEST_HEAD_LEN + len + PORT_LEN;
	if (len == 0 || bytes.len < whole)
		return -EAGAIN;
	peer.port = (uint16_t)(p[whole - 2] << 8 | p[whole - 1]);
	if (peer.port == 0 || read_host(p, len, &peer.host) < 0) {
		*ret_reply = AW_SOCKS_FAILED;
		return -EBADMSG;
	}
	*ret = peer;
	return (ssize_t)whole;
}

void aw_socks_method_write(bool is_open, uint8_t out[AW_SOCKS_METHOD_LEN])
{
	out[0] = AW_SOCKS_VERSION;
	out[1] = is_open ? METHOD_NONE : METHOD_REFUSED;
}

/* The bound address is not told: clients do not use it, and it is none of the cell's business. */
void aw_socks_reply_write(enum aw_socks_reply reply, uint8_t out[AW_SOCKS_REPLY_LEN])
{
	memset(out, 0, AW_SOCKS_REPLY_LEN);
	out[0] = AW_SOCKS_VERSION;
	out[1] = (uint8_t)reply;
	out[3] = TYPE_IPV4;
}
