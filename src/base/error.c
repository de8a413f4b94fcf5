#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The functions behind the macros. */
#undef aw_fail
#undef aw_refuse
#undef aw_while

static void mark_if_cut(char *message, int wanted)
{
	if (wanted >= AW_ERROR_MESSAGE_MAX)
		memcpy(message + AW_ERROR_MESSAGE_MAX - 4, "...", 4);
}

int aw_fail(struct aw_error *err, int code, const char *format, ...)
{
	char what[AW_ERROR_MESSAGE_MAX];
	va_list args;
	int n;

	assert(code > 0);
	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	err->code = code;
	n = snprintf(err->message, sizeof(err->message), "%s: %s", what, strerror(code));
	mark_if_cut(err->message, n);
	return -code;
}

int aw_refuse(struct aw_error *err, int code, const char *format, ...)
{
	va_list args;
	int n;

	assert(code > 0);
	va_start(args, format);
	n = vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	err->code = code;
	mark_if_cut(err->message, n);
	return -code;
}

int aw_while(struct aw_error *err, const char *format, ...)
{
	char step[AW_ERROR_MESSAGE_MAX], story[AW_ERROR_MESSAGE_MAX];
	va_list args;
	int n;

	assert(err->code > 0);
	va_start(args, format);
	(void)vsnprintf(step, sizeof(step), format, args);
	va_end(args);
	memcpy(story, err->message, sizeof(story));
	n = snprintf(err->message, sizeof(err->message), "%s: %s", step, story);
	mark_if_cut(err->message, n);
	return -err->code;
}
