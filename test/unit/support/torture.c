#include "support/torture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ATTEMPTS_MAX 100000

/* Allocations until one fails; 0: none does. The linker's --wrap leaves no other way to pass it. */
static int countdown;
static bool has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
int __real_vasprintf(char **ret, const char *format, va_list args);
int __real___vasprintf_chk(char **ret, int flag, const char *format, va_list args);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args);
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...);

static bool is_to_fail(void)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	has_failed = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return is_to_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_to_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return is_to_fail() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return is_to_fail() ? NULL : __real_reallocarray(old, count, size);
}

char *__wrap_strdup(const char *text)
{
	return is_to_fail() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len)
{
	return is_to_fail() ? NULL : __real_strndup(text, len);
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
	return is_to_fail() ? -1 : __real_vasprintf(ret, format, args);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = __wrap_vasprintf(ret, format, args);
	va_end(args);
	return n;
}

/* What the two above become under _FORTIFY_SOURCE. */
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
	return is_to_fail() ? -1 : __real___vasprintf_chk(ret, flag, format, args);
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = __wrap___vasprintf_chk(ret, flag, format, args);
	va_end(args);
	return n;
}

int aw_torture(int (*attempt)(void *state), void *state)
{
	for (int n = 1; n <= ATTEMPTS_MAX; n++) {
		int r;

		has_failed = false;
		countdown = n;
		r = attempt(state);
		countdown = 0;
		if (!has_failed) {
			assert_true(r >= 0);
			return n - 1;
		}
		assert_int_equal(r, -ENOMEM);
	}
	fail_msg("more than %d allocations", ATTEMPTS_MAX);
	return -1;
}
