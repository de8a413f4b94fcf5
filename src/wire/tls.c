/*
 * A ClientHello in its records (RFC 8446 sections 4, 4.1.2, 5.1):
 *
 *	record     type 1 = 22, version 2 = 03 xx, length 2, fragment
 *	handshake  type 1 = 1, length 3, body              (cut over fragments at any place)
 *	body       version 2, random 32, session id <0..32>, cipher suites <2..2^16-2>,
 *	           compression methods <1..255>, extensions <0..2^16-1>, each: type 2, <0..2^16-1>
 *	           <..> is a vector with its length in front, of one byte where the maximum is below 256
 *
 * The fragments are never joined: a cursor walks over them. Lengths inside lengths are cursors inside
 * cursors, each with what is left of its own vector.
 */
#include "wire/tls.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/own.h"

#define RECORD_HEAD_LEN 5
#define RECORD_TYPE_HANDSHAKE 22
#define RECORD_MAX (16 * 1024)
#define HANDSHAKE_HEAD_LEN 4
#define HANDSHAKE_CLIENT_HELLO 1
#define RANDOM_LEN 32
#define SESSION_ID_MAX 32
#define VERSION_LOWEST 0x0300 /* SSL 3.0 */
#define VERSION_HIGHEST 0x0304

struct fragments {
	struct aw_str part[AW_TLS_RECORDS_MAX]; /* as far as it has come */
	size_t count;
	size_t announced; /* lengths of all records together */
	size_t present;
};

struct cursor {
	const struct fragments *fragments;
	size_t part, offset;
	size_t left;
	bool is_cut;
};

static void skip(struct cursor *in, size_t n)
{
	if (in->is_cut || n > in->left) {
		in->is_cut = true;
		return;
	}
	in->left -= n;
	in->offset += n;
	while (in->part < in->fragments->count && in->offset >= in->fragments->part[in->part].len) {
		in->offset -= in->fragments->part[in->part].len;
		in->part++;
	}
}

static unsigned get_u8(struct cursor *in)
{
	unsigned value;

	if (in->is_cut || in->left == 0) {
		in->is_cut = true;
		return 0;
	}
	assert(in->part < in->fragments->count);
	value = (unsigned char)in->fragments->part[in->part].ptr[in->offset];
	skip(in, 1);
	return value;
}

static unsigned get_u16(struct cursor *in)
{
	unsigned high = get_u8(in);

	return high << 8 | get_u8(in);
}

static void get_bytes(struct cursor *in, char *out, size_t len)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (char)get_u8(in);
}

/* The next @len bytes as a cursor of their own. */
static struct cursor take(struct cursor *in, size_t len)
{
	struct cursor inner = *in;

	skip(in, len);
	inner.left = in->is_cut ? 0 : len;
	inner.is_cut = in->is_cut;
	return inner;
}

/*
 * Look at a record header as far as it has come. The first one decides whether this is TLS at all;
 * between fragments no other record may stand (RFC 8446 5.1).
 */
static enum aw_tls_flaw check_record_head(struct aw_str head, bool is_first)
{
	const unsigned char *p = (const unsigned char *)head.ptr;
	enum aw_tls_flaw other = is_first ? AW_TLS_FLAW_NOT_TLS : AW_TLS_FLAW_RECORD;
	unsigned len;

	if (head.len > 0 && p[0] != RECORD_TYPE_HANDSHAKE)
		return other;
	if (head.len > 1 && p[1] != VERSION_LOWEST >> 8)
		return other;
	if (head.len > 2 && p[2] > (VERSION_HIGHEST & 0xff))
		return other;
	if (head.len < RECORD_HEAD_LEN)
		return AW_TLS_FLAW_NONE;
	len = (unsigned)p[3] << 8 | p[4];
	return len > 0 && len <= RECORD_MAX ? AW_TLS_FLAW_NONE : AW_TLS_FLAW_RECORD;
}

/*
 * Add the record at @offset. Returns its whole length, -EAGAIN if its header is not all there, or
 * -EBADMSG.
 */
static ssize_t add_record(struct fragments *fragments, struct aw_str bytes, size_t offset,
			  enum aw_tls_flaw *ret_flaw)
{
	struct aw_str rest = { bytes.ptr + offset, bytes.len - offset };
	struct aw_str head = { rest.ptr, rest.len < RECORD_HEAD_LEN ? rest.len : RECORD_HEAD_LEN };
	size_t len, present;

	if (fragments->count == AW_TLS_RECORDS_MAX) {
		*ret_flaw = AW_TLS_FLAW_SIZE;
		return -EBADMSG;
	}
	*ret_flaw = check_record_head(head, fragments->count == 0);
	if (*ret_flaw != AW_TLS_FLAW_NONE)
		return -EBADMSG;
	if (head.len < RECORD_HEAD_LEN)
		return -EAGAIN;
	len = (size_t)((unsigned char)rest.ptr[3] << 8 | (unsigned char)rest.ptr[4]);
	if (offset + RECORD_HEAD_LEN + len > AW_TLS_HELLO_MAX) {
		*ret_flaw = AW_TLS_FLAW_SIZE;
		return -EBADMSG;
	}
	present = rest.len - RECORD_HEAD_LEN < len ? rest.len - RECORD_HEAD_LEN : len;
	fragments->part[fragments->count++] =
		(struct aw_str){ rest.ptr + RECORD_HEAD_LEN, present };
	fragments->announced += len;
	fragments->present += present;
	return (ssize_t)(RECORD_HEAD_LEN + len);
}

static struct cursor cursor_of(const struct fragments *fragments)
{
	return (struct cursor){ .fragments = fragments, .left = fragments->present };
}

/*
 * Check the handshake header as far as it has come, and in the order in which it comes. *ret_len is
 * the whole length of the message, or 0 as long as that is unknown.
 */
static enum aw_tls_flaw read_handshake_head(const struct fragments *fragments, size_t *ret_len)
{
	struct cursor in = cursor_of(fragments);

	if (fragments->present > 0 && get_u8(&in) != HANDSHAKE_CLIENT_HELLO)
		return AW_TLS_FLAW_HANDSHAKE;
	if (fragments->present < HANDSHAKE_HEAD_LEN)
		return AW_TLS_FLAW_NONE;
	*ret_len = (size_t)get_u8(&in) << 16;
	*ret_len |= get_u16(&in);
	*ret_len += HANDSHAKE_HEAD_LEN;
	if (*ret_len > AW_TLS_HELLO_MAX)
		return AW_TLS_FLAW_SIZE;
	/* Records that hold more than the message: nothing may follow a hello before its answer. */
	return fragments->announced > *ret_len ? AW_TLS_FLAW_HANDSHAKE : AW_TLS_FLAW_NONE;
}

/* Collect the fragments of one whole message. Returns the bytes of its records. */
static ssize_t collect(struct fragments *fragments, struct aw_str bytes, enum aw_tls_flaw *ret_flaw)
{
	size_t offset = 0, len = 0;
	ssize_t n;

	*ret_flaw = AW_TLS_FLAW_NONE;
	while (len == 0 || fragments->announced < len) {
		n = add_record(fragments, bytes, offset, ret_flaw);
		if (n < 0)
			return n;
		offset += (size_t)n;
		*ret_flaw = read_handshake_head(fragments, &len);
		if (*ret_flaw != AW_TLS_FLAW_NONE)
			return -EBADMSG;
		if (offset > bytes.len)
			return -EAGAIN;
	}
	return (ssize_t)offset;
}

/* server_name, RFC 6066 section 3: <1..2^16-1> of type 1 = 0 and <1..2^16-1>; here just one. */
static enum aw_tls_flaw read_server_name(struct cursor *in, struct aw_tls_hello *hello)
{
	struct aw_host host;
	size_t len;

	if (get_u16(in) != in->left || get_u8(in) != 0)
		return AW_TLS_FLAW_SERVER_NAME;
	len = get_u16(in);
	if (in->is_cut || len != in->left || len == 0 || len > AW_HOST_NAME_MAX)
		return AW_TLS_FLAW_SERVER_NAME;
	get_bytes(in, hello->server_name, len);
	hello->server_name_len = (uint8_t)len;
	hello->has_server_name = true;
	/* No literals and no trailing dot: RFC 6066. */
	if (aw_host_parse((struct aw_str){ hello->server_name, len }, &host) < 0 ||
	    aw_host_is_literal(&host) || hello->server_name[len - 1] == '.')
		return AW_TLS_FLAW_SERVER_NAME;
	return AW_TLS_FLAW_NONE;
}

/* application_layer_protocol_negotiation, RFC 7301 section 3.1: <2..2^16-1> of <1..255>. */
static enum aw_tls_flaw read_alpn(struct cursor *in, struct aw_tls_hello *hello)
{
	struct cursor check;

	if (get_u16(in) != in->left || in->is_cut || in->left < 2 || in->left > AW_TLS_ALPN_MAX)
		return AW_TLS_FLAW_ALPN;
	check = *in;
	while (check.left > 0 && !check.is_cut) {
		unsigned len = get_u8(&check);

		if (len == 0)
			return AW_TLS_FLAW_ALPN;
		skip(&check, len);
	}
	hello->alpn_len = (uint8_t)in->left;
	get_bytes(in, hello->alpn, in->left);
	return check.is_cut ? AW_TLS_FLAW_ALPN : AW_TLS_FLAW_NONE;
}

/* supported_versions, RFC 8446 section 4.2.1: <2..254> of 2. Reserved values (GREASE) are passed over. */
static enum aw_tls_flaw read_versions(struct cursor *in, struct aw_tls_hello *hello)
{
	unsigned highest = 0;

	if (get_u8(in) != in->left || in->is_cut || in->left == 0 || in->left % 2 != 0)
		return AW_TLS_FLAW_VERSIONS;
	while (in->left > 0) {
		unsigned version = get_u16(in);

		if (version >= VERSION_LOWEST && version <= VERSION_HIGHEST && version > highest)
			highest = version;
	}
	if (highest > 0)
		hello->max_version = (uint16_t)highest;
	return AW_TLS_FLAW_NONE;
}

static enum aw_tls_flaw read_ech(struct cursor *in, struct aw_tls_hello *hello)
{
	(void)in;
	hello->has_ech = true;
	return AW_TLS_FLAW_NONE;
}

static const struct {
	unsigned type;
	enum aw_tls_flaw (*read)(struct cursor *in, struct aw_tls_hello *hello);
} readers[] = {
	{ 0, read_server_name },
	{ 16, read_alpn },
	{ 43, read_versions },
	{ 0xfe0d, read_ech },
};

static enum aw_tls_flaw read_extension(unsigned type, struct cursor *in, struct aw_tls_hello *hello)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(readers); i++)
		if (readers[i].type == type)
			return readers[i].read(in, hello);
	return AW_TLS_FLAW_NONE;
}

static bool is_seen(const uint16_t *seen, size_t count, unsigned type)
{
	for (size_t i = 0; i < count; i++)
		if (seen[i] == type)
			return true;
	return false;
}

static enum aw_tls_flaw read_extensions(struct cursor *in, struct aw_tls_hello *hello)
{
	uint16_t seen[AW_TLS_EXTENSIONS_MAX];
	size_t count = 0;

	if (get_u16(in) != in->left || in->is_cut)
		return AW_TLS_FLAW_EXTENSIONS;
	while (in->left > 0) {
		unsigned type = get_u16(in);
		struct cursor data = take(in, get_u16(in));
		enum aw_tls_flaw flaw;

		if (in->is_cut || count == AW_TLS_EXTENSIONS_MAX || is_seen(seen, count, type))
			return AW_TLS_FLAW_EXTENSIONS;
		seen[count++] = (uint16_t)type;
		flaw = read_extension(type, &data, hello);
		if (flaw != AW_TLS_FLAW_NONE)
			return flaw;
	}
	return AW_TLS_FLAW_NONE;
}

static enum aw_tls_flaw read_body(struct cursor *in, struct aw_tls_hello *hello)
{
	size_t len;

	skip(in, HANDSHAKE_HEAD_LEN);
	hello->legacy_version = hello->max_version = (uint16_t)get_u16(in);
	if (hello->legacy_version >> 8 != VERSION_LOWEST >> 8)
		return AW_TLS_FLAW_BODY;
	skip(in, RANDOM_LEN);
	len = get_u8(in);
	if (len > SESSION_ID_MAX)
		return AW_TLS_FLAW_BODY;
	skip(in, len);
	len = get_u16(in);
	if (len < 2 || len % 2 != 0)
		return AW_TLS_FLAW_BODY;
	skip(in, len);
	len = get_u8(in);
	skip(in, len);
	if (in->is_cut || len == 0)
		return AW_TLS_FLAW_BODY;
	/* Before TLS 1.3 the extensions may be missing altogether. */
	return in->left > 0 ? read_extensions(in, hello) : AW_TLS_FLAW_NONE;
}

ssize_t aw_tls_hello_parse(struct aw_str bytes, struct aw_tls_hello *ret,
			   enum aw_tls_flaw *ret_flaw)
{
	struct fragments fragments = { .count = 0 };
	struct aw_tls_hello hello = { 0 };
	struct cursor in;
	ssize_t len = collect(&fragments, bytes, ret_flaw);

	if (len < 0)
		return *ret_flaw == AW_TLS_FLAW_NOT_TLS ? -EPROTONOSUPPORT : len;
	in = cursor_of(&fragments);
	*ret_flaw = read_body(&in, &hello);
	if (*ret_flaw != AW_TLS_FLAW_NONE)
		return -EBADMSG;
	hello.len = (size_t)len;
	*ret = hello;
	return len;
}

bool aw_tls_alpn_next(const struct aw_tls_hello *hello, size_t *offset, struct aw_str *ret_protocol)
{
	if (*offset >= hello->alpn_len)
		return false;
	*ret_protocol =
		(struct aw_str){ hello->alpn + *offset + 1, (unsigned char)hello->alpn[*offset] };
	*offset += 1 + ret_protocol->len;
	return true;
}

static const char *const flaw_texts[AW_TLS_FLAW_COUNT] = {
	[AW_TLS_FLAW_NONE] = "nothing is wrong",
	[AW_TLS_FLAW_NOT_TLS] = "the connection does not begin with TLS",
	[AW_TLS_FLAW_RECORD] = "a TLS record is empty, too long or of another type",
	[AW_TLS_FLAW_SIZE] = "the ClientHello is too long or in too many records",
	[AW_TLS_FLAW_HANDSHAKE] = "the first TLS message is not a ClientHello alone",
	[AW_TLS_FLAW_BODY] = "the ClientHello is malformed",
	[AW_TLS_FLAW_EXTENSIONS] = "the ClientHello extensions are malformed",
	[AW_TLS_FLAW_SERVER_NAME] = "the server name is not one well-formed host name",
	[AW_TLS_FLAW_ALPN] = "the ALPN list is malformed or too long",
	[AW_TLS_FLAW_VERSIONS] = "the list of TLS versions is malformed",
};

const char *aw_tls_flaw_text(enum aw_tls_flaw flaw)
{
	return (size_t)flaw < AW_ARRAY_LEN(flaw_texts) ? flaw_texts[flaw] : "unknown";
}
