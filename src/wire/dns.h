/*
 * dns - one query in, one answer out (RFC 1035, EDNS RFC 6891, Extended DNS Errors RFC 8914).
 *
 *	if (aw_dns_query_parse(message, &query, &flaw) < 0)
 *		n = aw_dns_flaw_write(message, flaw, out, sizeof(out));     0 = stay silent
 *	else
 *		n = aw_dns_answer_write(&query, &answer, aw_dns_udp_max(&query), out, sizeof(out));
 *
 * A query has QR 0, opcode 0, TC 0, exactly one question of class IN without compression, no answer
 * or authority records, at most one additional record, which is an OPT, and nothing behind it. The
 * question is echoed byte for byte, because clients mix its case and compare (0x20). Never answers an
 * answer. No I/O, no policy, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

#define AW_DNS_HEADER_LEN 12
#define AW_DNS_NAME_MAX 253     /* dotted, without the last dot */
#define AW_DNS_QUESTION_MAX 259 /* 255 octets of name, type, class */
#define AW_DNS_QUERY_MAX 4096   /* longer messages are malformed */
#define AW_DNS_UDP_SMALL 512    /* without EDNS */
#define AW_DNS_UDP_MAX 1232     /* our own limit: never fragments */
#define AW_DNS_ADDRESSES_MAX 64 /* in one answer */
#define AW_DNS_ERROR_TEXT_MAX 120

enum aw_dns_type {
	AW_DNS_A = 1,
	AW_DNS_PTR = 12,
	AW_DNS_AAAA = 28,
	AW_DNS_OPT = 41,
	AW_DNS_SVCB = 64,
	AW_DNS_HTTPS = 65,
};

enum aw_dns_rcode {
	AW_DNS_NOERROR = 0,
	AW_DNS_FORMERR = 1,
	AW_DNS_SERVFAIL = 2,
	AW_DNS_NXDOMAIN = 3,
	AW_DNS_NOTIMP = 4,
	AW_DNS_REFUSED = 5,
	AW_DNS_BADVERS = 16, /* needs EDNS */
};

/* RFC 8914 info codes that a gate has use for. */
enum aw_dns_error {
	AW_DNS_ERROR_OTHER = 0,
	AW_DNS_ERROR_BLOCKED = 15,
	AW_DNS_ERROR_FILTERED = 17,
	AW_DNS_ERROR_PROHIBITED = 18,
	AW_DNS_ERROR_NOT_SUPPORTED = 21,
	AW_DNS_ERROR_NETWORK = 23,
};

enum aw_dns_flaw {
	AW_DNS_FLAW_NONE,
	AW_DNS_FLAW_SHORT,        /* no whole header: silence */
	AW_DNS_FLAW_RESPONSE,     /* QR is 1: silence, or two servers would talk for ever */
	AW_DNS_FLAW_LONG,         /* over AW_DNS_QUERY_MAX: FORMERR */
	AW_DNS_FLAW_OPCODE,       /* not a standard query: NOTIMP */
	AW_DNS_FLAW_COUNTS,       /* questions != 1, or records that no query has: FORMERR */
	AW_DNS_FLAW_QUESTION,     /* cut, compressed, over-long or unknown kind of label: FORMERR */
	AW_DNS_FLAW_NAME_BYTES,   /* a label with bytes outside letters, digits, - and _: REFUSED */
	AW_DNS_FLAW_CLASS,        /* not IN: REFUSED */
	AW_DNS_FLAW_OPT,          /* malformed or another record: FORMERR */
	AW_DNS_FLAW_EDNS_VERSION, /* EDNS version above 0: BADVERS */
	AW_DNS_FLAW_TRAILING,     /* bytes behind the last record: FORMERR */
	AW_DNS_FLAW_COUNT,
};

struct aw_dns_query {
	uint16_t id;
	uint16_t type;
	bool is_recursion_desired;
	bool is_checking_disabled;
	bool has_edns;
	bool is_dnssec_ok;
	uint16_t payload; /* what the client takes over UDP: at least 512 */
	uint16_t question_len;
	uint16_t name_len;
	char name[AW_DNS_NAME_MAX + 1]; /* dotted, case as sent, NUL-terminated; root is "." */
	uint8_t question[AW_DNS_QUESTION_MAX]; /* as sent: name, type, class */
};

struct aw_dns_answer {
	enum aw_dns_rcode rcode;       /* NOERROR without records is NODATA */
	uint32_t ttl;                  /* seconds, of every record */
	const uint8_t (*addresses)[4]; /* A records, network order */
	size_t address_count;          /* <= AW_DNS_ADDRESSES_MAX */
	struct aw_str pointer;         /* PTR record to this dotted name; empty: none */
	bool has_error;                /* Extended DNS Error, sent only to clients with EDNS */
	enum aw_dns_error error;
	struct aw_str error_text; /* UTF-8, left out if over AW_DNS_ERROR_TEXT_MAX bytes */
};

/* 0, or -EBADMSG with the flaw. */
int aw_dns_query_parse(struct aw_str message, struct aw_dns_query *ret, enum aw_dns_flaw *ret_flaw);

/* The largest answer that fits a datagram for this client: 512 to AW_DNS_UDP_MAX. */
size_t aw_dns_udp_max(const struct aw_dns_query *query);

/*
 * Write the answer into @out, at most @max bytes of it; what has no room is left out and TC set: the
 * records first, then the error text. @max >= AW_DNS_UDP_SMALL and <= 65535. Returns the length, or
 * -EINVAL for an answer that cannot be written (a malformed pointer name, too many addresses).
 */
ssize_t aw_dns_answer_write(const struct aw_dns_query *query, const struct aw_dns_answer *answer,
			    uint8_t *out, size_t max);

/* Answer a message that was no query: a header alone (@out >= 23 bytes). 0 = nothing may be sent. */
size_t aw_dns_flaw_write(struct aw_str message, enum aw_dns_flaw flaw, uint8_t *out);

const char *aw_dns_flaw_text(enum aw_dns_flaw flaw);
int aw_dns_flaw_rcode(enum aw_dns_flaw flaw); /* enum aw_dns_rcode, or -1 for silence */

/* "7.0.18.198.in-addr.arpa" -> 198.18.0.7 (any case, one trailing dot allowed). 0, or -EBADMSG. */
int aw_dns_reverse_parse(struct aw_str name, uint8_t ret_address[4]);

/*
 * DNS over TCP: two bytes of length in front (RFC 7766). Returns the bytes of the first frame and the
 * message in it, -EAGAIN when it is not complete, -EBADMSG when it is shorter than a header or longer
 * than AW_DNS_QUERY_MAX.
 */
ssize_t aw_dns_frame_parse(struct aw_str bytes, struct aw_str *ret_message);
void aw_dns_frame_write(size_t message_len, uint8_t out[2]); /* @message_len <= 65535 */
