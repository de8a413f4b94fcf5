#include "cell/git-config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

struct reader {
	struct aw_str text;
	size_t at;          /* behind the end: the end was read */
	char *name, *value; /* each with room for all of the text */
	size_t section_len, name_len;
	struct aw_git_config *ret;
};

/* The next character; a line ends with a line feed, whatever is in front of it, and at the end. */
static int next(struct reader *r)
{
	unsigned char c;

	if (r->at >= r->text.len) {
		r->at = r->text.len + 1;
		return '\n';
	}
	c = (unsigned char)r->text.ptr[r->at++];
	if (c == '\r' && r->at < r->text.len && r->text.ptr[r->at] == '\n')
		c = (unsigned char)r->text.ptr[r->at++];
	return c;
}

static bool is_at_end(const struct reader *r)
{
	return r->at > r->text.len;
}

/* git's own classes of characters, whatever the locale says. */
static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name_char(int c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static char lower(int c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* From the blank behind the section's name to the closing bracket: "[section "sub"]". */
static int read_subsection(struct reader *r, int c)
{
	while (c != '\n' && is_blank(c))
		c = next(r);
	if (c != '"')
		return -EBADMSG;
	r->name[r->section_len++] = '.';
	while ((c = next(r)) != '"') {
		if (c == '\\')
			c = next(r);
		if (c == '\n')
			return -EBADMSG;
		r->name[r->section_len++] = (char)c;
	}
	return next(r) == ']' ? 0 : -EBADMSG;
}

static int read_section(struct reader *r)
{
	int c;

	r->section_len = 0;
	while ((c = next(r)) != ']') {
		if (is_blank(c))
			return read_subsection(r, c);
		if (!is_name_char(c) && c != '.')
			return -EBADMSG;
		r->name[r->section_len++] = lower(c);
	}
	return 0;
}

/* What stands for itself behind a backslash, 0 for what must not stand there. */
static char unescape(int c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case '\\':
	case '"':
		return (char)c;
	default:
		return 0;
	}
}

static void skip_comment(struct reader *r)
{
	while (next(r) != '\n')
		;
}

/* What stands behind a backslash: a character, or the end of a line that goes on. */
static bool read_escape(struct reader *r, size_t *n)
{
	int c = next(r);

	if (c == '\n')
		return true;
	r->value[*n] = unescape(c);
	return r->value[(*n)++] != '\0';
}

/* Blanks at the end go, those inside stay; in quotes all do. */
static int read_value(struct reader *r)
{
	bool is_quoted = false;
	size_t n = 0, kept = 0;
	int c;

	while ((c = next(r)) != '\n') {
		if (!is_quoted && (c == '#' || c == ';')) {
			skip_comment(r);
			break;
		}
		if (!is_quoted && is_blank(c)) {
			if (n > 0)
				r->value[n++] = (char)c;
			continue;
		}
		if (c == '"') {
			is_quoted = !is_quoted;
		} else if (c != '\\') {
			r->value[n++] = (char)c;
		} else if (!read_escape(r, &n)) {
			return -EBADMSG;
		}
		kept = n;
	}
	r->value[kept] = '\0';
	return is_quoted ? -EBADMSG : 0;
}

static int add(struct aw_git_config *config, const char *name, const char *value)
{
	struct aw_git_setting *larger =
		reallocarray(config->setting, config->count + 1, sizeof(*larger));
	struct aw_git_setting *setting;

	if (larger == NULL)
		return -ENOMEM;
	config->setting = larger;
	setting = &larger[config->count++];
	setting->name = strdup(name);
	setting->value = value == NULL ? NULL : strdup(value);
	return setting->name == NULL || (value != NULL && setting->value == NULL) ? -ENOMEM : 0;
}

/* "key = value" or "key", from its first letter to the end of the line. */
static int read_setting(struct reader *r, int c)
{
	int bad;

	r->name_len = r->section_len;
	r->name[r->name_len++] = '.';
	for (; is_name_char(c); c = next(r))
		r->name[r->name_len++] = lower(c);
	r->name[r->name_len] = '\0';
	while (c == ' ' || c == '\t')
		c = next(r);
	if (c == '\n')
		return add(r->ret, r->name, NULL);
	bad = c == '=' ? read_value(r) : -EBADMSG;
	return bad < 0 ? bad : add(r->ret, r->name, r->value);
}

static int read_all(struct reader *r)
{
	int result = 0;

	while (result == 0) {
		int c = next(r);

		if (is_at_end(r))
			break;
		if (c == '[')
			result = read_section(r);
		else if (c == '#' || c == ';')
			skip_comment(r);
		else if (is_letter(c))
			result = read_setting(r, c);
		else if (!is_blank(c))
			result = -EBADMSG;
	}
	return result;
}

static size_t line_of(const struct reader *r)
{
	size_t line = 1;

	for (size_t i = 0; i + 1 < r->at && i < r->text.len; i++)
		line += r->text.ptr[i] == '\n';
	return line;
}

int aw_git_config_parse(struct aw_str text, struct aw_git_config *ret, struct aw_error *err)
{
	autofree char *name = malloc(text.len + 3), *value = malloc(text.len + 1);
	struct reader r = { .text = text, .name = name, .value = value, .ret = ret };
	int result;

	*ret = (struct aw_git_config){ 0 };
	if (name == NULL || value == NULL)
		return aw_fail(err, ENOMEM, "read a git configuration");
	if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)
		return aw_refuse(err, EBADMSG, "a git configuration with a NUL byte in it");
	if (aw_str_starts(text, "\xef\xbb\xbf"))
		r.at = 3;
	result = read_all(&r);
	if (result == -ENOMEM)
		return aw_fail(err, ENOMEM, "read a git configuration");
	if (result < 0)
		return aw_refuse(err, EBADMSG, "line %zu of a git configuration is none",
				 line_of(&r));
	return 0;
}

void aw_git_config_fini(struct aw_git_config *config)
{
	for (size_t i = 0; i < config->count; i++) {
		free(config->setting[i].name);
		free(config->setting[i].value);
	}
	free(config->setting);
	*config = (struct aw_git_config){ 0 };
}

const char *aw_git_config_get(const struct aw_git_config *config, const char *name)
{
	const char *found = NULL;

	for (size_t i = 0; i < config->count; i++)
		if (strcmp(config->setting[i].name, name) == 0)
			found = config->setting[i].value;
	return found;
}
