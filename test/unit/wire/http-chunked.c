#include "wire/http-chunked.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

/* Bytes up to the end of the body, -EAGAIN when it has none yet, -EBADMSG; in pieces of @step bytes. */
static ssize_t end_of(struct aw_str bytes, size_t step, enum aw_http_flaw *ret_flaw)
{
	struct aw_http_chunked chunked = { 0 };
	size_t taken = 0;

	while (taken < bytes.len && !aw_http_chunked_is_done(&chunked)) {
		size_t n = bytes.len - taken < step ? bytes.len - taken : step;
		ssize_t r = aw_http_chunked_feed(&chunked, (struct aw_str){ bytes.ptr + taken, n },
						 ret_flaw);

		if (r < 0)
			return r;
		assert_true((size_t)r == n || aw_http_chunked_is_done(&chunked));
		taken += (size_t)r;
	}
	return aw_http_chunked_is_done(&chunked) ? (ssize_t)taken : -EAGAIN;
}

static ssize_t end_however_cut(struct aw_str bytes, enum aw_http_flaw *ret_flaw)
{
	enum aw_http_flaw other = AW_HTTP_FLAW_NONE;
	ssize_t whole;

	*ret_flaw = AW_HTTP_FLAW_NONE;
	whole = end_of(bytes, bytes.len, ret_flaw);
	for (size_t step = 1; step < 4; step++) {
		assert_int_equal(end_of(bytes, step, &other), whole);
		assert_int_equal(other, *ret_flaw);
	}
	return whole;
}

static void assert_ends(struct aw_str body)
{
	enum aw_http_flaw flaw;
	autofree char *longer = malloc(body.len + 3);

	assert_non_null(longer);
	memcpy(longer, body.ptr, body.len);
	memcpy(longer + body.len, "GET", 3);
	assert_int_equal(end_however_cut(body, &flaw), (ssize_t)body.len);
	assert_int_equal(end_however_cut((struct aw_str){ longer, body.len + 3 }, &flaw),
			 (ssize_t)body.len);
	assert_int_equal(end_however_cut((struct aw_str){ longer, body.len - 1 }, &flaw), -EAGAIN);
}

static enum aw_http_flaw flaw_of(struct aw_str body)
{
	enum aw_http_flaw flaw;

	assert_int_equal(end_however_cut(body, &flaw), -EBADMSG);
	return flaw;
}

static void finds_the_end_of_a_body(void **state)
{
	(void)state;
	assert_ends(AW_STR("0\r\n\r\n"));
	assert_ends(AW_STR("5\r\nhello\r\n0\r\n\r\n"));
	assert_ends(AW_STR("5\r\n\r\n0\r\n\r\n0\r\n\r\n"));
	assert_ends(AW_STR("00A\r\n0123456789\r\n1\r\nx\r\n000\r\n\r\n"));
	assert_ends(AW_STR("a;name=value;x=\"y z\"\r\n0123456789\r\n0;last\r\n\r\n"));
	assert_ends(AW_STR("1;\r\nx\r\n1; a\r\ny\r\n0\r\n\r\n"));
}

static void trailers_belong_to_the_body(void **state)
{
	(void)state;
	assert_ends(AW_STR("0\r\nA: b\r\nDigest:c=\xff\t\r\n\r\n"));
	assert_ends(AW_STR("1\r\nx\r\n0\r\nA:\r\n\r\n"));
}

static void refuses_sizes_that_are_not_plain_digits(void **state)
{
	static const char *const bodies[] = {
		"\r\n",
		" 5\r\n",
		"+5\r\n",
		"-5\r\n",
		"0x5\r\n",
		"g\r\n",
		"5g\r\n",
		"5 5\r\n",
		";a\r\n",
		"5_0\r\n",
		"5,\r\n",
		"\n",
		"5\n",
		"5\rhello",
		"00000000000000005\r\n",
		"FFFFFFFFFFFFFFFFF\r\n",
		"8000000000000000\r\n",
		"FFFFFFFFFFFFFFFF\r\n",
		"5 \n",
		"5 \r\n",
		"5\t;a\r\n",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(bodies); i++)
		assert_int_equal(flaw_of(aw_str_from(bodies[i])), AW_HTTP_FLAW_CHUNK_SIZE);
	assert_int_equal(flaw_of(AW_STR("5\0\r\n")), AW_HTTP_FLAW_CHUNK_SIZE);
}

static void refuses_sizes_that_sum_up_beyond_the_maximum(void **state)
{
	struct aw_http_chunked chunked = { .content = INT64_MAX - 4 };
	struct aw_http_chunked fits = { .content = INT64_MAX - 5 };
	enum aw_http_flaw flaw;

	(void)state;
	assert_int_equal(aw_http_chunked_feed(&fits, AW_STR("5\r\n"), &flaw), 3);
	assert_int_equal(aw_http_chunked_feed(&chunked, AW_STR("5\r\n"), &flaw), -EBADMSG);
	assert_int_equal(flaw, AW_HTTP_FLAW_CHUNK_SIZE);
}

static void refuses_line_feeds_and_controls_in_extensions(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR("5;a\nhello")), AW_HTTP_FLAW_CHUNK_EXTENSION);
	assert_int_equal(flaw_of(AW_STR("5;\0\r\n")), AW_HTTP_FLAW_CHUNK_EXTENSION);
	assert_int_equal(flaw_of(AW_STR("5;a\rX")), AW_HTTP_FLAW_CHUNK_SIZE);
}

static void refuses_extensions_without_end(void **state)
{
	char line[AW_HTTP_CHUNK_LINE_MAX + 2];
	enum aw_http_flaw flaw;

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "5;", 2);
	assert_int_equal(flaw_of((struct aw_str){ line, sizeof(line) }),
			 AW_HTTP_FLAW_CHUNK_EXTENSION);
	memset(line, 'x', sizeof(line));
	memcpy(line, "0;", 2);
	memcpy(line + AW_HTTP_CHUNK_LINE_MAX, "\r\n", 2);
	assert_int_equal(end_however_cut((struct aw_str){ line, sizeof(line) }, &flaw), -EAGAIN);
}

static void refuses_data_that_does_not_end_where_it_should(void **state)
{
	(void)state;
	assert_int_equal(flaw_of(AW_STR("5\r\nhelloX")), AW_HTTP_FLAW_CHUNK_END);
	assert_int_equal(flaw_of(AW_STR("5\r\nhello\n0\r\n")), AW_HTTP_FLAW_CHUNK_END);
	assert_int_equal(flaw_of(AW_STR("5\r\nhello\rX")), AW_HTTP_FLAW_CHUNK_END);
}

static void refuses_malformed_trailers(void **state)
{
	static const char *const bodies[] = {
		"0\r\n A: b\r\n", "0\r\n: b\r\n", "0\r\nA : b\r\n",   "0\r\nA\r\n",
		"0\r\nA: b\n",    "0\r\n\n",      "0\r\nA: b\r\n\rX", "0\r\nA: b\rX",
		"0\r\nA: \x01",   "0\r\n\x80: b",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(bodies); i++)
		assert_int_equal(flaw_of(aw_str_from(bodies[i])), AW_HTTP_FLAW_TRAILER);
}

static void refuses_trailers_without_end(void **state)
{
	autofree char *body = malloc(3 + AW_HTTP_TRAILERS_MAX + 1);

	(void)state;
	assert_non_null(body);
	memset(body, 'x', 3 + AW_HTTP_TRAILERS_MAX + 1);
	memcpy(body, "0\r\nA:", 5);
	assert_int_equal(flaw_of((struct aw_str){ body, 3 + AW_HTTP_TRAILERS_MAX + 1 }),
			 AW_HTTP_FLAW_TRAILER);
	memcpy(body + 3 + AW_HTTP_TRAILERS_MAX - 4, "\r\n\r\n", 4);
	assert_ends((struct aw_str){ body, 3 + AW_HTTP_TRAILERS_MAX });
}

static void a_refusal_is_final(void **state)
{
	struct aw_http_chunked chunked = { 0 };
	enum aw_http_flaw flaw = AW_HTTP_FLAW_NONE;

	(void)state;
	assert_int_equal(aw_http_chunked_feed(&chunked, AW_STR("5\n"), &flaw), -EBADMSG);
	flaw = AW_HTTP_FLAW_NONE;
	assert_int_equal(aw_http_chunked_feed(&chunked, AW_STR("0\r\n\r\n"), &flaw), -EBADMSG);
	assert_int_equal(flaw, AW_HTTP_FLAW_CHUNK_SIZE);
	assert_false(aw_http_chunked_is_done(&chunked));
}

static void counts_content_without_lines_and_trailers(void **state)
{
	struct aw_http_chunked chunked = { 0 };
	enum aw_http_flaw flaw;

	(void)state;
	assert_int_equal(aw_http_chunked_feed(&chunked, AW_STR("5;x\r\nhello\r\n10\r\n012"), &flaw),
			 19);
	assert_int_equal(chunked.content, 21);
	assert_int_equal(chunked.left, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_end_of_a_body),
		cmocka_unit_test(trailers_belong_to_the_body),
		cmocka_unit_test(refuses_sizes_that_are_not_plain_digits),
		cmocka_unit_test(refuses_sizes_that_sum_up_beyond_the_maximum),
		cmocka_unit_test(refuses_line_feeds_and_controls_in_extensions),
		cmocka_unit_test(refuses_extensions_without_end),
		cmocka_unit_test(refuses_data_that_does_not_end_where_it_should),
		cmocka_unit_test(refuses_malformed_trailers),
		cmocka_unit_test(refuses_trailers_without_end),
		cmocka_unit_test(a_refusal_is_final),
		cmocka_unit_test(counts_content_without_lines_and_trailers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
