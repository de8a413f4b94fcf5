/*
 * policy-edit - add to one list of a policy text that a person wrote, or take from it.
 *
 * The text is theirs: comments, order, indentation and line ends stay as they are, byte for byte, but
 * for the one element. What is missing on the way to the list is made. A text that is not a valid
 * policy text (malformed, a key twice, a trailing comma) is refused, not repaired.
 *
 *	{ "capabilities": {                            {"capabilities", "network", "allowed_domains"}
 *	    "network": { "allowed_domains": [          + "pypi.org"
 *	      "a.com"  // ours
 *	    ] } } }
 *
 * The new text is parsed again and must mean exactly the old one and the change: a mistake made here
 * is refused, never written. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

struct aw_edit {
	struct aw_str text;
	const char *const *keys; /* the way to the list from the root, NULL-terminated */
	/* Whether an element that is there is the one meant. */
	bool (*is_meant)(const void *data, const char *element);
	const void *data;
};

/*
 * Append @value (UTF-8) to the list, unless an element is meant already. Returns 1 with the new text in
 * @ret, 0 when it is there. -EBADMSG: not a text that can be edited; -ENOTDIR: something else than an
 * object or a list stands on the way; -ENOBUFS, -ENOMEM. After a failure @ret holds nothing of use.
 */
int aw_edit_add(const struct aw_edit *edit, const char *value, struct aw_buf *ret,
		struct aw_error *err);

/* Take out every element that is meant. Returns how many with the new text in @ret, 0; as aw_edit_add. */
int aw_edit_remove(const struct aw_edit *edit, struct aw_buf *ret, struct aw_error *err);
