#include "store/head.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "store/scratch.h"

#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static struct aw_error err;

static void what_was_written_is_read(void **state)
{
	struct aw_head there = { .segment = 3, .seq = UINT64_MAX }, back;
	struct scratch *s = *state;

	aw_chain_hash(AW_STR("abc"), &there.last);
	assert_int_equal(aw_head_write(s->fd, SESSION, &there, &err), 0);
	assert_int_equal(aw_head_read(s->fd, &back, &err), 0);
	assert_int_equal(back.segment, 3);
	assert_true(back.seq == UINT64_MAX);
	assert_true(aw_chain_is_equal(&there.last, &back.last));
}

static void says_when_there_is_none(void **state)
{
	struct scratch *s = *state;
	struct aw_head head;

	assert_int_equal(aw_head_read(s->fd, &head, &err), -ENOENT);
}

static void refuses_what_is_not_ours(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"{}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":1,\"seq\":4,\"hash\":\"" HASH "\"}",
		"{\"v\":2,\"session\":\"x\",\"segment\":1,\"seq\":4,\"hash\":\"" HASH "\"}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":0,\"seq\":4,\"hash\":\"" HASH "\"}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":1000000,\"seq\":4,\"hash\":\"" HASH "\"}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":1,\"seq\":0,\"hash\":\"" HASH "\"}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":1,\"seq\":-4,\"hash\":\"" HASH "\"}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":1,\"seq\":4,\"hash\":\"00\"}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":1,\"seq\":4,\"hash\":4}\n",
		"{\"v\":1,\"session\":\"x\",\"segment\":1,\"seq\":4}\n",
	};
	struct scratch *s = *state;
	struct aw_head head;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		scratch_store(s, AW_HEAD_NAME, bad[i], strlen(bad[i]));
		if (aw_head_read(s->fd, &head, &err) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(what_was_written_is_read),
		IN_SCRATCH(says_when_there_is_none),
		IN_SCRATCH(refuses_what_is_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
