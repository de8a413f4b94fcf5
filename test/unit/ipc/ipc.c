#include "ipc/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"

struct link {
	int end[2];
	struct aw_ipc_message *message;
};

static int set_up(void **state)
{
	struct link *l = calloc(1, sizeof(*l));
	struct aw_error err;

	l->message = malloc(sizeof(*l->message));
	*state = l;
	return aw_ipc_pair(l->end, &err);
}

static int tear_down(void **state)
{
	struct link *l = *state;

	(void)aw_fd_close(l->end[0]);
	(void)aw_fd_close(l->end[1]);
	free(l->message);
	free(l);
	return 0;
}

static struct aw_ipc_verdict good_verdict(void)
{
	return (struct aw_ipc_verdict){ .id = 7,
					.way = AW_IPC_WAY_CONNECT,
					.outcome = AW_IPC_ALLOWED,
					.reason = AW_NET_GRANTED,
					.name = "a.example",
					.port = 443 };
}

static int send_fds(struct link *l, enum aw_ipc_type type, const void *payload, size_t len,
		    size_t fd_count)
{
	int fds[AW_IPC_FDS_MAX] = { 0 };
	struct aw_error err;

	for (size_t i = 0; i < fd_count; i++)
		fds[i] = l->end[0];
	return aw_ipc_send(l->end[0], type, payload, len, fds, fd_count, &err);
}

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void carries_a_message_whole(void **state)
{
	struct link *l = *state;
	struct aw_ipc_verdict v = good_verdict(), got;
	struct aw_error err;

	assert_int_equal(send_fds(l, AW_IPC_GATE_VERDICT, &v, sizeof(v), 0), 0);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_MONITOR, AW_IPC_GATE, l->message, &err), 1);
	assert_int_equal(l->message->type, AW_IPC_GATE_VERDICT);
	assert_int_equal(l->message->len, sizeof(v));
	memcpy(&got, l->message->payload, sizeof(got));
	assert_memory_equal(&got, &v, sizeof(v));
}

static void hands_descriptors_over_close_on_exec(void **state)
{
	struct link *l = *state;
	struct aw_error err;
	size_t before = count_fds();

	assert_int_equal(send_fds(l, AW_IPC_GATE_POLICY, NULL, 0, 1), 0);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_GATE, AW_IPC_MONITOR, l->message, &err), 1);
	assert_int_equal(l->message->fd_count, 1);
	assert_true(fcntl(l->message->fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(count_fds(), before + 1);
	aw_ipc_message_fini(l->message);
	assert_int_equal(count_fds(), before);
}

static void refuses_a_message_of_another_role_and_closes_what_came_along(void **state)
{
	struct link *l = *state;
	struct aw_error err;
	size_t before = count_fds();

	assert_int_equal(send_fds(l, AW_IPC_GATE_POLICY, NULL, 0, 1), 0);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_MONITOR, AW_IPC_GATE, l->message, &err),
			 -EPROTO);
	assert_int_equal(count_fds(), before);
}

static void refuses_more_descriptors_than_the_table_says(void **state)
{
	struct link *l = *state;
	struct aw_error err;
	size_t before = count_fds();

	assert_int_equal(send_fds(l, AW_IPC_GATE_POLICY, NULL, 0, AW_IPC_FDS_MAX), 0);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_GATE, AW_IPC_MONITOR, l->message, &err),
			 -EPROTO);
	assert_int_equal(count_fds(), before);
}

static void refuses_a_record_that_is_too_long(void **state)
{
	struct link *l = *state;
	size_t len = sizeof(struct aw_ipc_head) + AW_IPC_PAYLOAD_MAX + 1;
	autofree struct aw_ipc_head *head = calloc(1, len);
	struct aw_error err;

	*head = (struct aw_ipc_head){ AW_IPC_GATE_READY, AW_IPC_PAYLOAD_MAX };
	assert_int_equal(send(l->end[0], head, len, 0), (ssize_t)len);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_MONITOR, AW_IPC_GATE, l->message, &err),
			 -EPROTO);
}

static void refuses_a_record_shorter_than_its_head(void **state)
{
	struct link *l = *state;
	struct aw_error err;

	assert_int_equal(send(l->end[0], "abc", 3, 0), 3);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_MONITOR, AW_IPC_GATE, l->message, &err),
			 -EPROTO);
}

static void tells_the_end_of_the_link(void **state)
{
	struct link *l = *state;
	struct aw_error err;

	l->end[0] = aw_fd_close(l->end[0]);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_MONITOR, AW_IPC_GATE, l->message, &err), 0);
	assert_int_equal(aw_ipc_send(l->end[1], AW_IPC_CELL_GO, NULL, 0, NULL, 0, &err), -EPIPE);
}

static void tells_the_end_also_when_something_of_ours_was_never_read(void **state)
{
	struct link *l = *state;
	struct aw_error err;

	assert_int_equal(aw_ipc_send(l->end[1], AW_IPC_CELL_GO, NULL, 0, NULL, 0, &err), 0);
	l->end[0] = aw_fd_close(l->end[0]);
	assert_int_equal(aw_ipc_recv(l->end[1], AW_IPC_MONITOR, AW_IPC_GATE, l->message, &err), 0);
}

static void does_not_block_on_a_non_blocking_link(void **state)
{
	struct link *l = *state;
	struct aw_ipc_verdict v = good_verdict();
	struct aw_error err;
	int r, sent = 0;

	assert_int_equal(fcntl(l->end[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(aw_ipc_recv(l->end[0], AW_IPC_GATE, AW_IPC_MONITOR, l->message, &err),
			 -EAGAIN);
	while ((r = send_fds(l, AW_IPC_GATE_VERDICT, &v, sizeof(v), 0)) == 0)
		sent++;
	assert_int_equal(r, -EAGAIN);
	assert_true(sent > 0);
}

/* One payload per way to be wrong; each differs from a good one in a single place. */
struct bad {
	const char *what;
	size_t offset, len;
	uint8_t value;
};

#define AT(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)

static int check_with(enum aw_ipc_type type, const void *payload, size_t len, size_t fd_count)
{
	autofree uint8_t *bytes = malloc(sizeof(struct aw_ipc_head) + len);
	struct aw_ipc_head head = { type, (uint32_t)len };
	enum aw_ipc_role gate = AW_IPC_GATE, monitor = AW_IPC_MONITOR, cell = AW_IPC_CELL;
	struct aw_error err;
	enum aw_ipc_role from[] = { monitor, gate, cell };
	int r = -EPROTO;

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), payload, len);
	for (size_t f = 0; f < AW_ARRAY_LEN(from) && r < 0; f++)
		for (size_t t = 0; t < AW_ARRAY_LEN(from) && r < 0; t++)
			r = aw_ipc_check(from[t], from[f], bytes, sizeof(head) + len, fd_count,
					 &err);
	return r;
}

static void refuses_each_malformed_verdict(void **state)
{
	static const struct bad bad[] = {
		{ "way", AT(aw_ipc_verdict, way), 0 },
		{ "way", AT(aw_ipc_verdict, way), 200 },
		{ "outcome", AT(aw_ipc_verdict, outcome), 0 },
		{ "outcome", AT(aw_ipc_verdict, outcome), 200 },
		{ "reason", AT(aw_ipc_verdict, reason), 200 },
		{ "rule", AT(aw_ipc_verdict, rule), 0x7f },
		{ "rule", AT(aw_ipc_verdict, rule), 0x80 },
		{ "name", AT(aw_ipc_verdict, name), 'a' },
		{ "seen", AT(aw_ipc_verdict, seen), 'a' },
		{ "method", AT(aw_ipc_verdict, method), 'a' },
		{ "family", AT(aw_ipc_verdict, addr.family), 1 },
	};
	struct aw_ipc_verdict v = good_verdict();

	(void)state;
	assert_int_equal(check_with(AW_IPC_GATE_VERDICT, &v, sizeof(v), 0), 0);
	assert_int_equal(check_with(AW_IPC_GATE_VERDICT, &v, sizeof(v), 1), -EPROTO);
	assert_int_equal(check_with(AW_IPC_GATE_VERDICT, &v, sizeof(v) - 1, 0), -EPROTO);
	for (size_t i = 0; i < AW_ARRAY_LEN(bad); i++) {
		v = good_verdict();
		memset((char *)&v + bad[i].offset, bad[i].value, bad[i].len);
		if (check_with(AW_IPC_GATE_VERDICT, &v, sizeof(v), 0) != -EPROTO)
			fail_msg("accepted %s of %u", bad[i].what, bad[i].value);
	}
}

static void refuses_each_malformed_setup(void **state)
{
	static const struct bad bad[] = {
		{ "server count", AT(aw_ipc_gate_setup, resolvers.count), 9 },
		{ "server family", AT(aw_ipc_gate_setup, resolvers.server[0].family), 1 },
		{ "listener count", AT(aw_ipc_gate_setup, listener_count), 67 },
		{ "listener kind", AT(aw_ipc_gate_setup, listener[0].kind), 0 },
		{ "listener kind", AT(aw_ipc_gate_setup, listener[0].kind), 9 },
		{ "own count", AT(aw_ipc_gate_setup, own_count), 65 },
		{ "own family", AT(aw_ipc_gate_setup, own[0].family), 0 },
		{ "host count", AT(aw_ipc_gate_setup, host_count), 65 },
		{ "host name", AT(aw_ipc_gate_setup, host[0].name), 'x' },
		{ "host family", AT(aw_ipc_gate_setup, host[0].addr.family), 0 },
	};
	autofree struct aw_ipc_gate_setup *good = calloc(1, sizeof(*good));
	autofree struct aw_ipc_gate_setup *s = calloc(1, sizeof(*s));

	(void)state;
	good->resolvers.count = good->own_count = good->host_count = good->listener_count = 1;
	good->resolvers.server[0].family = good->own[0].family = good->host[0].addr.family =
		AF_INET;
	good->listener[0] = (struct aw_ipc_listener){ AW_IPC_LISTEN_PROXY, 3128 };
	assert_int_equal(check_with(AW_IPC_GATE_SETUP, good, sizeof(*good), 2), 0);
	assert_int_equal(check_with(AW_IPC_GATE_SETUP, good, sizeof(*good), 1), -EPROTO);
	assert_int_equal(check_with(AW_IPC_GATE_SETUP, good, sizeof(*good), 3), -EPROTO);
	for (size_t i = 0; i < AW_ARRAY_LEN(bad); i++) {
		*s = *good;
		memset((char *)s + bad[i].offset, bad[i].value, bad[i].len);
		if (check_with(AW_IPC_GATE_SETUP, s, sizeof(*s), 2) != -EPROTO)
			fail_msg("accepted %s of %u", bad[i].what, bad[i].value);
	}
}

static int check_exec(uint32_t argc, uint32_t envc, const char *tail, size_t tail_len, size_t fds)
{
	struct aw_ipc_cell_exec head = {
		.job = 1, .argc = argc, .envc = envc, .tail_len = (uint32_t)tail_len
	};
	uint8_t bytes[sizeof(head) + 64];

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), tail, tail_len);
	return check_with(AW_IPC_CELL_EXEC, bytes, sizeof(head) + tail_len, fds);
}

static void counts_the_strings_of_an_exec(void **state)
{
	static const char tail[] = "/work\0ls\0-l\0A=b";

	(void)state;
	assert_int_equal(check_exec(2, 1, tail, sizeof(tail), 3), 0);
	assert_int_equal(check_exec(2, 1, tail, sizeof(tail), 2), -EPROTO);
	assert_int_equal(check_exec(3, 1, tail, sizeof(tail), 3), -EPROTO);
	assert_int_equal(check_exec(2, 1, tail, sizeof(tail) - 1, 3), -EPROTO);
	assert_int_equal(check_exec(0, 3, tail, sizeof(tail), 3), -EPROTO);
	assert_int_equal(check_exec(UINT32_MAX, 4, tail, sizeof(tail), 3), -EPROTO);
	assert_int_equal(check_exec(0, 0, tail, 0, 3), -EPROTO);
}

static void counts_the_descriptors_of_a_cell_report(void **state)
{
	struct aw_ipc_cell_ready c = { .has_pty = 1, .listener_count = 1 };

	(void)state;
	c.listener[0].kind = AW_IPC_LISTEN_PROXY;
	assert_int_equal(check_with(AW_IPC_CELL_READY, &c, sizeof(c), 5), 0);
	assert_int_equal(check_with(AW_IPC_CELL_READY, &c, sizeof(c), 4), -EPROTO);
	c.has_pty = 2;
	assert_int_equal(check_with(AW_IPC_CELL_READY, &c, sizeof(c), 6), -EPROTO);
}

static void refuses_types_that_are_not_in_the_table(void **state)
{
	(void)state;
	assert_int_equal(check_with((enum aw_ipc_type)0, "", 0, 0), -EPROTO);
	assert_int_equal(check_with(AW_IPC_TYPE_COUNT, "", 0, 0), -EPROTO);
	assert_int_equal(check_with(AW_IPC_GATE_READY, "", 0, 0), 0);
	assert_int_equal(check_with(AW_IPC_GATE_READY, "x", 1, 0), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(carries_a_message_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hands_descriptors_over_close_on_exec, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			refuses_a_message_of_another_role_and_closes_what_came_along, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(refuses_more_descriptors_than_the_table_says,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(refuses_a_record_that_is_too_long, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(refuses_a_record_shorter_than_its_head, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(tells_the_end_of_the_link, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			tells_the_end_also_when_something_of_ours_was_never_read, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(does_not_block_on_a_non_blocking_link, set_up,
						tear_down),
		cmocka_unit_test(refuses_each_malformed_verdict),
		cmocka_unit_test(refuses_each_malformed_setup),
		cmocka_unit_test(counts_the_strings_of_an_exec),
		cmocka_unit_test(counts_the_descriptors_of_a_cell_report),
		cmocka_unit_test(refuses_types_that_are_not_in_the_table),
	};

	return cmocka_run_group_tests_name("ipc", tests, NULL, NULL);
}
