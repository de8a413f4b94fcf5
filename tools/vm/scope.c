#include "scope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define MANAGER "org.freedesktop.systemd1.Manager"
#define MESSAGE_MAX 16384
#define HEADER_SIZE 16
#define ANSWER_LIMIT_S 5

enum { TYPE_CALL = 1, TYPE_RETURN = 2, TYPE_ERROR = 3, TYPE_SIGNAL = 4 };
enum { FIELD_PATH = 1, FIELD_INTERFACE, FIELD_MEMBER, FIELD_ERROR, FIELD_REPLY, FIELD_DESTINATION };
enum { FIELD_SIGNATURE = 8 };
enum { SERIAL_HELLO = 1, SERIAL_SUBSCRIBE, SERIAL_MATCH, SERIAL_START };

/* What is being written; positions count from `base`, where the present message starts. */
struct out {
	char data[MESSAGE_MAX];
	size_t len, base;
};

static void put(struct out *o, const void *bytes, size_t len)
{
	if (len > sizeof(o->data) - o->len)
		abort(); /* every message here is of a known size */
	memcpy(o->data + o->len, bytes, len);
	o->len += len;
}

static void align(struct out *o, size_t to)
{
	while ((o->len - o->base) % to != 0)
		put(o, "", 1);
}

static void put_u32(struct out *o, uint32_t value)
{
	align(o, 4);
	put(o, &value, sizeof(value));
}

static void put_string(struct out *o, const char *text)
{
	put_u32(o, (uint32_t)strlen(text));
	put(o, text, strlen(text) + 1);
}

static void put_signature(struct out *o, const char *text)
{
	uint8_t len = (uint8_t)strlen(text);

	put(o, &len, 1);
	put(o, text, strlen(text) + 1);
}

/* A length written later: returns where, with the array's first element aligned to 8. */
static size_t open_array(struct out *o)
{
	put_u32(o, 0);
	align(o, 8);
	return o->len;
}

/* The length is the word before the padding, which is nothing or 4 bytes; `start` tells which. */
static void close_array(struct out *o, size_t word, size_t start)
{
	uint32_t len = (uint32_t)(o->len - start);

	memcpy(o->data + word, &len, sizeof(len));
}

static size_t next_word(struct out *o)
{
	align(o, 4);
	return o->len;
}

static void put_field(struct out *o, uint8_t code, const char *signature, const char *text)
{
	if (text == NULL)
		return;
	align(o, 8);
	put(o, &code, 1);
	put_signature(o, signature);
	if (*signature == 'g')
		put_signature(o, text);
	else
		put_string(o, text);
}

struct call {
	const char *destination, *path, *interface, *member, *signature;
	uint32_t serial;
};

/* Writes the header; the body length is set by end_call. */
static size_t begin_call(struct out *o, const struct call *call)
{
	static const char start[4] = { 'l', TYPE_CALL, 0, 1 };
	size_t word, first;

	o->base = o->len;
	put(o, start, sizeof(start));
	put_u32(o, 0);
	put_u32(o, call->serial);
	word = next_word(o);
	first = open_array(o);
	put_field(o, FIELD_PATH, "o", call->path);
	put_field(o, FIELD_INTERFACE, "s", call->interface);
	put_field(o, FIELD_MEMBER, "s", call->member);
	put_field(o, FIELD_DESTINATION, "s", call->destination);
	put_field(o, FIELD_SIGNATURE, "g", call->signature);
	close_array(o, word, first);
	align(o, 8);
	return o->len;
}

static void end_call(struct out *o, size_t body)
{
	uint32_t len = (uint32_t)(o->len - body);

	memcpy(o->data + o->base + 4, &len, sizeof(len));
}

static void put_u64_property(struct out *o, const char *name, uint64_t value)
{
	align(o, 8);
	put_string(o, name);
	put_signature(o, "t");
	align(o, 8);
	put(o, &value, sizeof(value));
}

static void put_pids_property(struct out *o, pid_t pid)
{
	align(o, 8);
	put_string(o, "PIDs");
	put_signature(o, "au");
	put_u32(o, sizeof(uint32_t));
	put_u32(o, (uint32_t)pid);
}

static void put_true_property(struct out *o, const char *name)
{
	align(o, 8);
	put_string(o, name);
	put_signature(o, "b");
	put_u32(o, 1);
}

static void put_start(struct out *o, const char *name, pid_t pid, const struct scope_limits *limits)
{
	static const struct call call = {
		"org.freedesktop.systemd1", "/org/freedesktop/systemd1", MANAGER,
		"StartTransientUnit",	    "ssa(sv)a(sa(sv))",		 SERIAL_START
	};
	size_t body, word, first;

	body = begin_call(o, &call);
	put_string(o, name);
	put_string(o, "fail");
	word = next_word(o);
	first = open_array(o);
	put_pids_property(o, pid);
	put_true_property(o, "Delegate");
	put_u64_property(o, "MemoryMax", limits->memory_bytes);
	put_u64_property(o, "MemorySwapMax", 0);
	put_u64_property(o, "TasksMax", limits->tasks);
	if (limits->cpu_usec_per_s != 0)
		put_u64_property(o, "CPUQuotaPerSecUSec", limits->cpu_usec_per_s);
	close_array(o, word, first);
	word = next_word(o);
	first = open_array(o);
	close_array(o, word, first);
	end_call(o, body);
}

static void put_plain_call(struct out *o, const struct call *call, const char *text)
{
	size_t body = begin_call(o, call);

	if (text != NULL)
		put_string(o, text);
	end_call(o, body);
}

/* The bus needs a name for us, and both it and systemd pass no signal on that nobody asked for. */
static void put_bus_greeting(struct out *o)
{
	static const struct call calls[] = {
		{ "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", NULL,
		  SERIAL_HELLO },
		{ "org.freedesktop.systemd1", "/org/freedesktop/systemd1", MANAGER, "Subscribe", NULL,
		  SERIAL_SUBSCRIBE },
		{ "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", "s",
		  SERIAL_MATCH },
	};

	put_plain_call(o, &calls[0], NULL);
	put_plain_call(o, &calls[1], NULL);
	put_plain_call(o, &calls[2], "type='signal',interface='" MANAGER "',member='JobRemoved'");
}

static int socket_path(bool through_bus, char *path, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	int len;

	if (getuid() == 0)
		len = snprintf(path, size, "/run/%s",
			       through_bus ? "dbus/system_bus_socket" : "systemd/private");
	else if (dir != NULL)
		len = snprintf(path, size, "%s/%s", dir, through_bus ? "bus" : "systemd/private");
	else
		len = snprintf(path, size, "/run/user/%u/%s", getuid(),
			       through_bus ? "bus" : "systemd/private");
	return len > 0 && (size_t)len < size ? 0 : -ENAMETOOLONG;
}

static int dial(bool through_bus)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = ANSWER_LIMIT_S };
	int fd, error;

	error = socket_path(through_bus, address.sun_path, sizeof(address.sun_path));
	if (error < 0)
		return error;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		error = -errno;
		(void)close(fd);
		return error;
	}
	return fd;
}

/* What was read and not yet looked at. */
struct in {
	int fd;
	size_t len;
	char data[MESSAGE_MAX];
};

static int read_more(struct in *in)
{
	ssize_t got;

	if (in->len == sizeof(in->data))
		return -EMSGSIZE;
	got = read(in->fd, in->data + in->len, sizeof(in->data) - in->len);
	if (got <= 0)
		return got == 0 ? -ECONNRESET : -errno;
	in->len += (size_t)got;
	return 0;
}

static void drop(struct in *in, size_t len)
{
	memmove(in->data, in->data + len, in->len - len);
	in->len -= len;
}

/* The server's answers to AUTH and DATA: lines that start with DATA and OK. */
static int read_greeting(struct in *in)
{
	const char *end;
	bool accepted = false;
	int error;

	while (!accepted) {
		end = memmem(in->data, in->len, "\r\n", 2);
		if (end == NULL) {
			error = read_more(in);
			if (error < 0)
				return error;
			continue;
		}
		if (in->len >= 8 && memcmp(in->data, "REJECTED", 8) == 0)
			return -EPERM;
		accepted = memcmp(in->data, "OK", 2) == 0;
		drop(in, (size_t)(end - in->data) + 2);
	}
	return 0;
}

static uint32_t u32_at(const char *data)
{
	uint32_t value;

	memcpy(&value, data, sizeof(value));
	return value;
}

/* Waits for a whole message; returns its length. */
static int read_message(struct in *in)
{
	uint64_t need = HEADER_SIZE;
	int error;

	for (;;) {
		if (in->len >= HEADER_SIZE)
			need = HEADER_SIZE + (((uint64_t)u32_at(in->data + 12) + 7) & ~7ULL) +
			       u32_at(in->data + 4);
		if (need > sizeof(in->data))
			return -EMSGSIZE;
		if (in->len >= need)
			return (int)need;
		error = read_more(in);
		if (error < 0)
			return error;
	}
}

/*
 * Does the header hold field REPLY_SERIAL (signature "u") with this value?  It is found by its
 * bytes, since all other fields are strings: none holds a zero before its end.
 */
static bool answers(const char *message, uint32_t serial)
{
	char field[8] = { FIELD_REPLY, 1, 'u', 0 };

	memcpy(field + 4, &serial, sizeof(serial));
	return memmem(message + HEADER_SIZE, u32_at(message + 12), field, sizeof(field)) != NULL;
}

/*
 * The job's end is JobRemoved (u id, o job, s unit, s result), and the answer to the call comes
 * before it.  Returns 1 when it is over, 0 for a message that does not matter.
 */
static int look_at(const char *message, const char *name, char *why, size_t why_size)
{
	size_t body_len = u32_at(message + 4);
	const char *body = message + HEADER_SIZE + ((u32_at(message + 12) + 7) & ~7U);
	const char *unit;

	if (message[1] == TYPE_ERROR && answers(message, SERIAL_START)) {
		(void)snprintf(why, why_size, "%.*s", (int)body_len - 4, body + 4);
		return -EREMOTEIO;
	}
	if (message[1] != TYPE_SIGNAL || memmem(message, HEADER_SIZE + u32_at(message + 12),
						"JobRemoved", sizeof("JobRemoved")) == NULL)
		return 0;
	unit = memmem(body, body_len, name, strlen(name) + 1);
	if (unit == NULL)
		return 0;
	if (memmem(unit, body_len - (size_t)(unit - body), "done", sizeof("done")) != NULL)
		return 1;
	(void)snprintf(why, why_size, "the job failed");
	return -EREMOTEIO;
}

static int wait_for_job(struct in *in, const char *name, char *why, size_t why_size)
{
	int len, over;

	for (;;) {
		len = read_message(in);
		if (len < 0)
			return len;
		over = look_at(in->data, name, why, why_size);
		if (over != 0)
			return over < 0 ? over : 0;
		drop(in, (size_t)len);
	}
}

int scope_start(const char *name, pid_t pid, const struct scope_limits *limits, bool through_bus,
		char *why, size_t why_size)
{
	static const char greeting[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	struct out out = { .len = 0 };
	struct in in = { .len = 0 };
	int error;

	*why = '\0';
	in.fd = dial(through_bus);
	if (in.fd < 0)
		return in.fd;
	put(&out, greeting, sizeof(greeting) - 1);
	if (through_bus)
		put_bus_greeting(&out);
	put_start(&out, name, pid, limits);
	error = send(in.fd, out.data, out.len, MSG_NOSIGNAL) < 0 ? -errno : read_greeting(&in);
	if (error == 0)
		error = wait_for_job(&in, name, why, why_size);
	(void)close(in.fd);
	return error;
}
