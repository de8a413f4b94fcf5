#include "cli/login.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"

#define PARSE(...) parse((const char *[]){ __VA_ARGS__, NULL })
#define REFUSED(...) refused((const char *[]){ __VA_ARGS__, NULL })

static struct aw_login_line line;
static struct aw_error err;

static int try_parse(const char **words)
{
	return aw_login_parse((char *const *)(uintptr_t)words, &line, &err);
}

static const struct aw_login_line *parse(const char **words)
{
	if (try_parse(words) < 0)
		fail_msg("%s", err.message);
	return &line;
}

static const char *refused(const char **words)
{
	assert_int_equal(try_parse(words), -EINVAL);
	return err.message;
}

static void the_ways_to_log_in_are_told_apart(void **state)
{
	(void)state;
	assert_string_equal(PARSE("codex")->agent, "codex");
	assert_false(line.is_by_key || line.is_import || line.is_agreed);
	assert_true(PARSE("--with-api-key", "codex")->is_by_key);
	assert_true(PARSE("claude", "--import-login")->is_import);
	assert_true(PARSE("claude", "--import-login", "--yes")->is_agreed);
}

static void one_agent_and_one_way_are_needed(void **state)
{
	const char *none[] = { NULL };

	(void)state;
	assert_string_equal(refused(none), "which agent?");
	assert_non_null(strstr(REFUSED("a", "b"), "'b'"));
	assert_non_null(strstr(REFUSED("a", "--key=x"), "'--key=x'"));
	assert_non_null(strstr(REFUSED("a", "--import-login", "--with-api-key"), "one of them"));
}

/* Give this process another stdin for one call. */
static int read_key(const char *on_stdin, size_t len, const char *from_env,
		    struct aw_login_key *ret)
{
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 3), r;
	autoclose int file = memfd_create("stdin", MFD_CLOEXEC);

	assert_true(file >= 0);
	assert_int_equal(aw_write_all(file, on_stdin, len), 0);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(dup2(file, 0), 0);
	*ret = (struct aw_login_key){ 0 };
	r = aw_login_read_key(from_env, "A_KEY", ret, &err);
	if (saved >= 0) {
		assert_int_equal(dup2(saved, 0), 0);
		(void)close(saved);
	}
	return r;
}

static void reads(const char *on_stdin, const char *from_env, const char *wanted)
{
	struct aw_login_key key;

	assert_int_equal(read_key(on_stdin, strlen(on_stdin), from_env, &key), 0);
	assert_int_equal(key.len, strlen(wanted));
	assert_memory_equal(key.text, wanted, key.len);
}

static void a_key_on_stdin_goes_before_the_one_of_the_environment(void **state)
{
	(void)state;
	reads("sk-1\n", NULL, "sk-1");
	reads("sk-1\r\n\n", "sk-2", "sk-1");
	reads("", "sk-2", "sk-2");
	reads("sk-1", "", "sk-1");
}

static void no_key_at_all_is_said_with_the_variable(void **state)
{
	struct aw_login_key key;

	(void)state;
	assert_int_equal(read_key("", 0, NULL, &key), -ENODATA);
	assert_non_null(strstr(err.message, "A_KEY"));
	assert_int_equal(read_key(" \n", 2, NULL, &key), -ENODATA);
}

static void what_is_no_single_printable_word_is_no_key(void **state)
{
	struct aw_login_key key;
	char large[AW_LOGIN_KEY_MAX + 2];

	(void)state;
	memset(large, 'k', sizeof(large));
	assert_int_equal(read_key("a b", 3, NULL, &key), -EBADMSG);
	assert_int_equal(read_key("a\nb", 3, NULL, &key), -EBADMSG);
	assert_int_equal(read_key("a\0b", 3, NULL, &key), -EBADMSG);
	assert_int_equal(read_key("\x1b[A", 3, NULL, &key), -EBADMSG);
	assert_int_equal(read_key(large, sizeof(large), NULL, &key), -EBADMSG);
	assert_int_equal(read_key(large, AW_LOGIN_KEY_MAX, NULL, &key), 0);
	assert_int_equal(key.len, AW_LOGIN_KEY_MAX);
	/* The message says what is wrong with it and never what it is. */
	assert_int_equal(read_key("sk-secret x", 11, NULL, &key), -EBADMSG);
	assert_null(strstr(err.message, "secret"));
}

static void the_key_is_all_that_can_be_read_from_stdin(void **state)
{
	struct aw_login_key key = { .text = "sk-1", .len = 4 };
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
	autofree char *text = NULL;
	ssize_t n;

	(void)state;
	assert_int_equal(aw_login_put_key(&key, &err), 0);
	n = aw_read_any(0, 64, &text, &err);
	if (saved >= 0) {
		assert_int_equal(dup2(saved, 0), 0);
		(void)close(saved);
	}
	assert_int_equal(n, 5);
	assert_string_equal(text, "sk-1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ways_to_log_in_are_told_apart),
		cmocka_unit_test(one_agent_and_one_way_are_needed),
		cmocka_unit_test(a_key_on_stdin_goes_before_the_one_of_the_environment),
		cmocka_unit_test(no_key_at_all_is_said_with_the_variable),
		cmocka_unit_test(what_is_no_single_printable_word_is_no_key),
		cmocka_unit_test(the_key_is_all_that_can_be_read_from_stdin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
