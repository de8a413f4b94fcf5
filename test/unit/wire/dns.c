#include "wire/dns.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

#define ID "\x12\x34"
#define ONE_QUESTION "\0\1\0\0\0\0\0\0"
#define ONE_QUESTION_AND_OPT "\0\1\0\0\0\0\0\1"
#define PYPI "\4PyPI\3org\0"
#define A_IN "\0\1\0\1"
/* Payload 1400, version 0, DO, one option (cookie) of two bytes. */
#define OPT "\0\0\x29\x05\x78\0\0\x80\0\0\6\0\x0a\0\2ab"
#define LABEL_63 "\77abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"
#define LABEL_61 "\75abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghi"

static enum aw_dns_flaw flaw_of(struct aw_str message)
{
	struct aw_dns_query query = { .id = 7 };
	enum aw_dns_flaw flaw = AW_DNS_FLAW_NONE;

	assert_int_equal(aw_dns_query_parse(message, &query, &flaw), -EBADMSG);
	assert_int_equal(query.id, 7);
	return flaw;
}

static struct aw_dns_query accept(struct aw_str message)
{
	struct aw_dns_query query;
	enum aw_dns_flaw flaw;

	if (aw_dns_query_parse(message, &query, &flaw) < 0)
		fail_msg("%s", aw_dns_flaw_text(flaw));
	return query;
}

static void reads_a_query_and_keeps_its_case(void **state)
{
	struct aw_dns_query q = accept(AW_STR(ID "\1\x10" ONE_QUESTION PYPI A_IN));

	(void)state;
	assert_int_equal(q.id, 0x1234);
	assert_true(q.is_recursion_desired);
	assert_true(q.is_checking_disabled);
	assert_string_equal(q.name, "PyPI.org");
	assert_int_equal(q.name_len, 8);
	assert_int_equal(q.type, AW_DNS_A);
	assert_memory_equal(q.question, PYPI A_IN, q.question_len);
	assert_int_equal(q.question_len, 14);
	assert_false(q.has_edns);
	assert_int_equal(q.payload, 512);
	assert_int_equal(aw_dns_udp_max(&q), 512);
	q = accept(AW_STR(ID "\0\0" ONE_QUESTION PYPI "\0\x1c\0\1"));
	assert_false(q.is_recursion_desired);
	assert_int_equal(q.type, AW_DNS_AAAA);
}

static void reads_the_root_name(void **state)
{
	struct aw_dns_query q = accept(AW_STR(ID "\1\0" ONE_QUESTION "\0" A_IN));

	(void)state;
	assert_string_equal(q.name, ".");
}

static void reads_edns(void **state)
{
	struct aw_dns_query q = accept(AW_STR(ID "\1\0" ONE_QUESTION_AND_OPT PYPI A_IN OPT));

	(void)state;
	assert_true(q.has_edns);
	assert_true(q.is_dnssec_ok);
	assert_int_equal(q.payload, 1400);
	assert_int_equal(aw_dns_udp_max(&q), AW_DNS_UDP_MAX);
	q = accept(AW_STR(ID "\1\0" ONE_QUESTION_AND_OPT PYPI A_IN "\0\0\x29\0\1\0\0\0\0\0\0"));
	assert_false(q.is_dnssec_ok);
	assert_int_equal(q.payload, 512);
}

static void never_answers_an_answer(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR(ID "\x81\x80" ONE_QUESTION PYPI A_IN)),
			 AW_DNS_FLAW_RESPONSE);
	assert_int_equal(aw_dns_flaw_rcode(AW_DNS_FLAW_RESPONSE), -1);
}

static void refuses_messages_without_a_whole_header(void **state)
{
	static const char header[] = ID "\1\0" ONE_QUESTION;

	(void)state;
	for (size_t n = 0; n < AW_DNS_HEADER_LEN; n++)
		assert_int_equal(flaw_of((struct aw_str){ header, n }), AW_DNS_FLAW_SHORT);
	assert_int_equal(aw_dns_flaw_rcode(AW_DNS_FLAW_SHORT), -1);
}

static void refuses_every_cut_of_a_query(void **state)
{
	static const char query[] = ID "\1\0" ONE_QUESTION_AND_OPT PYPI A_IN OPT;

	(void)state;
	for (size_t n = AW_DNS_HEADER_LEN; n < sizeof(query) - 1; n++) {
		enum aw_dns_flaw flaw = flaw_of((struct aw_str){ query, n });

		assert_true(flaw == AW_DNS_FLAW_QUESTION || flaw == AW_DNS_FLAW_OPT);
	}
}

static void refuses_other_opcodes(void **state)
{
	(void)state;
	for (int opcode = 1; opcode < 16; opcode++) {
		char message[] = ID "\1\0" ONE_QUESTION PYPI A_IN;

		message[2] = (char)(opcode << 3);
		assert_int_equal(flaw_of((struct aw_str){ message, sizeof(message) - 1 }),
				 AW_DNS_FLAW_OPCODE);
	}
	assert_int_equal(aw_dns_flaw_rcode(AW_DNS_FLAW_OPCODE), AW_DNS_NOTIMP);
}

static void refuses_counts_that_no_query_has(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR(ID "\1\0\0\0\0\0\0\0\0\0")), AW_DNS_FLAW_COUNTS);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0\0\2\0\0\0\0\0\0" PYPI A_IN PYPI A_IN)),
			 AW_DNS_FLAW_COUNTS);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0\0\1\0\1\0\0\0\0" PYPI A_IN)), AW_DNS_FLAW_COUNTS);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0\0\1\0\0\0\1\0\0" PYPI A_IN)), AW_DNS_FLAW_COUNTS);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0\0\1\0\0\0\0\0\2" PYPI A_IN OPT OPT)),
			 AW_DNS_FLAW_COUNTS);
	assert_int_equal(flaw_of(AW_STR(ID "\3\0" ONE_QUESTION PYPI A_IN)), AW_DNS_FLAW_COUNTS);
}

static void refuses_compression_and_unknown_labels(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION "\xc0\x0c" A_IN)),
			 AW_DNS_FLAW_QUESTION);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION "\4PyPI\xc0\x0c" A_IN)),
			 AW_DNS_FLAW_QUESTION);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION "\x41\x08" PYPI A_IN)),
			 AW_DNS_FLAW_QUESTION);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION "\x80" PYPI A_IN)),
			 AW_DNS_FLAW_QUESTION);
}

static void a_label_has_at_most_63_octets(void **state)
{
	static const int lengths[] = { 64, 127, 128, 192, 255 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(lengths); i++) {
		char message[12 + 1 + 255 + 5] = ID "\1\0" ONE_QUESTION;
		size_t len = (size_t)lengths[i];

		/* All its bytes are there, and they are clean. */
		message[12] = (char)len;
		memset(message + 13, 'a', len);
		memcpy(message + 13 + len, "\0" A_IN, 5);
		assert_int_equal(flaw_of((struct aw_str){ message, 18 + len }),
				 AW_DNS_FLAW_QUESTION);
	}
}

static void a_name_has_at_most_255_octets(void **state)
{
	struct aw_dns_query q = accept(
		AW_STR(ID "\1\0" ONE_QUESTION LABEL_63 LABEL_63 LABEL_63 LABEL_61 "\0" A_IN));

	(void)state;
	assert_int_equal(q.name_len, AW_DNS_NAME_MAX);
	assert_int_equal(q.question_len, AW_DNS_QUESTION_MAX);
	assert_int_equal(
		flaw_of(AW_STR(ID "\1\0" ONE_QUESTION LABEL_63 LABEL_63 LABEL_63 "\76"
				  "ab"
				  "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh"
				  "\0" A_IN)),
		AW_DNS_FLAW_QUESTION);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION LABEL_63 LABEL_63 LABEL_63 LABEL_61
					   "\1a\0" A_IN)),
			 AW_DNS_FLAW_QUESTION);
}

static void reports_bytes_that_no_host_name_has(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		char message[] = ID "\1\0" ONE_QUESTION "\3a?b\3com\0" A_IN;
		struct aw_str bytes = { message, sizeof(message) - 1 };
		bool is_clean = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || c == '-' || c == '_';

		message[14] = (char)c;
		if (is_clean)
			assert_int_equal(accept(bytes).name[1], c);
		else
			assert_int_equal(flaw_of(bytes), AW_DNS_FLAW_NAME_BYTES);
	}
	assert_int_equal(aw_dns_flaw_rcode(AW_DNS_FLAW_NAME_BYTES), AW_DNS_REFUSED);
}

static void refuses_other_classes(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION PYPI "\0\1\0\3")),
			 AW_DNS_FLAW_CLASS);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION PYPI "\0\1\0\xff")),
			 AW_DNS_FLAW_CLASS);
}

static void refuses_additional_records_that_are_no_opt(void **state)
{
	static const struct aw_str records[] = {
		AW_STR("\0\0\xfa\0\xff\0\0\0\0\0\0"),         /* TSIG */
		AW_STR("\1a\0\x29\5\0\0\0\0\0\0"),            /* OPT with a name */
		AW_STR("\xc0\x0c\0\x29\5\0\0\0\0\0\0"),       /* a compressed one */
		AW_STR("\0\0\x29\5\0\0\0\0\0\0\4\0\x0a\0"),   /* data beyond the end */
		AW_STR("\0\0\x29\5\0\0\0\0\0\0\4\0\x0a\0\1"), /* an option beyond the data */
		AW_STR("\0\0\x29\5\0\0\0\0\0\0\3\0\x0a\0"),   /* half an option */
	};
	char message[128] = ID "\1\0" ONE_QUESTION_AND_OPT PYPI A_IN;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(records); i++) {
		memcpy(message + 26, records[i].ptr, records[i].len);
		assert_int_equal(flaw_of((struct aw_str){ message, 26 + records[i].len }),
				 AW_DNS_FLAW_OPT);
	}
}

static void refuses_later_edns_versions_by_their_own_code(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION_AND_OPT PYPI A_IN
					   "\0\0\x29\5\0\0\1\0\0\0\0")),
			 AW_DNS_FLAW_EDNS_VERSION);
	assert_int_equal(aw_dns_flaw_rcode(AW_DNS_FLAW_EDNS_VERSION), AW_DNS_BADVERS);
}

static void refuses_bytes_behind_the_last_record(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION PYPI A_IN "x")),
			 AW_DNS_FLAW_TRAILING);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION_AND_OPT PYPI A_IN OPT "\0")),
			 AW_DNS_FLAW_TRAILING);
	assert_int_equal(flaw_of(AW_STR(ID "\1\0" ONE_QUESTION PYPI A_IN OPT)),
			 AW_DNS_FLAW_TRAILING);
}

static void refuses_messages_over_their_maximum(void **state)
{
	static char message[AW_DNS_QUERY_MAX + 1] = ID "\1\0" ONE_QUESTION PYPI A_IN;

	(void)state;
	assert_int_equal(flaw_of((struct aw_str){ message, AW_DNS_QUERY_MAX }),
			 AW_DNS_FLAW_TRAILING);
	assert_int_equal(flaw_of((struct aw_str){ message, AW_DNS_QUERY_MAX + 1 }),
			 AW_DNS_FLAW_LONG);
}

static void every_flaw_has_a_text(void **state)
{
	(void)state;
	for (int flaw = 0; flaw < AW_DNS_FLAW_COUNT; flaw++)
		assert_true(strlen(aw_dns_flaw_text((enum aw_dns_flaw)flaw)) > 5);
	assert_string_equal(aw_dns_flaw_text(AW_DNS_FLAW_COUNT), "unknown");
	assert_int_equal(aw_dns_flaw_rcode(AW_DNS_FLAW_COUNT), -1);
}

static void reads_reverse_names(void **state)
{
	static const uint8_t expected[4] = { 198, 18, 0, 7 };
	uint8_t address[4];

	(void)state;
	assert_int_equal(aw_dns_reverse_parse(AW_STR("7.0.18.198.in-addr.arpa"), address), 0);
	assert_memory_equal(address, expected, 4);
	memset(address, 0, 4);
	assert_int_equal(aw_dns_reverse_parse(AW_STR("7.0.18.198.IN-ADDR.arpa."), address), 0);
	assert_memory_equal(address, expected, 4);
}

static void refuses_other_reverse_names(void **state)
{
	static const char *const names[] = {
		"",
		"0.18.198.in-addr.arpa",
		"1.7.0.18.198.in-addr.arpa",
		"256.0.18.198.in-addr.arpa",
		"07.0.18.198.in-addr.arpa",
		"7.0.18.198.ip6.arpa",
		"7.0.18.198.in-addr.arpa..",
		"7.0.18.198.in-addr.arpax",
		"7..18.198.in-addr.arpa",
		"7.0.18.198",
		"7.0.18.198.",
		"7.0.18.198.x.in-addr.arpa",
	};
	uint8_t address[4] = { 9 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++)
		assert_int_equal(aw_dns_reverse_parse(aw_str_from(names[i]), address), -EBADMSG);
	assert_int_equal(address[0], 9);
}

static void frames_are_taken_when_they_are_whole(void **state)
{
	static const char frames[] = "\0\14" ID "\1\0" ONE_QUESTION "\0\14";
	struct aw_str message;

	(void)state;
	for (size_t n = 0; n < 14; n++)
		assert_int_equal(aw_dns_frame_parse((struct aw_str){ frames, n }, &message),
				 -EAGAIN);
	assert_int_equal(aw_dns_frame_parse(AW_STR(frames), &message), 14);
	assert_int_equal(message.len, 12);
	assert_ptr_equal(message.ptr, frames + 2);
}

static void refuses_frames_too_short_or_too_long(void **state)
{
	struct aw_str message;
	uint8_t out[2];

	(void)state;
	assert_int_equal(aw_dns_frame_parse(AW_STR("\0\13"), &message), -EBADMSG);
	assert_int_equal(aw_dns_frame_parse(AW_STR("\0\0"), &message), -EBADMSG);
	assert_int_equal(aw_dns_frame_parse(AW_STR("\x10\1"), &message), -EBADMSG);
	assert_int_equal(aw_dns_frame_parse(AW_STR("\x10\0"), &message), -EAGAIN);
	aw_dns_frame_write(0x1234, out);
	assert_memory_equal(out, "\x12\x34", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_query_and_keeps_its_case),
		cmocka_unit_test(reads_the_root_name),
		cmocka_unit_test(reads_edns),
		cmocka_unit_test(never_answers_an_answer),
		cmocka_unit_test(refuses_messages_without_a_whole_header),
		cmocka_unit_test(refuses_every_cut_of_a_query),
		cmocka_unit_test(refuses_other_opcodes),
		cmocka_unit_test(refuses_counts_that_no_query_has),
		cmocka_unit_test(refuses_compression_and_unknown_labels),
		cmocka_unit_test(a_label_has_at_most_63_octets),
		cmocka_unit_test(a_name_has_at_most_255_octets),
		cmocka_unit_test(reports_bytes_that_no_host_name_has),
		cmocka_unit_test(refuses_other_classes),
		cmocka_unit_test(refuses_additional_records_that_are_no_opt),
		cmocka_unit_test(refuses_later_edns_versions_by_their_own_code),
		cmocka_unit_test(refuses_bytes_behind_the_last_record),
		cmocka_unit_test(refuses_messages_over_their_maximum),
		cmocka_unit_test(every_flaw_has_a_text),
		cmocka_unit_test(reads_reverse_names),
		cmocka_unit_test(refuses_other_reverse_names),
		cmocka_unit_test(frames_are_taken_when_they_are_whole),
		cmocka_unit_test(refuses_frames_too_short_or_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
