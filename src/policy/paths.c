#include "policy/paths.h"

#include <errno.h>
#include <string.h>

static int refuse(struct aw_error *err, struct aw_str text, const char *why)
{
	char shown[200];

	(void)aw_str_escape(text, shown, sizeof(shown));
	return aw_refuse(err, EBADMSG, "\"%s\" %s", shown, why);
}

/*
 * Append the components of @text to the normal form in @out of length @len ("" stands for the root).
 * Returns the new length, or NULL's story in @ret_why.
 */
static size_t append_components(struct aw_str text, char *out, size_t len, const char **ret_why)
{
	struct aw_str part;

	while (aw_str_next(&text, '/', &part)) {
		if (part.len == 0 || aw_str_is(part, "."))
			continue;
		if (aw_str_is(part, ".."))
			*ret_why = "has a .. component: write where it leads";
		else if (len + 1 + part.len > AW_PATH_MAX)
			*ret_why = "is longer than 4095 bytes";
		if (*ret_why != NULL)
			return 0;
		out[len++] = '/';
		memcpy(out + len, part.ptr, part.len);
		len += part.len;
	}
	out[len] = '\0';
	return len;
}

static int finish(char *out, size_t len)
{
	if (len > 0)
		return (int)len;
	memcpy(out, "/", 2);
	return 1;
}

static struct aw_str without_subtree_glob(struct aw_str text)
{
	if (aw_str_ends(text, "/**"))
		text.len -= 2;
	else if (aw_str_ends(text, "/*"))
		text.len -= 1;
	return text;
}

/* '[' stays a plain byte: routes of web frameworks are directories named "[id]". */
static bool has_glob(struct aw_str text)
{
	return text.len > 0 &&
	       (memchr(text.ptr, '*', text.len) != NULL || memchr(text.ptr, '?', text.len) != NULL);
}

int aw_path_cell(struct aw_str text, char *out, struct aw_error *err)
{
	struct aw_str plain = without_subtree_glob(text);
	const char *why = NULL;
	size_t len = 0;

	if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)
		why = "has a NUL byte";
	else if (has_glob(plain))
		why = "has a pattern other than a final /* or /**, which this version does not "
		      "enforce: name the files or directories";
	else if (!aw_str_starts(plain, "/"))
		why = "is not absolute: write /workspace/... for a path of the project";
	else
		len = append_components(plain, out, 0, &why);
	if (why != NULL)
		return refuse(err, text, why);
	return finish(out, len);
}

int aw_path_host(struct aw_str text, const char *home, char *out, struct aw_error *err)
{
	bool in_home = aw_str_is(text, "~") || aw_str_starts(text, "~/");
	struct aw_str rest = text;
	const char *why = NULL;
	size_t len = 0;

	if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)
		why = "has a NUL byte";
	else if (in_home && (home == NULL || home[0] != '/'))
		why = "needs a home directory, and there is none";
	else if (!in_home && !aw_str_starts(text, "/"))
		why = "is neither absolute nor below ~/";
	if (why == NULL && in_home) {
		len = append_components(aw_str_from(home), out, 0, &why);
		rest.ptr++;
		rest.len--;
	}
	if (why == NULL)
		len = append_components(rest, out, len, &why);
	if (why != NULL)
		return refuse(err, text, why);
	return finish(out, len);
}

bool aw_path_is_within(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

const char *aw_path_in_workspace(const char *path)
{
	size_t len = sizeof(AW_PATH_WORKSPACE) - 1;

	if (!aw_path_is_within(path, AW_PATH_WORKSPACE))
		return NULL;
	return path + len + (path[len] == '/');
}
