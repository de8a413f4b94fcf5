#include "event/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define HEAD "{\"v\":1,\"seq\":7,\"time\":\"2026-03-01T12:00:00.000000000Z\","
#define SESSION "\"session\":\"k3v9x0ab\","
#define TAIL "\"prev\":\"" ZEROS "\"}"

static struct aw_event event;
static struct aw_record record;

static void what_was_written_is_read(void **state)
{
	struct aw_chain prev;
	struct aw_str line;

	(void)state;
	aw_chain_hash(AW_STR("before"), &prev);
	aw_event_begin(&event, AW_EVENT_DNS_REFUSED, UINT64_C(1772366400123456789));
	aw_event_add_str(&event, "name", AW_STR("a\xff.example"));
	line = aw_event_seal(&event, "k3v9x0ab", 42, &prev);
	line.len--;
	assert_int_equal(aw_record_parse(line, &record), 0);
	assert_int_equal(record.seq, 42);
	assert_true(record.wall_ns == UINT64_C(1772366400123456789));
	assert_true(aw_str_is(record.session, "k3v9x0ab"));
	assert_int_equal(record.kind, AW_EVENT_DNS_REFUSED);
	assert_true(aw_str_is(record.kind_name, "dns.refused"));
	assert_true(aw_chain_is_equal(&record.prev, &prev));
	assert_int_equal(record.object.count, AW_RECORD_FIRST + 1 + AW_RECORD_BEHIND);
	assert_true(aw_str_is(record.object.field[AW_RECORD_FIRST].key, "name"));
}

static void a_kind_of_tomorrow_is_read_by_its_name(void **state)
{
	(void)state;
	assert_int_equal(
		aw_record_parse(AW_STR(HEAD SESSION "\"kind\":\"new.kind\"," TAIL), &record), 0);
	assert_int_equal(record.kind, AW_EVENT_UNKNOWN);
	assert_true(aw_str_is(record.kind_name, "new.kind"));
}

static void another_version_says_so(void **state)
{
	(void)state;
	assert_int_equal(aw_record_parse(AW_STR("{\"v\":2,\"other\":[]}"), &record),
			 -EPROTONOSUPPORT);
}

static void refuses_what_is_no_record(void **state)
{
	static const char *const bad[] = {
		"{\"v\":1}",
		HEAD SESSION "\"kind\":\"note\"}",
		HEAD "\"kind\":\"note\"," SESSION TAIL,
		HEAD SESSION "\"kind\":\"\"," TAIL,
		HEAD SESSION "\"kind\":\"No\"," TAIL,
		HEAD SESSION "\"kind\":[\"note\"]," TAIL,
		HEAD "\"session\":\"short\",\"kind\":\"note\"," TAIL,
		HEAD "\"session\":\"K3V9X0AB\",\"kind\":\"note\"," TAIL,
		HEAD SESSION "\"kind\":\"note\",\"prev\":\"00\"}",
		HEAD SESSION "\"kind\":\"note\",\"prev\":\"" ZEROS "\",\"z\":1}",
		"{\"v\":1,\"seq\":-7,\"time\":\"2026-03-01T12:00:00.000000000Z\"," SESSION
		"\"kind\":\"note\"," TAIL,
		"{\"v\":1,\"seq\":7,\"time\":\"2026-03-01T12:00:00Z\"," SESSION
		"\"kind\":\"note\"," TAIL,
		"{\"v\":\"1\",\"seq\":7,\"time\":\"2026-03-01T12:00:00.000000000Z\"," SESSION
		"\"kind\":\"note\"," TAIL,
	};

	(void)state;
	assert_int_equal(aw_record_parse(AW_STR(HEAD SESSION "\"kind\":\"note\"," TAIL), &record),
			 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (aw_record_parse(aw_str_from(bad[i]), &record) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
}

static void a_line_longer_than_any_of_ours_is_refused(void **state)
{
	static char line[2 * AW_FLAT_MAX];
	int n;

	(void)state;
	n = snprintf(line, sizeof(line), HEAD SESSION "\"kind\":\"note\",\"x\":\"%*d\"," TAIL,
		     AW_FLAT_MAX, 1);
	assert_int_equal(aw_record_parse((struct aw_str){ line, (size_t)n }, &record), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(a_kind_of_tomorrow_is_read_by_its_name),
		cmocka_unit_test(another_version_says_so),
		cmocka_unit_test(refuses_what_is_no_record),
		cmocka_unit_test(a_line_longer_than_any_of_ours_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
