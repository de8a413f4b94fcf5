/* What the words behind `allowlist add` say, and what they come to. */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "cli/allowlist.h"

static enum aw_allowlist_scope scope_of(const char *word)
{
	static const char *const names[] = {
		[AW_ALLOWLIST_SESSION] = "--session",
		[AW_ALLOWLIST_PROJECT] = "--project",
		[AW_ALLOWLIST_USER] = "--user",
	};

	for (size_t i = AW_ALLOWLIST_SESSION; i < AW_ARRAY_LEN(names); i++)
		if (strcmp(word, names[i]) == 0)
			return (enum aw_allowlist_scope)i;
	return AW_ALLOWLIST_AUTO;
}

static int take_scope(enum aw_allowlist_scope scope, struct aw_allowlist_line *line,
		      struct aw_error *err)
{
	if (line->scope != AW_ALLOWLIST_AUTO && line->scope != scope)
		return aw_refuse(err, EINVAL, "--session, --project or --user: one of them");
	line->scope = scope;
	return 0;
}

int aw_allowlist_parse(char *const *args, struct aw_allowlist_line *ret, struct aw_error *err)
{
	*ret = (struct aw_allowlist_line){ 0 };
	for (; *args != NULL; args++) {
		enum aw_allowlist_scope scope = scope_of(*args);

		if (scope != AW_ALLOWLIST_AUTO) {
			if (take_scope(scope, ret, err) < 0)
				return -EINVAL;
		} else if (strcmp(*args, "--force") == 0) {
			ret->is_forced = true;
		} else if ((*args)[0] == '-' || ret->operand != NULL) {
			return aw_refuse(err, EINVAL, "'%s' is not understood", *args);
		} else {
			ret->operand = *args;
		}
	}
	return 0;
}

int aw_allowlist_settle(enum aw_allowlist_scope scope, size_t count, size_t here,
			enum aw_allowlist_scope *ret_scope, size_t *ret_count, struct aw_error *err)
{
	bool is_one = here == 1 || (here == 0 && count == 1);

	if (scope == AW_ALLOWLIST_AUTO)
		scope = is_one ? AW_ALLOWLIST_SESSION : AW_ALLOWLIST_USER;
	*ret_scope = scope;
	*ret_count = here;
	if (scope == AW_ALLOWLIST_USER || (scope == AW_ALLOWLIST_SESSION && here == 0))
		*ret_count = count;
	if (scope != AW_ALLOWLIST_SESSION || here > 0 || is_one)
		return 0;
	return aw_refuse(err, ENOENT,
			 count == 0 ? "no session is running"
				    : "several sessions run, none of them for this directory: "
				      "go to the project of the one you mean");
}
