/*
 * buf - a byte buffer whose maximum is visible where it is made.
 *
 *	struct aw_buf b = AW_BUF_INIT(64 * 1024);
 *	r = aw_buf_printf(&b, "x=%d", x);        -ENOBUFS beyond the maximum, -ENOMEM
 *	aw_buf_fini(&b);                          or: autodrop(aw_buf_fini) struct aw_buf b = ...
 *
 * Grows by doubling up to the maximum. A failed append changes nothing.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/str.h"

struct aw_buf {
	char *data; /* not NUL-terminated unless aw_buf_text was asked */
	size_t len;
	size_t capacity;
	size_t max;
};

#define AW_BUF_INIT(maximum)          \
	{                             \
		NULL, 0, 0, (maximum) \
	}

void aw_buf_fini(struct aw_buf *buf);
int aw_buf_append(struct aw_buf *buf, const void *data, size_t len);
int aw_buf_append_str(struct aw_buf *buf, const char *text);
int aw_buf_printf(struct aw_buf *buf, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Make room for @len more bytes; the caller writes behind data + len and adds to len itself. */
int aw_buf_reserve(struct aw_buf *buf, size_t len);

/* Drop the first @len bytes (<= buf->len). */
void aw_buf_consume(struct aw_buf *buf, size_t len);

/* The content as C text, with a NUL that does not count; NULL when out of memory or at the maximum. */
const char *aw_buf_text(struct aw_buf *buf);
struct aw_str aw_buf_str(const struct aw_buf *buf);
