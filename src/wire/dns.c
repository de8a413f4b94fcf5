/*
 * A message (RFC 1035 section 4):
 *
 *	header    id 2, flags 2, counts of questions, answers, authorities, additionals 2 each
 *	question  name, type 2, class 2           name: ( length 1-63, bytes )* 0
 *	record    name, type 2, class 2, ttl 4, data length 2, data
 *
 * The OPT record of EDNS (RFC 6891 section 6.1) has the root name, the payload size in its class, and
 * extended rcode 1, version 1 and flags 2 in its ttl; its data are options: code 2, length 2, data.
 */
#include "wire/dns.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "wire/dns-internal.h"
#include "wire/hostport.h"

/* What is left to read. A read beyond the end sets is_cut and gives zero. */
struct reader {
	const uint8_t *ptr;
	size_t left;
	bool is_cut;
};

static bool has(struct reader *in, size_t n)
{
	if (in->left < n)
		in->is_cut = true;
	return !in->is_cut;
}

static void skip(struct reader *in, size_t n)
{
	if (!has(in, n))
		return;
	in->ptr += n;
	in->left -= n;
}

static uint8_t get_u8(struct reader *in)
{
	uint8_t value;

	if (!has(in, 1))
		return 0;
	value = in->ptr[0];
	skip(in, 1);
	return value;
}

static uint16_t get_u16(struct reader *in)
{
	uint16_t value;

	if (!has(in, 2))
		return 0;
	value = (uint16_t)(in->ptr[0] << 8 | in->ptr[1]);
	skip(in, 2);
	return value;
}

static struct reader reader_of(struct aw_str message)
{
	return (struct reader){ (const uint8_t *)message.ptr, message.len, false };
}

static const struct {
	const char *text;
	int rcode; /* -1: silence */
} flaws[AW_DNS_FLAW_COUNT] = {
	[AW_DNS_FLAW_NONE] = { "nothing is wrong", AW_DNS_NOERROR },
	[AW_DNS_FLAW_SHORT] = { "the message has no whole header", -1 },
	[AW_DNS_FLAW_RESPONSE] = { "the message is a response", -1 },
	[AW_DNS_FLAW_LONG] = { "the message is too long", AW_DNS_FORMERR },
	[AW_DNS_FLAW_OPCODE] = { "the message is not a standard query", AW_DNS_NOTIMP },
	[AW_DNS_FLAW_COUNTS] = { "the record counts are not those of a query", AW_DNS_FORMERR },
	[AW_DNS_FLAW_QUESTION] = { "the question is malformed", AW_DNS_FORMERR },
	[AW_DNS_FLAW_NAME_BYTES] = { "the name has bytes that no host name has", AW_DNS_REFUSED },
	[AW_DNS_FLAW_CLASS] = { "the class is not IN", AW_DNS_REFUSED },
	[AW_DNS_FLAW_OPT] = { "the additional record is not a well-formed OPT", AW_DNS_FORMERR },
	[AW_DNS_FLAW_EDNS_VERSION] = { "the EDNS version is not 0", AW_DNS_BADVERS },
	[AW_DNS_FLAW_TRAILING] = { "bytes follow the last record", AW_DNS_FORMERR },
};

const char *aw_dns_flaw_text(enum aw_dns_flaw flaw)
{
	return (size_t)flaw < AW_ARRAY_LEN(flaws) ? flaws[flaw].text : "unknown";
}

int aw_dns_flaw_rcode(enum aw_dns_flaw flaw)
{
	return (size_t)flaw < AW_ARRAY_LEN(flaws) ? flaws[flaw].rcode : -1;
}

static enum aw_dns_flaw read_header(struct reader *in, struct aw_dns_query *query,
				    uint16_t *ret_additionals)
{
	uint8_t high, low;
	uint16_t questions, answers, authorities;

	query->id = get_u16(in);
	high = get_u8(in);
	low = get_u8(in);
	questions = get_u16(in);
	answers = get_u16(in);
	authorities = get_u16(in);
	*ret_additionals = get_u16(in);
	if (in->is_cut)
		return AW_DNS_FLAW_SHORT;
	if (high & DNS_FLAG_QR)
		return AW_DNS_FLAW_RESPONSE;
	if (high & DNS_FLAG_OPCODE)
		return AW_DNS_FLAW_OPCODE;
	query->is_recursion_desired = high & DNS_FLAG_RD;
	query->is_checking_disabled = low & DNS_FLAG_CD;
	if (high & DNS_FLAG_TC || questions != 1 || answers || authorities || *ret_additionals > 1)
		return AW_DNS_FLAW_COUNTS;
	return AW_DNS_FLAW_NONE;
}

/* Append one label to the dotted name; the last one, of length zero, ends it. */
static enum aw_dns_flaw read_label(struct reader *in, uint8_t len, struct aw_dns_query *query)
{
	/* Above 63 are compression pointers and kinds of labels that were given up. */
	if (len > DNS_LABEL_MAX || !has(in, len))
		return AW_DNS_FLAW_QUESTION;
	/* Dotted length is wire length - 2: what fits the one fits the other. */
	if (query->name_len + (query->name_len > 0) + len > AW_DNS_NAME_MAX)
		return AW_DNS_FLAW_QUESTION;
	if (query->name_len > 0)
		query->name[query->name_len++] = '.';
	memcpy(query->name + query->name_len, in->ptr, len);
	query->name_len = (uint16_t)(query->name_len + len);
	skip(in, len);
	return AW_DNS_FLAW_NONE;
}

static enum aw_dns_flaw read_name(struct reader *in, struct aw_dns_query *query, bool *ret_is_clean)
{
	enum aw_dns_flaw flaw;
	uint8_t len;

	*ret_is_clean = true;
	for (len = get_u8(in); len > 0; len = get_u8(in)) {
		struct aw_str label = { (const char *)in->ptr, len };

		flaw = read_label(in, len, query);
		if (flaw != AW_DNS_FLAW_NONE)
			return flaw;
		if (aw_host_label_check(label) < 0)
			*ret_is_clean = false;
	}
	if (in->is_cut)
		return AW_DNS_FLAW_QUESTION;
	if (query->name_len == 0)
		query->name[query->name_len++] = '.';
	query->name[query->name_len] = '\0';
	return AW_DNS_FLAW_NONE;
}

/* The form of the whole message comes before what the name holds: *ret_is_clean is told apart. */
static enum aw_dns_flaw read_question(struct reader *in, struct aw_dns_query *query,
				      bool *ret_is_clean)
{
	const uint8_t *start = in->ptr;
	enum aw_dns_flaw flaw = read_name(in, query, ret_is_clean);
	uint16_t class;

	if (flaw != AW_DNS_FLAW_NONE)
		return flaw;
	query->type = get_u16(in);
	class = get_u16(in);
	if (in->is_cut)
		return AW_DNS_FLAW_QUESTION;
	query->question_len = (uint16_t)(in->ptr - start);
	memcpy(query->question, start, query->question_len);
	return class == DNS_CLASS_IN ? AW_DNS_FLAW_NONE : AW_DNS_FLAW_CLASS;
}

/* Options are not needed, but bytes that are none are a sign of another use of this message. */
static bool skip_options(struct reader *in, uint16_t len)
{
	struct reader options = { in->ptr, len, false };

	if (!has(in, len))
		return false;
	while (options.left > 0 && !options.is_cut) {
		skip(&options, 2);
		skip(&options, get_u16(&options));
	}
	skip(in, len);
	return !options.is_cut;
}

static enum aw_dns_flaw read_opt(struct reader *in, struct aw_dns_query *query)
{
	uint8_t root = get_u8(in), version;
	uint16_t type = get_u16(in), flags;

	query->payload = get_u16(in);
	skip(in, 1); /* extended rcode: of no meaning in a query */
	version = get_u8(in);
	flags = get_u16(in);
	if (!skip_options(in, get_u16(in)) || in->is_cut || root != 0 || type != AW_DNS_OPT)
		return AW_DNS_FLAW_OPT;
	if (query->payload < AW_DNS_UDP_SMALL)
		query->payload = AW_DNS_UDP_SMALL;
	query->has_edns = true;
	query->is_dnssec_ok = flags & DNS_OPT_FLAG_DO;
	return version == 0 ? AW_DNS_FLAW_NONE : AW_DNS_FLAW_EDNS_VERSION;
}

static enum aw_dns_flaw read_query(struct aw_str message, struct aw_dns_query *query)
{
	struct reader in = reader_of(message);
	uint16_t additionals;
	bool is_clean;
	enum aw_dns_flaw flaw = read_header(&in, query, &additionals);

	if (flaw == AW_DNS_FLAW_NONE && message.len > AW_DNS_QUERY_MAX)
		flaw = AW_DNS_FLAW_LONG;
	if (flaw == AW_DNS_FLAW_NONE)
		flaw = read_question(&in, query, &is_clean);
	if (flaw == AW_DNS_FLAW_NONE && additionals == 1)
		flaw = read_opt(&in, query);
	if (flaw != AW_DNS_FLAW_NONE)
		return flaw;
	if (in.left > 0)
		return AW_DNS_FLAW_TRAILING;
	return is_clean ? AW_DNS_FLAW_NONE : AW_DNS_FLAW_NAME_BYTES;
}

int aw_dns_query_parse(struct aw_str message, struct aw_dns_query *ret, enum aw_dns_flaw *ret_flaw)
{
	struct aw_dns_query query = { .payload = AW_DNS_UDP_SMALL };

	*ret_flaw = read_query(message, &query);
	if (*ret_flaw != AW_DNS_FLAW_NONE)
		return -EBADMSG;
	*ret = query;
	return 0;
}

size_t aw_dns_udp_max(const struct aw_dns_query *query)
{
	return query->payload < AW_DNS_UDP_MAX ? query->payload : AW_DNS_UDP_MAX;
}

int aw_dns_reverse_parse(struct aw_str name, uint8_t ret_address[4])
{
	static const char suffix[] = "in-addr.arpa";
	uint8_t address[4];
	struct aw_str part;
	uint64_t number;

	for (size_t i = 4; i > 0; i--) {
		if (!aw_str_next(&name, '.', &part) || aw_str_to_u64(part, 255, &number) < 0)
			return -EBADMSG;
		address[i - 1] = (uint8_t)number;
	}
	if (name.len == sizeof(suffix) && name.ptr[name.len - 1] == '.')
		name.len--;
	if (!aw_host_is_same(name, AW_STR(suffix)))
		return -EBADMSG;
	memcpy(ret_address, address, sizeof(address));
	return 0;
}

ssize_t aw_dns_frame_parse(struct aw_str bytes, struct aw_str *ret_message)
{
	struct reader in = reader_of(bytes);
	uint16_t len = get_u16(&in);

	if (in.is_cut)
		return -EAGAIN;
	if (len < AW_DNS_HEADER_LEN || len > AW_DNS_QUERY_MAX)
		return -EBADMSG;
	if (in.left < len)
		return -EAGAIN;
	*ret_message = (struct aw_str){ (const char *)in.ptr, len };
	return (ssize_t)len + 2;
}

void aw_dns_frame_write(size_t message_len, uint8_t out[2])
{
	out[0] = (uint8_t)(message_len >> 8);
	out[1] = (uint8_t)message_len;
}
