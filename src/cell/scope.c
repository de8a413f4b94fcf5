#include "cell/scope.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "base/proc.h"
#include "base/str.h"
#include "cell/scope-internal.h"

#define SENT_MAX 8192
#define READ_STEP 4096
#define WORDS_MAX 256

/*
 * The bus first: systemd sets up its whole object tree for each connection to its own socket, which
 * costs more than the bus daemon's part. Without a bus (no dbus-user-session) it is there all the same.
 */
static const struct {
	const char *name;
	bool is_bus;
} sockets[] = { { "bus", true }, { "systemd/private", false } };

/* Process numbers are sent, so the other side has to mean the same processes by them. */
static int check_peer(int fd, struct aw_error *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return aw_fail(err, errno, "ask who the user's systemd is");
	if (peer.uid != geteuid())
		return aw_refuse(err, ENOTSUP, "the user's systemd is another user's: uid %u",
				 peer.uid);
	if (peer.pid == 0)
		return aw_refuse(err, ENOTSUP,
				 "the user's systemd lives outside this container and numbers "
				 "processes otherwise");
	return 0;
}

/* By the uid and not by XDG_RUNTIME_DIR, which su hands on from the user before. */
static int dial(const char *name, struct aw_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return aw_fail(err, errno, "socket");
	(void)aw_str_format(address.sun_path, sizeof(address.sun_path), "/run/user/%u/%s",
			    geteuid(), name);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return aw_fail(err, errno, "connect to %s", address.sun_path);
	return check_peer(fd, err) < 0 ? -err->code : AW_TAKE_FD(fd);
}

int aw_scope_connect(struct aw_scope *ret, struct aw_error *err)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(sockets); i++) {
		int fd = dial(sockets[i].name, err);

		if (fd >= 0) {
			*ret = (struct aw_scope){
				.fd = fd,
				.is_bus = sockets[i].is_bus,
				.in = AW_BUF_INIT(AW_SCOPE_MESSAGE_MAX + READ_STEP),
			};
			return 0;
		}
		if (fd != -ENOENT && fd != -ECONNREFUSED)
			break;
	}
	err->code = ENOTSUP;
	return -ENOTSUP;
}

/* A fresh connection takes this much at once. */
static int send_all(const struct aw_scope *scope, const struct aw_buf *out)
{
	ssize_t sent = send(scope->fd, out->data, out->len, MSG_NOSIGNAL);

	if (sent < 0)
		return -errno;
	return (size_t)sent == out->len ? 0 : -EIO;
}

int aw_scope_start(struct aw_scope *scope, const char *unit, pid_t pid,
		   const struct aw_scope_property *properties, size_t count, struct aw_error *err)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(SENT_MAX);
	int r = aw_str_format(scope->unit, sizeof(scope->unit), "%s", unit);

	if (r >= 0)
		r = aw_scope_write_start(&out, scope->is_bus, unit, pid, properties, count);
	if (r >= 0)
		r = send_all(scope, &out);
	return r < 0 ? aw_fail(err, -r, "ask systemd for %s", unit) : 0;
}

/* The answers to AUTH and DATA are lines: "DATA", then "OK" with the server's name. */
static int read_greeting(struct aw_scope *scope, struct aw_error *err)
{
	const char *end;

	while (!scope->is_open) {
		struct aw_str line = aw_buf_str(&scope->in);

		end = line.len == 0 ? NULL : memmem(line.ptr, line.len, "\r\n", 2);
		if (end == NULL)
			return 0;
		line.len = (size_t)(end - line.ptr);
		scope->is_open = aw_str_starts(line, "OK");
		if (!scope->is_open && !aw_str_starts(line, "DATA"))
			return aw_refuse(err, ENOTSUP, "systemd's bus does not let us in");
		aw_buf_consume(&scope->in, line.len + 2);
	}
	return 0;
}

static int refuse(const struct aw_scope *scope, struct aw_str words, struct aw_error *err)
{
	char text[WORDS_MAX];

	(void)aw_str_escape(words, text, sizeof(text));
	return aw_refuse(err, ENOTSUP, "systemd refuses %s: %s", scope->unit, text);
}

/*
 * The answer to our call only says that a job is queued; JobRemoved says how the job ended. An error of
 * Subscribe is none of ours: another connection of this name may have subscribed already.
 * Returns 1 when the process is in the scope, 0 when there is more to wait for.
 */
static int judge(const struct aw_scope *scope, const struct aw_scope_message *m,
		 struct aw_error *err)
{
	if (m->type == AW_SCOPE_ERROR && m->answers != AW_SCOPE_SUBSCRIBE)
		return refuse(scope, m->text.len > 0 ? m->text : m->error_name, err);
	if (m->type != AW_SCOPE_SIGNAL || !aw_str_is(m->unit, scope->unit))
		return 0;
	return aw_str_is(m->result, "done") ? 1 : refuse(scope, m->result, err);
}

/* Returns as judge. */
static int read_messages(struct aw_scope *scope, struct aw_error *err)
{
	int r = read_greeting(scope, err);

	while (r == 0 && scope->is_open) {
		struct aw_scope_message message;
		ssize_t len = aw_scope_parse(scope->in.data, scope->in.len, &message);

		if (len < 0)
			return aw_refuse(err, ENOTSUP, "systemd's bus sent what is no message");
		if (len == 0)
			break;
		r = judge(scope, &message, err);
		aw_buf_consume(&scope->in, (size_t)len);
	}
	return r;
}

static int receive(struct aw_scope *scope, struct aw_error *err)
{
	int r = aw_buf_reserve(&scope->in, READ_STEP);
	ssize_t got;

	if (r < 0)
		return aw_fail(err, -r, "read systemd's answer");
	got = recv(scope->fd, scope->in.data + scope->in.len, READ_STEP, MSG_DONTWAIT);
	if (got < 0 && errno != EAGAIN && errno != EINTR)
		return aw_fail(err, errno, "read systemd's answer");
	if (got == 0)
		return aw_refuse(err, ENOTSUP, "systemd's bus closed the connection");
	scope->in.len += got > 0 ? (size_t)got : 0;
	return 0;
}

int aw_scope_wait(struct aw_scope *scope, unsigned timeout_ms, struct aw_error *err)
{
	uint64_t end = aw_now_ns() + (uint64_t)timeout_ms * 1000000, now;
	struct pollfd poll_in = { .fd = scope->fd, .events = POLLIN };
	int r = 0;

	while (r == 0) {
		now = aw_now_ns();
		/* Rounded up: with less than a millisecond left this would spin. */
		if (now >= end || poll(&poll_in, 1, (int)((end - now) / 1000000 + 1)) == 0)
			return aw_refuse(err, ETIMEDOUT, "systemd gave no answer within %u ms",
					 timeout_ms);
		r = receive(scope, err);
		if (r == 0)
			r = read_messages(scope, err);
	}
	return r < 0 ? r : 0;
}

int aw_scope_stop(const char *unit, unsigned timeout_ms, struct aw_error *err)
{
	autodrop(aw_buf_fini) struct aw_buf out = AW_BUF_INIT(SENT_MAX);
	autodrop(aw_scope_fini) struct aw_scope scope = AW_SCOPE_INIT;
	int r = aw_scope_connect(&scope, err);

	if (r < 0)
		return r;
	r = aw_str_format(scope.unit, sizeof(scope.unit), "%s", unit);
	if (r >= 0)
		r = aw_scope_write_stop(&out, scope.is_bus, unit);
	if (r >= 0)
		r = send_all(&scope, &out);
	if (r < 0)
		return aw_fail(err, -r, "stop %s", unit);
	return aw_scope_wait(&scope, timeout_ms, err);
}

void aw_scope_fini(struct aw_scope *scope)
{
	scope->fd = aw_fd_close(scope->fd);
	aw_buf_fini(&scope->in);
}
