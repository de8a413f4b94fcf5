#include "wire/hostport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"

#define LABEL_63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"
#define NAME_253                               \
	LABEL_63 "." LABEL_63 "." LABEL_63 "." \
		 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghi"

static enum aw_host_kind kind_of(struct aw_str text)
{
	struct aw_host host = { 0 };

	assert_int_equal(aw_host_parse(text, &host), 0);
	return host.kind;
}

static void assert_refused(struct aw_str text)
{
	struct aw_host host = { .kind = AW_HOST_NAME, .address = { 7 } };

	assert_int_equal(aw_host_parse(text, &host), -EBADMSG);
	assert_int_equal(host.address[0], 7);
}

static void accepts_names_of_letters_digits_hyphens_and_underscores(void **state)
{
	static const char *const names[] = {
		"a",        "a.b",       "PyPI.org",  "xn--bcher-kva.de", "_dmarc.a.b",
		"a-b.c_d",  "1e100.net", "pypi.org.", "internal-search",  "0xg.net",
		"1.2.3.4a", LABEL_63,    NAME_253,    NAME_253 ".",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++)
		assert_int_equal(kind_of(aw_str_from(names[i])), AW_HOST_NAME);
}

static void refuses_empty_names_and_labels(void **state)
{
	static const char *const names[] = { "", ".", "..", ".a", "a..b", "pypi.org..", "a.b..c" };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(names); i++)
		assert_refused(aw_str_from(names[i]));
	assert_refused((struct aw_str){ NULL, 0 });
}

static void refuses_labels_over_63_and_names_over_253_bytes(void **state)
{
	char label[301];

	(void)state;
	memset(label, 'a', 300);
	label[300] = '\0';
	assert_refused(AW_STR(LABEL_63 "x"));
	assert_refused(AW_STR("b." LABEL_63 "x.c"));
	assert_refused(AW_STR(NAME_253 "x"));
	assert_refused(AW_STR(NAME_253 "x."));
	assert_refused(aw_str_from(label));
}

static void refuses_every_other_byte_wherever_it_stands(void **state)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	(void)state;
	for (int c = 0; c < 256; c++) {
		char first[] = "?a.com", middle[] = "a?b.com", last[] = "a.com?";

		if (c != 0 && strchr(allowed, c) != NULL)
			continue;
		first[0] = middle[1] = last[5] = (char)c;
		assert_refused((struct aw_str){ first, 6 });
		assert_refused((struct aw_str){ middle, 7 });
		assert_refused((struct aw_str){ last, 6 });
	}
}

static void refuses_a_name_with_a_nul_that_would_cut_it(void **state)
{
	(void)state;
	assert_refused(AW_STR("evil.com\0.github.com"));
	assert_refused(AW_STR("github.com\0"));
}

static void tells_what_is_written_like_a_number_from_a_name(void **state)
{
	static const char *const odd[] = {
		"2130706433", "0177.1",      "0x7f.1",   "0X7F.1", "1.0Xff",    "0x7f000001",
		"127.1",      "0177.0.0.1",  "01.2.3.4", "1.2.3",  "1.2.3.4.5", "256.1.1.1",
		"1.2.3.4.",   "127.0.0.0x1", "0x",       "a.0x",   "a.1",       "00000000177.0.0.1",
		"4294967296",
	};

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(odd); i++)
		assert_int_equal(kind_of(aw_str_from(odd[i])), AW_HOST_ODD_NUMBER);
}

static void reads_a_dotted_quad(void **state)
{
	static const uint8_t expected[16] = { 140, 82, 112, 3 };
	struct aw_host host;

	(void)state;
	assert_int_equal(aw_host_parse(AW_STR("140.82.112.3"), &host), 0);
	assert_int_equal(host.kind, AW_HOST_IPV4);
	assert_memory_equal(host.address, expected, 16);
	assert_true(aw_host_is_literal(&host));
}

static void reads_an_address_in_brackets_only_as_ipv6(void **state)
{
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	static const char *const refused[] = {
		"::1",
		"[]",
		"[::1",
		"::1]",
		"[1.2.3.4]",
		"[fe80::1%eth0]",
		"[fe80::1%25eth0]",
		"[::1]x",
		"x[::1]",
		"[[::1]]",
		"[::g]",
		"[1:2:3:4:5:6:7:8:9]",
		"[a.com]",
		"[v1.x]",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]",
	};
	struct aw_host host;

	(void)state;
	assert_int_equal(aw_host_parse(AW_STR("[::ffff:127.0.0.1]"), &host), 0);
	assert_int_equal(host.kind, AW_HOST_IPV6);
	assert_memory_equal(host.address, mapped, 16);
	assert_true(aw_str_is(host.text, "::ffff:127.0.0.1"));
	assert_true(aw_host_is_literal(&host));
	for (size_t i = 0; i < AW_ARRAY_LEN(refused); i++)
		assert_refused(aw_str_from(refused[i]));
	assert_refused(AW_STR("[::1\0]"));
}

static void a_name_is_no_literal(void **state)
{
	struct aw_host host;

	(void)state;
	assert_int_equal(aw_host_parse(AW_STR("pypi.org"), &host), 0);
	assert_false(aw_host_is_literal(&host));
	assert_int_equal(aw_host_parse(AW_STR("127.1"), &host), 0);
	assert_true(aw_host_is_literal(&host));
}

static void reads_ports_from_1_to_65535(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} cases[] = {
		{ "a.com:1", "a.com", 1 },           { "a.com:65535", "a.com", 65535 },
		{ "A.com.:443", "A.com.", 443 },     { "[2001:db8::1]:22", "2001:db8::1", 22 },
		{ "1.2.3.4:8080", "1.2.3.4", 8080 },
	};
	struct aw_hostport peer;

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(cases); i++) {
		assert_int_equal(aw_hostport_parse(aw_str_from(cases[i].text), 0, &peer), 0);
		assert_true(aw_str_is(peer.host.text, cases[i].host));
		assert_int_equal(peer.port, cases[i].port);
	}
}

static void refuses_every_other_port(void **state)
{
	static const char *const refused[] = {
		"a.com:",        "a.com:0",          "a.com:65536", "a.com:080",
		"a.com:+80",     "a.com:-1",         "a.com: 80",   "a.com:80 ",
		"a.com:0x50",    "a.com:80:80",      "a.com::80",   "a.com:http",
		"::1:80",        "[::1]80",          ":80",         "a.com:99999999999999999999",
		"user@a.com:80", "user:pw@a.com:80",
	};
	struct aw_hostport peer = { .port = 7 };

	(void)state;
	for (size_t i = 0; i < AW_ARRAY_LEN(refused); i++)
		assert_int_equal(aw_hostport_parse(aw_str_from(refused[i]), 80, &peer), -EBADMSG);
	assert_int_equal(aw_hostport_parse(AW_STR("a.com:8\0000"), 80, &peer), -EBADMSG);
	assert_int_equal(peer.port, 7);
}

static void takes_the_default_port_only_where_there_is_one(void **state)
{
	struct aw_hostport peer;

	(void)state;
	assert_int_equal(aw_hostport_parse(AW_STR("a.com"), 80, &peer), 0);
	assert_int_equal(peer.port, 80);
	assert_int_equal(aw_hostport_parse(AW_STR("[::1]"), 443, &peer), 0);
	assert_int_equal(peer.port, 443);
	assert_int_equal(aw_hostport_parse(AW_STR("a.com"), 0, &peer), -EBADMSG);
}

static void compares_names_without_case_but_of_equal_length(void **state)
{
	(void)state;
	assert_true(aw_host_is_same(AW_STR("PyPI.Org"), AW_STR("pypi.oRG")));
	assert_false(aw_host_is_same(AW_STR("a.com"), AW_STR("a.com.")));
	assert_false(aw_host_is_same(AW_STR("a_b"), AW_STR("a-b")));
	assert_false(aw_host_is_same(AW_STR("a[b"), AW_STR("a{b")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_names_of_letters_digits_hyphens_and_underscores),
		cmocka_unit_test(refuses_empty_names_and_labels),
		cmocka_unit_test(refuses_labels_over_63_and_names_over_253_bytes),
		cmocka_unit_test(refuses_every_other_byte_wherever_it_stands),
		cmocka_unit_test(refuses_a_name_with_a_nul_that_would_cut_it),
		cmocka_unit_test(tells_what_is_written_like_a_number_from_a_name),
		cmocka_unit_test(reads_a_dotted_quad),
		cmocka_unit_test(reads_an_address_in_brackets_only_as_ipv6),
		cmocka_unit_test(a_name_is_no_literal),
		cmocka_unit_test(reads_ports_from_1_to_65535),
		cmocka_unit_test(refuses_every_other_port),
		cmocka_unit_test(takes_the_default_port_only_where_there_is_one),
		cmocka_unit_test(compares_names_without_case_but_of_equal_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
