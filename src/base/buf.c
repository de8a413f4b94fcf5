#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 256

void aw_buf_fini(struct aw_buf *buf)
{
	free(buf->data);
	buf->data = NULL;
	buf->len = buf->capacity = 0;
}

int aw_buf_reserve(struct aw_buf *buf, size_t len)
{
	size_t wanted, capacity = buf->capacity;
	char *data;

	if (len > buf->max || buf->len > buf->max - len)
		return -ENOBUFS;
	wanted = buf->len + len;
	if (wanted <= buf->capacity)
		return 0;
	if (capacity == 0)
		capacity = buf->max < CAPACITY_FIRST ? buf->max : CAPACITY_FIRST;
	while (capacity < wanted)
		capacity = capacity > buf->max / 2 ? buf->max : capacity * 2;
	data = realloc(buf->data, capacity);
	if (data == NULL)
		return -ENOMEM;
	buf->data = data;
	buf->capacity = capacity;
	return 0;
}

int aw_buf_append(struct aw_buf *buf, const void *data, size_t len)
{
	int r;

	if (len == 0)
		return 0;
	r = aw_buf_reserve(buf, len);
	if (r < 0)
		return r;
	memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	return 0;
}

int aw_buf_append_str(struct aw_buf *buf, const char *text)
{
	return aw_buf_append(buf, text, strlen(text));
}

int aw_buf_printf(struct aw_buf *buf, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int n, r;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	r = aw_buf_append(buf, text, (size_t)n);
	free(text);
	return r;
}

void aw_buf_consume(struct aw_buf *buf, size_t len)
{
	assert(len <= buf->len);
	if (len == 0)
		return;
	memmove(buf->data, buf->data + len, buf->len - len);
	buf->len -= len;
}

const char *aw_buf_text(struct aw_buf *buf)
{
	if (aw_buf_reserve(buf, 1) < 0)
		return NULL;
	buf->data[buf->len] = '\0';
	return buf->data;
}

struct aw_str aw_buf_str(const struct aw_buf *buf)
{
	return (struct aw_str){ buf->data, buf->len };
}
