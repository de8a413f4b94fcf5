/*
 * One message in any role's ear. The first three bytes choose who listens, who speaks and how many
 * descriptors came along; what is accepted must keep the promises that readers of a payload rely on.
 */
#include "ipc/ipc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hold_setup(const void *payload, size_t fd_count)
{
	struct aw_ipc_gate_setup s;

	memcpy(&s, payload, sizeof(s));
	assert(s.resolvers.count <= AW_IPC_SERVERS_MAX);
	assert(s.listener_count <= AW_IPC_LISTENERS_MAX && fd_count == 1 + s.listener_count);
	assert(s.own_count <= 64 && s.host_count <= AW_IPC_HOSTS_MAX);
	for (uint32_t i = 0; i < s.host_count; i++)
		assert(strnlen(s.host[i].name, sizeof(s.host[i].name)) < sizeof(s.host[i].name));
}

static void hold_verdict(const void *payload)
{
	struct aw_ipc_verdict v;

	memcpy(&v, payload, sizeof(v));
	assert(strnlen(v.name, sizeof(v.name)) < sizeof(v.name));
	assert(strnlen(v.seen, sizeof(v.seen)) < sizeof(v.seen));
	assert(strnlen(v.method, sizeof(v.method)) < sizeof(v.method));
	assert(v.rule >= -1 && v.rule < AW_NET_RULES_MAX);
}

static void hold_exec(const char *payload, size_t len)
{
	struct aw_ipc_cell_exec e;
	const char *p, *end = payload + len;

	memcpy(&e, payload, sizeof(e));
	p = payload + sizeof(e);
	for (uint64_t i = 0; i < 1 + (uint64_t)e.argc + e.envc; i++) {
		assert(p < end);
		p += strnlen(p, (size_t)(end - p)) + 1;
	}
	assert(p == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_ipc_head head;
	const char *payload = (const char *)data + 3 + sizeof(head);
	struct aw_error err = { 0 };
	enum aw_ipc_role self, from;
	size_t fd_count;
	int r;

	if (size < 3 + sizeof(head))
		return 0;
	self = (enum aw_ipc_role)(1 + data[0] % 4);
	from = (enum aw_ipc_role)(1 + data[1] % 4);
	fd_count = data[2];
	r = aw_ipc_check(self, from, data + 3, size - 3, fd_count, &err);
	assert(r == 0 || (r == -EPROTO && err.code == EPROTO && err.message[0] != '\0'));
	if (r < 0)
		return 0;
	memcpy(&head, data + 3, sizeof(head));
	assert(head.type > 0 && head.type < AW_IPC_TYPE_COUNT && fd_count <= AW_IPC_FDS_MAX);
	if (head.type == AW_IPC_GATE_SETUP)
		hold_setup(payload, fd_count);
	if (head.type == AW_IPC_GATE_VERDICT)
		hold_verdict(payload);
	if (head.type == AW_IPC_CELL_EXEC)
		hold_exec(payload, head.len);
	return 0;
}
