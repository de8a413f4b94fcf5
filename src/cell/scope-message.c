#include "cell/scope-internal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/own.h"

#define MANAGER "org.freedesktop.systemd1.Manager"
#define HEADER_SIZE 16

enum field {
	FIELD_PATH = 1,
	FIELD_INTERFACE,
	FIELD_MEMBER,
	FIELD_ERROR_NAME,
	FIELD_REPLY_SERIAL,
	FIELD_DESTINATION,
	FIELD_SENDER,
	FIELD_SIGNATURE
};

struct call {
	enum aw_scope_serial serial;
	const char *destination, *path, *interface, *member, *signature;
};

static const char own_order = __BYTE_ORDER == __LITTLE_ENDIAN ? 'l' : 'B';

/* What is being written: positions count from `base`, the present message's start. */
struct out {
	struct aw_buf *buf;
	size_t base;
	int failed; /* the first -errno */
};

static void put(struct out *o, const void *bytes, size_t len)
{
	if (o->failed == 0)
		o->failed = aw_buf_append(o->buf, bytes, len);
}

static void align(struct out *o, size_t to)
{
	static const char zeros[8];

	put(o, zeros, (to - (o->buf->len - o->base) % to) % to);
}

static void put_u32(struct out *o, uint32_t value)
{
	align(o, 4);
	put(o, &value, sizeof(value));
}

static void put_u64(struct out *o, uint64_t value)
{
	align(o, 8);
	put(o, &value, sizeof(value));
}

static void put_text(struct out *o, const char *text)
{
	put_u32(o, (uint32_t)strlen(text));
	put(o, text, strlen(text) + 1);
}

static void put_signature(struct out *o, const char *text)
{
	uint8_t len = (uint8_t)strlen(text);

	put(o, &len, 1);
	put(o, text, strlen(text) + 1U);
}

/* A length that is known later: where it goes, and where what it counts starts. */
struct array {
	size_t length_at, start;
};

static struct array open_array(struct out *o)
{
	struct array array;

	put_u32(o, 0);
	array.length_at = o->buf->len - sizeof(uint32_t);
	align(o, 8);
	array.start = o->buf->len;
	return array;
}

static void close_array(struct out *o, const struct array *array)
{
	uint32_t len = (uint32_t)(o->buf->len - array->start);

	if (o->failed == 0)
		memcpy(o->buf->data + array->length_at, &len, sizeof(len));
}

static void put_field(struct out *o, enum field code, const char *signature, const char *text)
{
	uint8_t byte = (uint8_t)code;

	if (text == NULL)
		return;
	align(o, 8);
	put(o, &byte, 1);
	put_signature(o, signature);
	if (code == FIELD_SIGNATURE)
		put_signature(o, text);
	else
		put_text(o, text);
}

/* Returns what end_call needs. */
static struct array begin_call(struct out *o, const struct call *call)
{
	const char start[] = { own_order, AW_SCOPE_CALL, 0, 1 };
	struct array fields, body;

	o->base = o->buf->len;
	put(o, start, sizeof(start));
	body.length_at = o->buf->len;
	put_u32(o, 0);
	put_u32(o, call->serial);
	fields = open_array(o);
	put_field(o, FIELD_PATH, "o", call->path);
	put_field(o, FIELD_INTERFACE, "s", call->interface);
	put_field(o, FIELD_MEMBER, "s", call->member);
	put_field(o, FIELD_DESTINATION, "s", call->destination);
	put_field(o, FIELD_SIGNATURE, "g", call->signature);
	close_array(o, &fields);
	align(o, 8);
	body.start = o->buf->len;
	return body;
}

static void put_rate(struct out *o, const struct aw_scope_property *property)
{
	struct array devices = open_array(o);

	put_text(o, property->text);
	put_u64(o, property->number);
	close_array(o, &devices);
}

static void put_property(struct out *o, const struct aw_scope_property *property)
{
	static const char *const signatures[] = {
		[AW_SCOPE_FLAG] = "b", [AW_SCOPE_NUMBER] = "t",   [AW_SCOPE_TEXT] = "s",
		[AW_SCOPE_PID] = "au", [AW_SCOPE_RATE] = "a(st)",
	};

	align(o, 8);
	put_text(o, property->name);
	put_signature(o, signatures[property->type]);
	switch (property->type) {
	case AW_SCOPE_FLAG:
		put_u32(o, (uint32_t)property->number);
		break;
	case AW_SCOPE_NUMBER:
		put_u64(o, property->number);
		break;
	case AW_SCOPE_TEXT:
		put_text(o, property->text);
		break;
	case AW_SCOPE_PID:
		put_u32(o, sizeof(uint32_t));
		put_u32(o, (uint32_t)property->number);
		break;
	case AW_SCOPE_RATE:
		put_rate(o, property);
		break;
	}
}

/*
 * Without Delegate= one OOM kill would end the whole scope (OOMPolicy=stop); without CollectMode= a
 * scope that failed would stay in systemd's list until somebody resets it.
 */
static void put_start(struct out *o, const char *unit, pid_t pid,
		      const struct aw_scope_property *properties, size_t count)
{
	static const struct call call = {
		AW_SCOPE_ASK, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		MANAGER,      "StartTransientUnit",       "ssa(sv)a(sa(sv))"
	};
	const struct aw_scope_property always[] = {
		{ "PIDs", AW_SCOPE_PID, (uint64_t)pid, NULL },
		{ "Delegate", AW_SCOPE_FLAG, 1, NULL },
		{ "CollectMode", AW_SCOPE_TEXT, 0, "inactive-or-failed" },
	};
	struct array body = begin_call(o, &call), list, none;

	put_text(o, unit);
	put_text(o, "fail");
	list = open_array(o);
	for (size_t i = 0; i < AW_ARRAY_LEN(always); i++)
		put_property(o, &always[i]);
	for (size_t i = 0; i < count; i++)
		put_property(o, &properties[i]);
	close_array(o, &list);
	none = open_array(o);
	close_array(o, &none);
	close_array(o, &body);
}

/* The bus wants to know us, and neither it nor systemd passes a signal on that nobody asked for. */
static void put_bus_calls(struct out *o)
{
	static const struct call hello = { AW_SCOPE_HELLO,
					   "org.freedesktop.DBus",
					   "/org/freedesktop/DBus",
					   "org.freedesktop.DBus",
					   "Hello",
					   NULL };
	static const struct call subscribe = { AW_SCOPE_SUBSCRIBE,
					       "org.freedesktop.systemd1",
					       "/org/freedesktop/systemd1",
					       MANAGER,
					       "Subscribe",
					       NULL };
	static const struct call match = { AW_SCOPE_MATCH,
					   "org.freedesktop.DBus",
					   "/org/freedesktop/DBus",
					   "org.freedesktop.DBus",
					   "AddMatch",
					   "s" };
	struct array body;

	body = begin_call(o, &hello);
	close_array(o, &body);
	body = begin_call(o, &subscribe);
	close_array(o, &body);
	body = begin_call(o, &match);
	put_text(o, "type='signal',interface='" MANAGER "',member='JobRemoved'");
	close_array(o, &body);
}

static struct out greet(struct aw_buf *out, bool is_bus)
{
	/* EXTERNAL without a name: the server takes the uid from the socket's credentials. */
	static const char greeting[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	struct out o = { .buf = out };

	put(&o, greeting, sizeof(greeting) - 1);
	if (is_bus)
		put_bus_calls(&o);
	return o;
}

int aw_scope_write_start(struct aw_buf *out, bool is_bus, const char *unit, pid_t pid,
			 const struct aw_scope_property *properties, size_t count)
{
	struct out o = greet(out, is_bus);

	put_start(&o, unit, pid, properties, count);
	return o.failed;
}

int aw_scope_write_stop(struct aw_buf *out, bool is_bus, const char *unit)
{
	static const struct call call = { AW_SCOPE_ASK,
					  "org.freedesktop.systemd1",
					  "/org/freedesktop/systemd1",
					  MANAGER,
					  "StopUnit",
					  "ss" };
	struct out o = greet(out, is_bus);
	struct array body = begin_call(&o, &call);

	put_text(&o, unit);
	put_text(&o, "replace");
	close_array(&o, &body);
	return o.failed;
}

/* Reading: what does not fit makes the reader bad, and everything read from then on is empty. */
struct reader {
	const char *data;
	size_t len, at;
	bool is_bad;
};

static const char *take(struct reader *r, size_t alignment, size_t len)
{
	size_t padding = (alignment - r->at % alignment) % alignment;

	if (r->is_bad || padding > r->len - r->at || len > r->len - r->at - padding) {
		r->is_bad = true;
		return NULL;
	}
	r->at += padding + len;
	return r->data + r->at - len;
}

static uint32_t take_u32(struct reader *r)
{
	const char *bytes = take(r, 4, sizeof(uint32_t));
	uint32_t value = 0;

	if (bytes != NULL)
		memcpy(&value, bytes, sizeof(value));
	return value;
}

static struct aw_str take_bytes(struct reader *r, size_t len)
{
	const char *bytes = len < r->len ? take(r, 1, len + 1) : NULL;

	if (bytes == NULL || bytes[len] != '\0') {
		r->is_bad = true;
		return (struct aw_str){ 0 };
	}
	return (struct aw_str){ bytes, len };
}

static struct aw_str take_text(struct reader *r)
{
	return take_bytes(r, take_u32(r));
}

static struct aw_str take_signature(struct reader *r)
{
	const char *len = take(r, 1, 1);

	if (len == NULL)
		return (struct aw_str){ 0 };
	return take_bytes(r, (uint8_t)*len);
}

/* Only texts, signatures and u32 are values of fields (D-Bus specification, "Header Fields"). */
static void read_field(struct reader *r, struct aw_scope_message *m, struct aw_str *signature)
{
	const char *code = take(r, 8, 1);
	struct aw_str type = take_signature(r), text;

	if (r->is_bad)
		return;
	if (aw_str_is(type, "u")) {
		uint32_t number = take_u32(r);

		if (*code == FIELD_REPLY_SERIAL)
			m->answers = number;
		return;
	}
	if (!aw_str_is(type, "s") && !aw_str_is(type, "o") && !aw_str_is(type, "g")) {
		r->is_bad = true;
		return;
	}
	text = aw_str_is(type, "g") ? take_signature(r) : take_text(r);
	if (*code == FIELD_MEMBER)
		m->member = text;
	else if (*code == FIELD_ERROR_NAME)
		m->error_name = text;
	else if (*code == FIELD_SIGNATURE)
		*signature = text;
}

static void read_body(struct reader *r, struct aw_str signature, struct aw_scope_message *m)
{
	if (m->type == AW_SCOPE_SIGNAL && aw_str_is(m->member, "JobRemoved") &&
	    aw_str_is(signature, "uoss")) {
		(void)take_u32(r);  /* the job's number */
		(void)take_text(r); /* and path */
		m->unit = take_text(r);
		m->result = take_text(r);
	} else if (aw_str_starts(signature, "s")) {
		m->text = take_text(r);
	}
}

ssize_t aw_scope_parse(const char *data, size_t len, struct aw_scope_message *ret)
{
	struct reader fields = { .data = data, .len = HEADER_SIZE, .at = 4 }, body;
	struct aw_str signature = { 0 };
	uint64_t body_len, fields_end, total;

	if (len < HEADER_SIZE)
		return 0;
	body_len = take_u32(&fields);
	(void)take_u32(&fields); /* the sender's serial */
	fields_end = HEADER_SIZE + (uint64_t)take_u32(&fields);
	total = (fields_end + 7) / 8 * 8 + body_len;
	if (data[0] != own_order || data[3] != 1 || total > AW_SCOPE_MESSAGE_MAX)
		return -EPROTO;
	if (len < total)
		return 0;
	*ret = (struct aw_scope_message){ .type = (uint8_t)data[1] };
	fields.len = (size_t)fields_end;
	while (fields.at < fields.len && !fields.is_bad)
		read_field(&fields, ret, &signature);
	body = (struct reader){ .data = data + total - body_len, .len = (size_t)body_len };
	read_body(&body, signature, ret);
	return fields.is_bad || body.is_bad ? -EPROTO : (ssize_t)total;
}
