/*
 * A mount table from anywhere. The point of a line is bounded and ends in a NUL; a smaller buffer has
 * it whole or not at all; written as the kernel writes it (seq_path: blank, tab, line feed and
 * backslash as octal) it is read as the same; and a table has exactly the points of its lines.
 */
#include <limits.h>
#include <stdlib.h>

#include "cell/rearm.h"
#include "cell/workspace.h"
#include "fuzz.h"

#define ESCAPED_MAX (4 * PATH_MAX + 64)

/* "36 35 98:0 / POINT rw", with @point as the kernel writes it; returns the length. */
static size_t write_line(const char *point, char *out)
{
	static const char head[] = "36 35 98:0 / ";
	size_t n = sizeof(head) - 1;

	memcpy(out, head, n);
	for (; *point != '\0'; point++) {
		unsigned char c = (unsigned char)*point;

		if (strchr(" \t\n\\", *point) == NULL) {
			out[n++] = *point;
			continue;
		}
		out[n++] = '\\';
		out[n++] = (char)('0' + c / 64);
		out[n++] = (char)('0' + c / 8 % 8);
		out[n++] = (char)('0' + c % 8);
	}
	memcpy(out + n, " rw", 3);
	return n + 3;
}

static void hold_point(const char *point)
{
	static char line[ESCAPED_MAX];
	char again[PATH_MAX];
	struct aw_str written = { line, write_line(point, line) };

	assert(aw_mountinfo_point(written, again, sizeof(again)));
	assert(strcmp(again, point) == 0);
	assert(aw_mountinfo_is_drive(written, point));
	assert(aw_mountinfo_has(written, point));
}

static void hold_sizes(struct aw_str line, const char *point, size_t raw_len)
{
	char small[64];

	for (size_t size = 1; size <= sizeof(small); size++) {
		memset(small, 'x', sizeof(small));
		if (!aw_mountinfo_point(line, small, size))
			continue;
		assert(raw_len < size && memcmp(small, point, raw_len + 1) == 0);
	}
}

static void hold_line(struct aw_str line, struct aw_str table)
{
	char point[PATH_MAX];
	size_t len;

	memset(point, 'x', sizeof(point));
	if (!aw_mountinfo_point(line, point, sizeof(point))) {
		assert(!aw_mountinfo_is_drive(line, "/"));
		return;
	}
	len = strnlen(point, sizeof(point));
	assert(len < sizeof(point) && len <= line.len);
	assert(aw_mountinfo_has(table, point));
	hold_point(point);
	/* With a NUL written in octal, which no kernel does, the point ends there for everybody. */
	if (memchr(line.ptr, '\\', line.len) == NULL && memchr(line.ptr, '\0', line.len) == NULL)
		hold_sizes(line, point, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct aw_str table = fuzz_str(data, size), rest = table, line;
	size_t lines = 0;

	/* Each line asks the whole table: as many as stay quick. */
	while (lines++ < 64 && aw_str_next(&rest, '\n', &line))
		hold_line(line, table);
	return 0;
}
