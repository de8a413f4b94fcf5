/*
 * Answers. The format is in dns.c; names of records are a pointer to the question (0xc00c), the one
 * use of compression. An Extended DNS Error (RFC 8914) is an option of the OPT record: 15, length,
 * info code 2, text. A client without EDNS gets neither.
 */
#include <errno.h>
#include <string.h>

#include "wire/dns-internal.h"
#include "wire/dns.h"
#include "wire/hostport.h"

#define RECORD_HEAD_LEN 12 /* pointer, type, class, ttl, data length */
#define POINTER_TO_QUESTION (0xc000 | AW_DNS_HEADER_LEN)
#define ANSWERS_OFFSET 6
#define ADDITIONALS_OFFSET 10

/* Room is asked for before anything is put. */
struct writer {
	uint8_t *out;
	size_t len;
	size_t max;
};

static bool has_room(const struct writer *w, size_t n)
{
	return n <= w->max - w->len;
}

static void put_bytes(struct writer *w, const void *bytes, size_t len)
{
	if (len > 0)
		memcpy(w->out + w->len, bytes, len);
	w->len += len;
}

static void put_u8(struct writer *w, unsigned value)
{
	w->out[w->len++] = (uint8_t)value;
}

static void put_u16(struct writer *w, unsigned value)
{
	put_u8(w, value >> 8);
	put_u8(w, value);
}

static void put_u32(struct writer *w, uint32_t value)
{
	put_u16(w, value >> 16);
	put_u16(w, value);
}

static void set_u16(struct writer *w, size_t offset, unsigned value)
{
	w->out[offset] = (uint8_t)(value >> 8);
	w->out[offset + 1] = (uint8_t)value;
}

static void put_header(struct writer *w, const struct aw_dns_query *query, unsigned rcode)
{
	put_u16(w, query->id);
	put_u8(w, DNS_FLAG_QR | (query->is_recursion_desired ? DNS_FLAG_RD : 0u));
	put_u8(w, DNS_FLAG_RA | (query->is_checking_disabled ? DNS_FLAG_CD : 0u) | (rcode & 15));
	put_u16(w, query->question_len > 0);
	put_u16(w, 0);
	put_u16(w, 0);
	put_u16(w, 0);
	put_bytes(w, query->question, query->question_len);
}

static void put_record(struct writer *w, enum aw_dns_type type, uint32_t ttl, const void *data,
		       size_t len)
{
	put_u16(w, POINTER_TO_QUESTION);
	put_u16(w, type);
	put_u16(w, DNS_CLASS_IN);
	put_u32(w, ttl);
	put_u16(w, (unsigned)len);
	put_bytes(w, data, len);
}

/* Write a dotted name in wire form. Returns its length, or -EINVAL. */
static int encode_name(struct aw_str name, uint8_t out[DNS_WIRE_NAME_MAX])
{
	struct aw_str label;
	size_t len = 0;

	if (aw_host_name_check(name) < 0)
		return -EINVAL;
	if (name.ptr[name.len - 1] == '.')
		name.len--;
	while (aw_str_next(&name, '.', &label)) {
		out[len++] = (uint8_t)label.len;
		memcpy(out + len, label.ptr, label.len);
		len += label.len;
	}
	out[len++] = 0;
	return (int)len;
}

/* OPT with as much of the error as there is room for: the code matters more than its text. */
static void put_opt(struct writer *w, const struct aw_dns_query *query, unsigned rcode,
		    const struct aw_dns_answer *answer)
{
	bool has_error = answer != NULL && answer->has_error && has_room(w, DNS_OPT_LEN + 6);
	size_t text = has_error ? answer->error_text.len : 0;

	if (text > AW_DNS_ERROR_TEXT_MAX || !has_room(w, DNS_OPT_LEN + 6 + text))
		text = 0;
	put_u8(w, 0);
	put_u16(w, AW_DNS_OPT);
	put_u16(w, AW_DNS_UDP_MAX);
	put_u8(w, rcode >> 4);
	put_u8(w, 0);
	put_u16(w, query->is_dnssec_ok ? DNS_OPT_FLAG_DO : 0u);
	put_u16(w, has_error ? (unsigned)(6 + text) : 0u);
	set_u16(w, ADDITIONALS_OFFSET, 1);
	if (!has_error)
		return;
	put_u16(w, DNS_OPTION_EXTENDED_ERROR);
	put_u16(w, (unsigned)(2 + text));
	put_u16(w, answer->error);
	put_bytes(w, answer->error_text.ptr, text);
}

/* All records or none: a client that needs them all asks again over TCP. */
static void put_records(struct writer *w, const struct aw_dns_answer *answer,
			const uint8_t *pointer, size_t pointer_len)
{
	size_t count = answer->address_count + (pointer_len > 0);
	size_t needed = answer->address_count * (RECORD_HEAD_LEN + 4) +
			(pointer_len > 0 ? RECORD_HEAD_LEN + pointer_len : 0);

	if (!has_room(w, needed)) {
		w->out[2] |= DNS_FLAG_TC;
		return;
	}
	for (size_t i = 0; i < answer->address_count; i++)
		put_record(w, AW_DNS_A, answer->ttl, answer->addresses[i], 4);
	if (pointer_len > 0)
		put_record(w, AW_DNS_PTR, answer->ttl, pointer, pointer_len);
	set_u16(w, ANSWERS_OFFSET, (unsigned)count);
}

ssize_t aw_dns_answer_write(const struct aw_dns_query *query, const struct aw_dns_answer *answer,
			    uint8_t *out, size_t max)
{
	struct writer w = { out, 0, max };
	uint8_t pointer[DNS_WIRE_NAME_MAX];
	int pointer_len = 0;

	if (max < AW_DNS_UDP_SMALL || max > UINT16_MAX ||
	    answer->address_count > AW_DNS_ADDRESSES_MAX)
		return -EINVAL;
	if (answer->pointer.len > 0)
		pointer_len = encode_name(answer->pointer, pointer);
	if (pointer_len < 0)
		return pointer_len;
	put_header(&w, query, answer->rcode);
	w.max -= query->has_edns ? DNS_OPT_LEN : 0;
	put_records(&w, answer, pointer, (size_t)pointer_len);
	w.max = max;
	if (query->has_edns)
		put_opt(&w, query, answer->rcode, answer);
	return (ssize_t)w.len;
}

size_t aw_dns_flaw_write(struct aw_str message, enum aw_dns_flaw flaw, uint8_t *out)
{
	int rcode = aw_dns_flaw_rcode(flaw);
	struct aw_dns_query query = { 0 };
	struct writer w = { out, 0, AW_DNS_HEADER_LEN + DNS_OPT_LEN };

	if (rcode < 0 || message.len < AW_DNS_HEADER_LEN)
		return 0;
	query.id = (uint16_t)((uint8_t)message.ptr[0] << 8 | (uint8_t)message.ptr[1]);
	query.is_recursion_desired = message.ptr[2] & DNS_FLAG_RD;
	put_header(&w, &query, (unsigned)rcode);
	if (rcode > 15)
		put_opt(&w, &query, (unsigned)rcode, NULL);
	return w.len;
}
