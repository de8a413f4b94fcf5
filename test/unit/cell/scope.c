/* The conversation with systemd over a socket pair: this test is systemd. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "cell/scope-internal.h"
#include "scope-peer.h"

#define UNIT "warden-1.scope"
#define OTHER "warden-2.scope"

static struct aw_error err;

/* Ours in @fd of the scope, systemd's in `peer`. */
struct talk {
	struct aw_scope scope;
	int peer;
};

static void open_talk(struct talk *t, bool is_bus)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	t->scope = (struct aw_scope){ .fd = ends[0],
				      .is_bus = is_bus,
				      .in = AW_BUF_INIT(AW_SCOPE_MESSAGE_MAX * 2) };
	t->peer = ends[1];
	assert_int_equal(aw_scope_start(&t->scope, UNIT, 4242, NULL, 0, &err), 0);
}

static void say(struct talk *t, const void *bytes, size_t len)
{
	assert_int_equal(write(t->peer, bytes, len), (ssize_t)len);
}

static void greet(struct talk *t)
{
	static const char greeting[] = "DATA\r\nOK 0123456789abcdef0123456789abcdef\r\n";

	say(t, greeting, sizeof(greeting) - 1);
}

static void say_job_removed(struct talk *t, const char *unit, const char *result)
{
	struct scope_made m;

	scope_make_signal(&m, "JobRemoved", unit, result);
	say(t, m.data, m.len);
}

static void say_error(struct talk *t, uint32_t serial, const char *words)
{
	struct scope_made m;

	scope_make_error(&m, serial, words);
	say(t, m.data, m.len);
}

static int close_talk(struct talk *t, unsigned timeout_ms)
{
	int r = aw_scope_wait(&t->scope, timeout_ms, &err);

	aw_scope_fini(&t->scope);
	assert_int_equal(t->scope.fd, -EBADF);
	(void)aw_fd_close(t->peer);
	return r;
}

static void waits_until_the_job_is_done(void **state)
{
	struct talk t;
	struct scope_made m;

	(void)state;
	open_talk(&t, true);
	greet(&t);
	scope_make_return(&m, AW_SCOPE_HELLO);
	say(&t, m.data, m.len);
	say_error(&t, AW_SCOPE_SUBSCRIBE, "already subscribed");
	say_job_removed(&t, OTHER, "failed");
	scope_make_return(&m, AW_SCOPE_ASK);
	say(&t, m.data, m.len);
	scope_make_signal(&m, "JobNew", UNIT, "done");
	say(&t, m.data, m.len);
	say_job_removed(&t, UNIT, "done");
	assert_int_equal(close_talk(&t, 5000), 0);
}

static void an_answer_to_the_call_is_not_the_end(void **state)
{
	struct talk t;
	struct scope_made m;

	(void)state;
	open_talk(&t, false);
	greet(&t);
	scope_make_return(&m, AW_SCOPE_ASK);
	say(&t, m.data, m.len);
	assert_int_equal(close_talk(&t, 20), -ETIMEDOUT);
}

static void a_job_that_failed_is_no_scope(void **state)
{
	struct talk t;

	(void)state;
	open_talk(&t, false);
	greet(&t);
	say_job_removed(&t, UNIT, "timeout");
	assert_int_equal(close_talk(&t, 5000), -ENOTSUP);
	assert_string_equal(err.message, "systemd refuses " UNIT ": timeout");
}

static void hands_on_systemd_s_words_harmless(void **state)
{
	struct talk t;

	(void)state;
	open_talk(&t, true);
	greet(&t);
	say_error(&t, AW_SCOPE_ASK, "Process \33[2J does not exist.");
	assert_int_equal(close_talk(&t, 5000), -ENOTSUP);
	assert_string_equal(err.message,
			    "systemd refuses " UNIT ": Process \\x1b[2J does not exist.");
}

static void an_error_without_words_has_a_name(void **state)
{
	struct talk t;

	(void)state;
	open_talk(&t, true);
	greet(&t);
	say_error(&t, AW_SCOPE_MATCH, NULL);
	assert_int_equal(close_talk(&t, 5000), -ENOTSUP);
	assert_non_null(strstr(err.message, "org.freedesktop.DBus.Error.Failed"));
}

static void is_not_let_in(void **state)
{
	struct talk t;

	(void)state;
	open_talk(&t, true);
	say(&t, "REJECTED EXTERNAL\r\n", 19);
	assert_int_equal(close_talk(&t, 5000), -ENOTSUP);
}

static void systemd_may_go_away(void **state)
{
	struct talk t;

	(void)state;
	open_talk(&t, true);
	greet(&t);
	t.peer = aw_fd_close(t.peer);
	/* With what we sent unread, the end of a socket is a reset. */
	assert_true(close_talk(&t, 5000) < 0);
	open_talk(&t, true);
	assert_int_equal(shutdown(t.peer, SHUT_WR), 0);
	assert_int_equal(close_talk(&t, 5000), -ENOTSUP);
}

static void gives_up_in_time(void **state)
{
	struct talk t;

	(void)state;
	open_talk(&t, true);
	say(&t, "DATA\r\nO", 7);
	assert_int_equal(close_talk(&t, 20), -ETIMEDOUT);
	assert_non_null(strstr(err.message, "20 ms"));
}

static void refuses_what_is_no_answer(void **state)
{
	struct talk t;

	(void)state;
	open_talk(&t, true);
	greet(&t);
	say(&t, "HTTP/1.1 400 Bad Request\r\n", 26);
	assert_int_equal(close_talk(&t, 5000), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_until_the_job_is_done),
		cmocka_unit_test(an_answer_to_the_call_is_not_the_end),
		cmocka_unit_test(a_job_that_failed_is_no_scope),
		cmocka_unit_test(hands_on_systemd_s_words_harmless),
		cmocka_unit_test(an_error_without_words_has_a_name),
		cmocka_unit_test(is_not_let_in),
		cmocka_unit_test(systemd_may_go_away),
		cmocka_unit_test(gives_up_in_time),
		cmocka_unit_test(refuses_what_is_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
