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

#define HEADER_AND_QUESTION "\x12\x34\1\0\0\1\0\0\0\0\0\0\4PyPI\3org\0\0\1\0\1"
#define WITH_OPT "\x12\x34\1\0\0\1\0\0\0\0\0\1\4PyPI\3org\0\0\1\0\1\0\0\x29\5\0\0\0\x80\0\0\0"

static const uint8_t addresses[AW_DNS_ADDRESSES_MAX + 1][4] = { { 198, 18, 0, 7 },
								{ 198, 18, 0, 8 } };

static struct aw_dns_query query_of(struct aw_str message)
{
	struct aw_dns_query query;
	enum aw_dns_flaw flaw;

	assert_int_equal(aw_dns_query_parse(message, &query, &flaw), 0);
	return query;
}

static void assert_answered(struct aw_str message, const struct aw_dns_answer *answer,
			    struct aw_str expected)
{
	struct aw_dns_query query = query_of(message);
	uint8_t out[AW_DNS_UDP_MAX];
	ssize_t n = aw_dns_answer_write(&query, answer, out, aw_dns_udp_max(&query));

	assert_int_equal(n, (ssize_t)expected.len);
	assert_memory_equal(out, expected.ptr, expected.len);
}

static void gives_addresses_with_the_question_as_it_was_asked(void **state)
{
	const struct aw_dns_answer answer = { .ttl = 5,
					      .addresses = addresses,
					      .address_count = 2 };

	(void)state;
	assert_answered(AW_STR(HEADER_AND_QUESTION), &answer,
			AW_STR("\x12\x34\x81\x80\0\1\0\2\0\0\0\0\4PyPI\3org\0\0\1\0\1"
			       "\xc0\x0c\0\1\0\1\0\0\0\5\0\4\306\22\0\7"
			       "\xc0\x0c\0\1\0\1\0\0\0\5\0\4\306\22\0\10"));
}

static void says_no_data_no_name_and_refused(void **state)
{
	static const struct {
		enum aw_dns_rcode rcode;
		char byte;
	} cases[] = {
		{ AW_DNS_NOERROR, '\x80' },  { AW_DNS_FORMERR, '\x81' },
		{ AW_DNS_SERVFAIL, '\x82' }, { AW_DNS_NXDOMAIN, '\x83' },
		{ AW_DNS_NOTIMP, '\x84' },   { AW_DNS_REFUSED, '\x85' },
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++) {
		char expected[] = "\x12\x34\x81\x80\0\1\0\0\0\0\0\0\4PyPI\3org\0\0\1\0\1";
		const struct aw_dns_answer answer = { .rcode = cases[i].rcode };

		expected[3] = cases[i].byte;
		assert_answered(AW_STR(HEADER_AND_QUESTION), &answer,
				(struct aw_str){ expected, sizeof(expected) - 1 });
	}
}

static void explains_itself_to_clients_with_edns_only(void **state)
{
	const struct aw_dns_answer answer = { .rcode = AW_DNS_REFUSED,
					      .has_error = true,
					      .error = AW_DNS_ERROR_PROHIBITED,
					      .error_text = AW_STR("not granted") };

	(void)state;
	assert_answered(AW_STR(WITH_OPT), &answer,
			AW_STR("\x12\x34\x81\x85\0\1\0\0\0\0\0\1\4PyPI\3org\0\0\1\0\1"
			       "\0\0\x29\x04\xd0\0\0\x80\0\0\21\0\17\0\15\0\22not granted"));
	assert_answered(AW_STR(HEADER_AND_QUESTION), &answer,
			AW_STR("\x12\x34\x81\x85\0\1\0\0\0\0\0\0\4PyPI\3org\0\0\1\0\1"));
}

static void names_what_an_address_stands_for(void **state)
{
	const struct aw_dns_answer answer = { .ttl = 1, .pointer = AW_STR("a.bc.") };

	(void)state;
	assert_answered(AW_STR("\x12\x34\0\0\0\1\0\0\0\0\0\0\0017\0\0\14\0\1"), &answer,
			AW_STR("\x12\x34\x80\x80\0\1\0\1\0\0\0\0\0017\0\0\14\0\1"
			       "\xc0\x0c\0\14\0\1\0\0\0\1\0\6\1a\2bc\0"));
}

static void refuses_answers_that_cannot_be_written(void **state)
{
	struct aw_dns_query query = query_of(AW_STR(HEADER_AND_QUESTION));
	const struct aw_dns_answer bad_name = { .pointer = AW_STR("a..b") };
	const struct aw_dns_answer many = { .addresses = addresses,
					    .address_count = AW_DNS_ADDRESSES_MAX + 1 };
	const struct aw_dns_answer good = { .rcode = AW_DNS_NOERROR };
	uint8_t out[AW_DNS_UDP_SMALL];

	(void)state;
	assert_int_equal(aw_dns_answer_write(&query, &bad_name, out, sizeof(out)), -EINVAL);
	assert_int_equal(aw_dns_answer_write(&query, &many, out, sizeof(out)), -EINVAL);
	assert_int_equal(aw_dns_answer_write(&query, &good, out, 511), -EINVAL);
	assert_int_equal(aw_dns_answer_write(&query, &good, out, 65536), -EINVAL);
}

static void sets_tc_and_leaves_out_what_has_no_room(void **state)
{
	struct aw_dns_query query = query_of(AW_STR(WITH_OPT));
	struct aw_dns_answer answer = { .addresses = addresses, .has_error = true };
	uint8_t out[4096];
	size_t most = 0;

	(void)state;
	for (size_t count = 1; count <= AW_DNS_ADDRESSES_MAX; count++) {
		size_t whole = 12 + 14 + 11 + 16 * count;
		ssize_t n;

		answer.address_count = count;
		memset(out, 0xee, sizeof(out));
		n = aw_dns_answer_write(&query, &answer, out, 512);
		assert_true(n > 0 && n <= 512);
		assert_int_equal(out[512], 0xee);
		assert_int_equal(out[2] & 2, whole > 512 ? 2 : 0);
		assert_int_equal(out[7], whole > 512 ? 0 : count);
		assert_int_equal(out[11], 1);
		if (whole <= 512)
			most = count;
		assert_true(aw_dns_answer_write(&query, &answer, out, sizeof(out)) >=
			    (ssize_t)whole);
		assert_int_equal(out[2] & 2, 0);
	}
	assert_int_equal(most, 29);
}

static void an_error_text_without_room_leaves_the_code(void **state)
{
	struct aw_dns_query query = query_of(AW_STR(WITH_OPT));
	/* 29 addresses leave 11 bytes: the code takes 6, ten bytes of text do not fit. */
	struct aw_dns_answer answer = { .addresses = addresses,
					.address_count = 29,
					.has_error = true,
					.error = AW_DNS_ERROR_BLOCKED,
					.error_text = AW_STR("0123456789") };
	uint8_t out[512];

	(void)state;
	assert_int_equal(aw_dns_answer_write(&query, &answer, out, 512),
			 12 + 14 + 16 * 29 + 11 + 6);
	assert_memory_equal(out + 12 + 14 + 16 * 29 + 9, "\0\6\0\17\0\2\0\17", 8);
}

static void an_over_long_error_text_is_left_out(void **state)
{
	char text[AW_DNS_ERROR_TEXT_MAX + 1] = { 0 };
	struct aw_dns_query query = query_of(AW_STR(WITH_OPT));
	struct aw_dns_answer answer = { .has_error = true, .error_text = { text, sizeof(text) } };
	uint8_t out[512];

	(void)state;
	assert_int_equal(aw_dns_answer_write(&query, &answer, out, 512), 12 + 14 + 11 + 6);
	answer.error_text.len--;
	assert_int_equal(aw_dns_answer_write(&query, &answer, out, 512),
			 12 + 14 + 11 + 6 + AW_DNS_ERROR_TEXT_MAX);
}

static void a_message_that_is_no_query_gets_a_header_alone(void **state)
{
	uint8_t out[AW_DNS_HEADER_LEN + 11];

	(void)state;
	assert_int_equal(aw_dns_flaw_write(AW_STR("\x12\x34\x11\0\0\0\0\0\0\0\0\0"),
					   AW_DNS_FLAW_OPCODE, out),
			 12);
	assert_memory_equal(out, "\x12\x34\x81\x84\0\0\0\0\0\0\0\0", 12);
	assert_int_equal(aw_dns_flaw_write(AW_STR("\x12\x34\0\0\0\0\0\0\0\0\0\0xyz"),
					   AW_DNS_FLAW_COUNTS, out),
			 12);
	assert_memory_equal(out, "\x12\x34\x80\x81\0\0\0\0\0\0\0\0", 12);
}

static void a_bad_edns_version_is_told_in_an_opt(void **state)
{
	uint8_t out[AW_DNS_HEADER_LEN + 11];

	(void)state;
	assert_int_equal(aw_dns_flaw_write(AW_STR(WITH_OPT), AW_DNS_FLAW_EDNS_VERSION, out), 23);
	assert_memory_equal(out, "\x12\x34\x81\x80\0\0\0\0\0\0\0\1\0\0\x29\x04\xd0\1\0\0\0\0\0",
			    23);
}

static void stays_silent_towards_answers_and_scraps(void **state)
{
	uint8_t out[AW_DNS_HEADER_LEN + 11];

	(void)state;
	assert_int_equal(aw_dns_flaw_write(AW_STR(HEADER_AND_QUESTION), AW_DNS_FLAW_RESPONSE, out),
			 0);
	assert_int_equal(aw_dns_flaw_write(AW_STR("\x12\x34"), AW_DNS_FLAW_SHORT, out), 0);
	assert_int_equal(aw_dns_flaw_write(AW_STR("\x12\x34"), AW_DNS_FLAW_OPCODE, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_addresses_with_the_question_as_it_was_asked),
		cmocka_unit_test(says_no_data_no_name_and_refused),
		cmocka_unit_test(explains_itself_to_clients_with_edns_only),
		cmocka_unit_test(names_what_an_address_stands_for),
		cmocka_unit_test(refuses_answers_that_cannot_be_written),
		cmocka_unit_test(sets_tc_and_leaves_out_what_has_no_room),
		cmocka_unit_test(an_error_text_without_room_leaves_the_code),
		cmocka_unit_test(an_over_long_error_text_is_left_out),
		cmocka_unit_test(a_message_that_is_no_query_gets_a_header_alone),
		cmocka_unit_test(a_bad_edns_version_is_told_in_an_opt),
		cmocka_unit_test(stays_silent_towards_answers_and_scraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
