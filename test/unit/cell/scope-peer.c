#include "scope-peer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cell/scope-internal.h"

static void put(struct scope_made *m, const void *bytes, size_t len)
{
	assert_true(len <= sizeof(m->data) - m->len);
	memcpy(m->data + m->len, bytes, len);
	m->len += len;
}

static void put_u32(struct scope_made *m, uint32_t value)
{
	while (m->len % 4 != 0)
		put(m, "", 1);
	put(m, &value, sizeof(value));
}

static void put_text(struct scope_made *m, const char *text)
{
	put_u32(m, (uint32_t)strlen(text));
	put(m, text, strlen(text) + 1);
}

static void put_field(struct scope_made *m, char code, const char *type, const char *text)
{
	char len = (char)strlen(text);

	while (m->len % 8 != 0)
		put(m, "", 1);
	put(m, &code, 1);
	put(m, "\1", 1);
	put(m, type, 2);
	if (*type != 'g') {
		put_text(m, text);
		return;
	}
	put(m, &len, 1);
	put(m, text, strlen(text) + 1);
}

static void put_answers(struct scope_made *m, uint32_t serial)
{
	while (m->len % 8 != 0)
		put(m, "", 1);
	put(m, "\5\1u", 4);
	put_u32(m, serial);
}

static void begin(struct scope_made *m, unsigned type)
{
	const uint16_t one = 1;
	const char start[] = { *(const char *)&one == 1 ? 'l' : 'B', (char)type, 0, 1 };

	*m = (struct scope_made){ .len = 0 };
	put(m, start, sizeof(start));
	put_u32(m, 0);
	put_u32(m, 99);
	put_u32(m, 0);
}

/* Between the fields and the body; returns where the body starts. */
static size_t end_fields(struct scope_made *m)
{
	uint32_t len = (uint32_t)m->len - 16;

	memcpy(m->data + 12, &len, sizeof(len));
	while (m->len % 8 != 0)
		put(m, "", 1);
	return m->len;
}

static void end(struct scope_made *m, size_t body)
{
	uint32_t len = (uint32_t)(m->len - body);

	memcpy(m->data + 4, &len, sizeof(len));
}

void scope_make_signal(struct scope_made *m, const char *member, const char *unit,
		       const char *result)
{
	size_t body;

	begin(m, AW_SCOPE_SIGNAL);
	put_field(m, 1, "o", "/org/freedesktop/systemd1");
	put_field(m, 2, "s", "org.freedesktop.systemd1.Manager");
	put_field(m, 3, "s", member);
	put_field(m, 7, "s", ":1.0");
	put_field(m, 8, "g", "uoss");
	body = end_fields(m);
	put_u32(m, 17);
	put_text(m, "/org/freedesktop/systemd1/job/17");
	put_text(m, unit);
	put_text(m, result);
	end(m, body);
}

void scope_make_error(struct scope_made *m, uint32_t serial, const char *words)
{
	size_t body;

	begin(m, AW_SCOPE_ERROR);
	put_answers(m, serial);
	put_field(m, 4, "s", "org.freedesktop.DBus.Error.Failed");
	if (words != NULL)
		put_field(m, 8, "g", "s");
	body = end_fields(m);
	if (words != NULL)
		put_text(m, words);
	end(m, body);
}

void scope_make_return(struct scope_made *m, uint32_t serial)
{
	size_t body;

	begin(m, AW_SCOPE_RETURN);
	put_answers(m, serial);
	put_field(m, 8, "g", "o");
	body = end_fields(m);
	put_text(m, "/org/freedesktop/systemd1/job/17");
	end(m, body);
}
