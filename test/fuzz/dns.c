/*
 * DNS queries: an accepted one has a clean name that encodes to the question that is echoed; every
 * answer fits, echoes the question, and is refused as a response by the same parser (no loops).
 */
#include "wire/dns.h"

#include <stdlib.h>

#include "fuzz.h"
#include "wire/hostport.h"

static void hold_query(struct aw_str message, const struct aw_dns_query *query)
{
	size_t at = 0, wire = 0;

	assert(message.len <= AW_DNS_QUERY_MAX && query->name_len == strlen(query->name));
	assert(query->question_len <= AW_DNS_QUESTION_MAX && query->payload >= AW_DNS_UDP_SMALL);
	assert(aw_dns_udp_max(query) >= AW_DNS_UDP_SMALL &&
	       aw_dns_udp_max(query) <= AW_DNS_UDP_MAX);
	assert(memcmp(query->question, message.ptr + AW_DNS_HEADER_LEN, query->question_len) == 0);
	if (strcmp(query->name, ".") == 0) {
		assert(query->question[0] == 0 && query->question_len == 5);
		return;
	}
	assert(aw_host_name_check((struct aw_str){ query->name, query->name_len }) == 0);
	while (at < query->name_len) {
		size_t len = strcspn(query->name + at, ".");

		assert(query->question[wire] == len);
		assert(memcmp(query->question + wire + 1, query->name + at, len) == 0);
		wire += len + 1;
		at += len + 1;
	}
	assert(query->question[wire] == 0 && query->question_len == wire + 5);
}

static void hold_answer(const struct aw_dns_query *query, const struct aw_dns_answer *answer,
			size_t max)
{
	uint8_t *out = malloc(max);
	struct aw_dns_query again;
	enum aw_dns_flaw flaw;
	size_t records = answer->address_count + (answer->pointer.len > 0);
	ssize_t n;

	if (out == NULL)
		abort();
	n = aw_dns_answer_write(query, answer, out, max);
	assert(n >= AW_DNS_HEADER_LEN + query->question_len && (size_t)n <= max);
	assert(out[0] == query->id >> 8 && out[1] == (query->id & 0xff));
	assert((out[3] & 15) == (answer->rcode & 15));
	assert(memcmp(out + AW_DNS_HEADER_LEN, query->question, query->question_len) == 0);
	assert((out[2] & 2) ? out[7] == 0 : out[7] == records);
	assert(out[11] == query->has_edns);
	assert(aw_dns_query_parse(fuzz_str(out, (size_t)n), &again, &flaw) == -EBADMSG);
	assert(flaw == AW_DNS_FLAW_RESPONSE);
	free(out);
}

static void hold_answers(const struct aw_dns_query *query)
{
	static const uint8_t addresses[AW_DNS_ADDRESSES_MAX][4] = { { 198, 18, 0, 7 } };
	size_t max = aw_dns_udp_max(query);
	struct aw_dns_answer answer = { .addresses = addresses,
					.address_count = AW_DNS_ADDRESSES_MAX,
					.has_error = true,
					.error_text = AW_STR("not granted") };

	hold_answer(query, &answer, max);
	hold_answer(query, &answer, UINT16_MAX);
	answer.address_count = query->id % 40;
	hold_answer(query, &answer, max);
	answer = (struct aw_dns_answer){ .rcode = AW_DNS_NXDOMAIN };
	hold_answer(query, &answer, max);
	if (strcmp(query->name, ".") != 0)
		answer.pointer = aw_str_from(query->name);
	hold_answer(query, &answer, max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str message = fuzz_str(data, size), framed;
	struct aw_dns_query query, again;
	enum aw_dns_flaw flaw = AW_DNS_FLAW_NONE;
	uint8_t out[AW_DNS_HEADER_LEN + 11], address[4];
	ssize_t n = aw_dns_frame_parse(message, &framed);

	assert(n < 0 || ((size_t)n == framed.len + 2 && fuzz_is_inside(framed, message)));
	if (aw_dns_query_parse(message, &query, &flaw) == 0) {
		hold_query(message, &query);
		hold_answers(&query);
		(void)aw_dns_reverse_parse(aw_str_from(query.name), address);
		return 0;
	}
	assert(flaw != AW_DNS_FLAW_NONE);
	n = (ssize_t)aw_dns_flaw_write(message, flaw, out);
	assert((n == 0) == (flaw == AW_DNS_FLAW_SHORT || flaw == AW_DNS_FLAW_RESPONSE));
	if (n == 0)
		return 0;
	assert(memcmp(out, data, 2) == 0 && (size_t)n <= sizeof(out));
	assert(aw_dns_query_parse(fuzz_str(out, (size_t)n), &again, &flaw) == -EBADMSG);
	assert(flaw == AW_DNS_FLAW_RESPONSE);
	return 0;
}
